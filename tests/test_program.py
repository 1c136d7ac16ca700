"""Errors name the command as it can be typed where the server was started: `./labs` in a checkout, `labs` elsewhere."""

from __future__ import annotations

import pytest

from reward_server.api.errors import error_response
from reward_server.errors import LabNotFound, LabsError, RewardModelNotFound
from reward_server.evaluations.documents import failed_item


@pytest.mark.parametrize(
    ("started_as", "name"), [("/usr/local/bin/labs", "labs"), ("/srv/labs/reward_server/cli/start.py", "./labs")]
)
def test_what_the_api_answers_names_the_command_of_this_server(
    started_as: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [started_as, "serve"])
    body = error_response("req_a", LabNotFound()).body.decode()
    assert f"; {name} tenants list shows" in body
    item = failed_item("a", RewardModelNotFound("Fit another one with ./labs calibrate."))
    assert item["message"] == f"Fit another one with {name} calibrate."
    assert str(LabsError("./labs serve starts one")) == f"{name} serve starts one"
