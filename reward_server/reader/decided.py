"""The reader that asks a decision model, and the one that does so only where the local reader is unsure.

`read` is called in scoring threads; the model is asked on the event loop. The lab whose work a thread does pays. A turn
that the model did not read is read locally, which is counted, or fails, as the settings say.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from personas.case.compiled import CompiledCase
from personas.hearing.hear import ASKED, LIKELY_MADE, MADE, UNSURE
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence
from personas.reading.reader import ANSWERED, LocalReader, Reader, Turn, readings_kept
from personas.text.memory import Memory
from reward_server.decisions.questions import AnswerProbabilities, Decider, Typed
from reward_server.judges.asking import no_answer
from reward_server.limits.fair_threads import NOBODY, lab_at_work
from reward_server.llm.base import LlmFailed
from reward_server.logs.logger import get_logger
from reward_server.reader.questions import candidates, questions_of, ranked, reading_of, recalling, state_of

log = get_logger(__name__)

ASKS = hashlib.sha256((files(__package__) / "questions.py").read_bytes()).hexdigest()[:12]
"""Names what is asked, and how answers become a reading."""


class DecisionReader(Reader):
    """`Reader` on a decision model."""

    def __init__(
        self,
        decider: Decider,
        local: LocalReader,
        loop: asyncio.AbstractEventLoop,
        *,
        falls_back: bool = True,
        fell_back: Callable[[str], None] = lambda kind: None,
    ) -> None:
        """Read with these.

        Args:
            decider: decides.
            local: reads what it did not.
            loop: on which it is asked.
            falls_back: whether a turn that was not read is read locally; else it is an error.
            fell_back: is told of each such turn, by the kind of the failure.
        """
        self._decider = decider
        self._local = local
        self._loop = loop
        self._falls_back = falls_back
        self._fell_back = fell_back
        self._known: Memory[tuple[CompiledCase, Turn], Reading] = readings_kept()

    @property
    def version(self) -> str:
        """Model and questions, and who reads where it fails."""
        behind = f";else={self._local.version}" if self._falls_back else ""
        return f"decisions/{self._decider.version};asks={ASKS}{behind}"

    @property
    def held_bytes(self) -> int:
        """The bytes of the remembered readings."""
        return self._known.held_bytes + self._local.held_bytes

    def prepare(self, case: CompiledCase) -> None:
        """As `LocalReader.prepare`: it may have to read."""
        self._local.prepare(case)

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn; blocking until the model has answered.

        Raises:
            JudgeFailed: the model did not read a turn, and nobody else may.
            BudgetExhausted: the lab may not spend more today.
        """
        keys = [(case, turn) for turn in turns]
        found = self._known.recall(keys)
        missing = [turn for _, turn in dict.fromkeys(keys) if (case, turn) not in found]
        if missing:
            asked = [(state_of(turn), questions_of(case, turn)) for turn in missing]
            fresh = {
                (case, turn): self._local.read(case, [turn])[0] if each is None else reading_of(case, turn, each)
                for turn, each in zip(missing, self._decided(asked), strict=True)
            }
            # One that was read locally, too: in this process, play and scoring shall hear the same.
            self._known.keep(fresh)
            found |= fresh
        return [found[key] for key in keys]

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        """As `Reader.beside`: the background is asked about where no fact fits."""
        questions = recalling(case, said, ANSWERED) if case.background else {}
        if not questions:
            return [each.topics for each in said]
        sentences = {f"s{number}": each.text for number, each in enumerate(said, 1)}
        [found] = self._decided([(state_of((line, "")) | {"agent_turn": sentences}, questions)])
        if found is None:
            return self._local.beside(case, line, said)
        return [
            ranked((*each.topics, *candidates(*(d for name, d in found.items() if name.startswith(f"s{number}.")))))
            for number, each in enumerate(said, 1)
        ]

    def _decided(
        self, asked: Sequence[tuple[Any, Mapping[str, Typed]]]
    ) -> list[Mapping[str, AnswerProbabilities] | None]:
        """The decisions on each; None where it failed and somebody else reads."""
        lab = lab_at_work()
        work = self._all(asked, "operator" if lab == NOBODY else lab)
        outcomes = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        for failed in (each for each in outcomes if isinstance(each, BaseException)):
            if not isinstance(failed, LlmFailed):
                raise failed
            log.warning("reading_failed", model=self._decider.name, kind=failed.kind.value, falls_back=self._falls_back)
            if not self._falls_back:
                raise no_answer(failed) from None
            self._fell_back(failed.kind.value)
        return [None if isinstance(each, BaseException) else each for each in outcomes]

    async def _all(
        self, asked: Sequence[tuple[Any, Mapping[str, Typed]]], lab_id: str
    ) -> list[Mapping[str, AnswerProbabilities] | BaseException]:
        work = (self._decider.decide(state, questions, lab_id=lab_id) for state, questions in asked)
        return await asyncio.gather(*work, return_exceptions=True)


class CascadeReader(Reader):
    """The local reader, and a decision model for the turns it is unsure of."""

    def __init__(self, local: LocalReader, model: DecisionReader) -> None:
        self._local = local
        self._model = model

    @property
    def version(self) -> str:
        """Both, since either may decide."""
        return f"cascade/2;{self._local.version};{self._model.version}"

    @property
    def held_bytes(self) -> int:
        """The bytes of the remembered readings of both."""
        return self._model.held_bytes

    def prepare(self, case: CompiledCase) -> None:
        """As `LocalReader.prepare`."""
        self._local.prepare(case)

    def prepare_background(self, case: CompiledCase) -> None:
        """As `LocalReader.prepare_background`."""
        self._local.prepare_background(case)

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn; blocking. Raises as `DecisionReader.read`."""
        found = self._local.read(case, turns)
        doubtful = [number for number, reading in enumerate(found) if is_doubtful(reading)]
        if doubtful:
            for number, reading in zip(doubtful, self._model.read(case, [turns[n] for n in doubtful]), strict=True):
                found[number] = reading
        return found

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        """As the local reader does: background is never scored, and it is sure of it."""
        return self._local.beside(case, line, said)


def is_doubtful(reading: Reading) -> bool:
    """True if any sentence lies between the thresholds of hearing, or could not be read."""
    for sentence in reading.sentences:
        asks = sentence.topics[0].confidence if sentence.topics else 0.0
        makes = sentence.commitments[0].confidence if sentence.commitments else 0.0
        if sentence.does(Act.UNREADABLE) or UNSURE <= asks < ASKED or LIKELY_MADE <= makes < MADE:
            return True
    return False
