"""Structured logs: an event name and fields, as JSON lines or for a terminal.

Everything goes through one handler, records of the web server and other libraries included, so all of it
is redacted. Tracebacks never show the values of variables: those hold transcripts and rubrics.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor

from reward_server.logs.redaction import redact

LogFormat = Literal["auto", "console", "json"]
QUIET = (
    "uvicorn.access",
    "alembic",
    "sqlalchemy",
    "asyncio",
    "httpcore2",
    "httpx2",
    "urllib3",
    "anthropic",
    "openai",
    "mcp",
)
"""Loggers that say at INFO or DEBUG what we log ourselves, or more than anyone may read."""


def configure_logging(level: str, log_format: LogFormat = "auto", stream: TextIO | None = None) -> None:
    """Set up logging for the process; calling it again replaces the set-up."""
    stream = sys.stderr if stream is None else stream
    console = log_format == "console" or (log_format == "auto" and stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(), _without_colors],
            processors=_rendering(console=console, colors=console and stream.isatty()),
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _without_colors(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The web server says everything twice: the second time with terminal colours."""
    event.pop("color_message", None)
    return event


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger; the name is a module's."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return logger


def _rendering(*, console: bool, colors: bool) -> list[Processor]:
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if console:
        # The default console traceback prints local variables.
        plain = structlog.dev.plain_traceback
        return [
            remove_meta,
            structlog.processors.format_exc_info,
            redact,
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain),
        ]
    transformer = ExceptionDictTransformer(show_locals=False, max_frames=30)
    return [
        remove_meta,
        structlog.processors.ExceptionRenderer(transformer),
        redact,
        structlog.processors.JSONRenderer(),
    ]
