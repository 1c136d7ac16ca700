"""The split of a scenario with variants, on its way from a row of a data set to the server."""

from __future__ import annotations

from tests.learner.stage import StageServer, listening
from trainer_client import LabsClient, play
from trainer_client.integrations.episodes import Episodes
from trainer_client.integrations.tasks import Task, dataset_rows


def test_a_row_of_a_split_is_played_on_its_variants() -> None:
    server = StageServer()
    with listening(server) as url:
        with LabsClient(url) as client:
            rows = [dataset_rows(client, ["c/s"], [3], split)[0] for split in ("train", "eval", None)]
        episodes = Episodes(url)
        with episodes.client:
            episodes.start([Task.read(row["prompt"]) for row in rows])
    assert [each["config"].get("split") for each in server.created] == ["train", "eval", None]


def test_play_asks_for_the_variants_of_a_split() -> None:
    server = StageServer(turns=1)
    with listening(server) as url, LabsClient(url) as client:
        played = play(client, lambda _: "tell me.", "c", "s", seeds=[1, 2], split="eval")
    assert [each.reward for each in played] == [1.0, 1.0]
    assert [each["config"]["split"] for each in server.created] == ["eval", "eval"]
