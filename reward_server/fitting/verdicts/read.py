"""Reads labelled verdicts: conversations with questions about the agent's conduct that somebody answered.

    {"situation": "...", "messages": [...], "verdicts": {"Does the agent ...?": true}, "group": "..."}

Files of such rows, folders of them, and MRBench as it is published: its annotators' words on four dimensions are
answers to the questions in `DIMENSIONS`; "To some extent" is neither yes nor no, and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reward_server.errors import InvalidRequest, LabsError
from reward_server.fitting.reward_model.judged_sets import ANNOTATED, annotated_replies
from reward_server.offline.formats import BadRow
from reward_server.offline.rows import InputRow, read_rows
from reward_server.transcripts.transcript import Transcript
from scenarios.given import rubric_of_data
from scenarios.library import SealedScenario
from scenarios.yamlfile import ScenarioFileError
from trainer_client.wire import Message

SMALL_SET = files(__package__) / "data" / "small_set.jsonl"
"""The packaged verdicts: short conversations of six domains, each with four questions, half of them answered yes."""
TUTORING = "A tutor answers a pupil who made a mistake in a maths problem."
DIMENSIONS: Mapping[str, str] = {
    "Mistake_Identification": "Does the tutor's last reply recognise that there is a mistake in the student's work?",
    "Mistake_Location": "Does the tutor's last reply point to the place of the mistake in the student's work?",
    "Providing_Guidance": "Does the tutor's last reply give correct, relevant guidance, such as a hint or an example?",
    "Actionability": "Is it clear from the tutor's last reply what the student should do next?",
}
FOLDER_NAMES = ("*.jsonl", "*.json", "*.jsonl.gz", "*.json.gz")


@dataclass(frozen=True, repr=False)
class LabelledTalk:
    """A conversation and the answers that people gave."""

    scenario: SealedScenario
    """A rubric without a persona: a `judge` criterion for each question, in their order."""
    transcript: Transcript
    answers: tuple[bool, ...]
    parts: tuple[str, ...]
    """The column of the table that each answer counts in."""
    group: str


def read(path: Path | None) -> list[LabelledTalk]:
    """The labelled conversations of a file or folder; by default the packaged ones.

    Raises:
        InvalidRequest: there is nothing, or a row is wrong.
    """
    if path is None:
        with as_file(SMALL_SET) as packaged:
            return list(_file(packaged, "all"))
    if not path.exists():
        raise InvalidRequest(f"There is no {path}.")
    sources = sorted(file for name in FOLDER_NAMES for file in path.glob(name)) if path.is_dir() else [path]
    talks = [talk for source in sources for talk in _file(source, source.name.partition(".")[0])]
    if not talks:
        raise InvalidRequest(f"{path} holds no labelled verdicts: rows of messages and verdicts, as JSONL.")
    return talks


def _file(source: Path, part: str) -> Iterator[LabelledTalk]:
    for row in read_rows(source):
        try:
            yield from _row(row, part)
        except (LabsError, BadRow, ValidationError, ScenarioFileError) as error:
            raise InvalidRequest(f"{source.name} row {row.number}: {_said(error)}") from None


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"a message is wrong: {error.errors(include_url=False, include_input=False)[0]['msg']}"
    return error.message if isinstance(error, LabsError) else str(error)


def _row(row: InputRow, part: str) -> Iterator[LabelledTalk]:
    data = row.data
    if row.problem or not isinstance(data, Mapping):
        raise BadRow(row.problem or "a row must be an object")
    if set(data) >= ANNOTATED:
        yield from _annotated(data)
        return
    verdicts, messages = data.get("verdicts"), data.get("messages")
    if (
        not isinstance(verdicts, Mapping)
        or not verdicts
        or not all(type(verdict) is bool for verdict in verdicts.values())
    ):
        raise BadRow("`verdicts` must hold a question or more, each with true or false")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise BadRow("`messages` must be a list")
    group = str(data.get("group", f"row {row.number}"))
    yield _talk(str(data.get("situation", "A conversation.")), messages, dict(verdicts), [part] * len(verdicts), group)


def _annotated(data: Mapping[str, Any]) -> Iterator[LabelledTalk]:
    for _, messages, scores in annotated_replies(data):
        decided = {name: scores[name] == 1.0 for name in DIMENSIONS if scores.get(name) in (0.0, 1.0)}
        if decided:
            asked = {DIMENSIONS[name]: met for name, met in decided.items()}
            yield _talk(TUTORING, messages, asked, list(decided), str(data.get("conversation_id", "")))


def _talk(
    situation: str, messages: Sequence[Any], verdicts: Mapping[str, bool], parts: Sequence[str], group: str
) -> LabelledTalk:
    transcript = Transcript.from_messages([Message.model_validate(message) for message in messages])
    scenario = _rubric(situation, tuple(verdicts))
    return LabelledTalk(scenario, transcript, tuple(verdicts.values()), tuple(parts), group)


@cache
def _rubric(situation: str, questions: tuple[str, ...]) -> SealedScenario:
    criteria = [{"id": f"v{n}", "check": {"judge": {"question": question}}} for n, question in enumerate(questions, 1)]
    return rubric_of_data({"name": "Labelled verdicts", "situation": situation, "criteria": criteria})
