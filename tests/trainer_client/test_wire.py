"""The wire types refuse what a server would refuse, and read the answers of older servers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainer_client.wire import CalibrationList, Message, RewardModelList


@pytest.mark.parametrize(("kind", "older"), [(CalibrationList, "calibrations"), (RewardModelList, "reward_models")])
def test_a_list_of_an_older_server_is_read_under_its_older_name(
    kind: type[CalibrationList | RewardModelList], older: str
) -> None:
    """It had no `data`; a newer one sends both, and without either there is no list."""
    assert kind.model_validate({older: [], "request_id": "r"}).data == []
    assert kind.model_validate({"data": [], older: [], "request_id": "r"}).model_dump()["data"] == []
    with pytest.raises(ValidationError):
        kind.model_validate({"request_id": "r"})


def test_a_message_is_as_long_as_it_is_read() -> None:
    """In NFKC this sign is 18 characters."""
    assert Message(role="user", content="\ufdfa" * 1_000).content
    with pytest.raises(ValidationError, match="NFKC, this has 36,000"):
        Message(role="user", content="\ufdfa" * 2_000)
