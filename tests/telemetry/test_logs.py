"""The log as an operator reads it: one JSON object a line, nothing private in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from reward_server.logs.logger import LogFormat, configure_logging, get_logger

KEY = "lab_abcdefghijklmnop_" + "q2" * 20


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Leave logging as it was found: it belongs to the process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line_with_its_fields() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    structlog.contextvars.bind_contextvars(request_id="req_1")
    get_logger("reward_server.api").info("turn_answered", turn=3)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "turn_answered",
        "turn": 3,
        "request_id": "req_1",
        "level": "info",
        "logger": "reward_server.api",
    }


def test_levels_below_the_one_set_are_left_out() -> None:
    stream = io.StringIO()
    configure_logging("warning", "json", stream)
    get_logger("x").info("quiet")
    get_logger("x").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_configuring_again_replaces_the_output() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("info", "json", first)
    configure_logging("info", "json", second)
    get_logger("x").info("once")
    assert (len(lines(first)), len(lines(second))) == (0, 1)


def test_the_web_servers_coloured_copy_of_a_message_is_left_out() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    logging.getLogger("uvicorn.error").info("Started", extra={"color_message": "\x1b[36mStarted\x1b[0m"})
    assert json.loads(stream.getvalue())["event"] == "Started"
    assert "color_message" not in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console", "auto"])
def test_records_of_other_libraries_are_redacted_too(log_format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logging("info", log_format, stream)
    logging.getLogger("uvicorn.error").info("header %s", f"Bearer {KEY}", extra={"content": "canary"})
    assert "header" in stream.getvalue()
    assert KEY not in stream.getvalue()
    assert "canary" not in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_shows_where_but_no_variables(log_format: LogFormat) -> None:
    def work(said: str) -> None:
        expected = f"rubric-canary {said}"
        raise LookupError(KEY, len(expected))

    stream = io.StringIO()
    configure_logging("info", log_format, stream)
    try:
        work("-".join(("transcript", "canary")))
    except LookupError:
        get_logger("x").exception("failed")
    text = stream.getvalue()
    assert "LookupError" in text
    assert "work" in text
    assert "transcript-canary" not in text
    assert "rubric-canary transcript" not in text
    assert KEY not in text


def test_auto_is_json_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    configure_logging("info", "auto", stream)
    get_logger("x").info("e")
    assert lines(stream)[0]["event"] == "e"


@pytest.mark.parametrize("name", ["uvicorn.access", "sqlalchemy.engine", "httpx2"])
def test_libraries_that_say_too_much_are_quiet_even_at_debug(name: str) -> None:
    stream = io.StringIO()
    configure_logging("debug", "json", stream)
    logging.getLogger(name).info("SELECT canary")
    assert stream.getvalue() == ""
