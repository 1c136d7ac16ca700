"""The packaged reader in int8, as a setting of the server chooses it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from reward_server.reader.encoder import artefact_bytes, load_reader_encoder
from reward_server.server.engine import load_reader
from reward_server.settings import Settings
from scenarios.library import load_library


@pytest.mark.slow
def test_a_processor_without_int8_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = artefact_bytes()
    with capture_logs() as logs:
        load_reader_encoder(raw, precision="fp32")
        monkeypatch.setattr("reward_server.encoders.int8.multiplies_int8", lambda: False)
        load_reader_encoder(raw, precision="int8")
    assert [(log["event"], log["log_level"]) for log in logs] == [("int8_is_not_native", "warning")]


@pytest.mark.slow
def test_int8_understands_a_plain_turn_under_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_READER_PRECISION", "int8")
    int8 = load_reader(Settings())
    monkeypatch.delenv("LABS_READER_PRECISION")
    fp32 = load_reader(Settings())
    case = load_library(only=["clinical-intake/tired-and-dizzy"]).vault.open("clinical-intake", "tired-and-dizzy").case
    turn = ("", "I'm sorry to hear that. When did the tiredness start?")
    found = [
        [(s.acts, [c.id for c in s.topics[:1]]) for s in each.read(case, [turn])[0].sentences] for each in (int8, fp32)
    ]
    assert found[0] == found[1]
    assert found[0][1][1] == ["onset"]
    assert int8.version != fp32.version
