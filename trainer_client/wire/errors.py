"""The envelope of every error response."""

from __future__ import annotations

from trainer_client.wire.base import ResponseModel


class ErrorDetail(ResponseModel):
    """One thing wrong with a request; never repeats the input."""

    loc: list[str | int]
    msg: str


class ErrorData(ResponseModel):
    """`data` of the error envelope."""

    request_id: str
    code: str
    retry_after_s: int | None = None
    """Seconds to wait before the same request may work; the figure of the header Retry-After."""
    errors: list[ErrorDetail] | None = None


class ErrorEnvelope(ResponseModel):
    """Every error response."""

    message: str
    data: ErrorData
