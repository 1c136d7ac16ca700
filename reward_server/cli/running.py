"""Finds out if a Labs server runs at an address, asked as anybody may ask: its /healthz."""

from __future__ import annotations

ANSWERS_WITHIN_S = 2.0
_ANY = ("0.0.0.0", "::")  # noqa: S104 (compared, not bound)


def url_of(host: str, port: int) -> str:
    """The URL of a server that is bound to this address, as seen from this machine."""
    shown = "127.0.0.1" if host in _ANY else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def labs_at(host: str, port: int) -> str | None:
    """The URL of the Labs server that answers at this address; None if something else is there, or nothing."""
    import httpx2

    url = url_of(host, port)
    try:
        # Not through a proxy of the environment: that is another machine.
        answer = httpx2.get(f"{url}/healthz", timeout=ANSWERS_WITHIN_S, trust_env=False)
        said = answer.json() if answer.status_code == httpx2.codes.OK else None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None
    is_labs = isinstance(said, dict) and said.get("request_id") == answer.headers.get("x-request-id", "")
    return url if is_labs else None
