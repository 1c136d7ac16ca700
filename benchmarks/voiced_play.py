"""Plays scenarios with a voice and writes down what the guard said to each line: attempts, fallbacks, tokens, calls.

    python -m benchmarks.mailbox_provider mail --port 8770
    python -m benchmarks.voiced_play play --url http://127.0.0.1:8770/v1 --model mailbox used-van two-discounts

The agent's lines are files that are waited for, `play/used-van/1.txt` and so on; an empty one ends the conversation.
With `--scripted` the agent is the excellent one of the scenario's exam, and nothing is waited for. Each turn becomes a
line of `play/used-van.jsonl`; the figures are printed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from personas.case.library import load_temperaments
from personas.hearing.types import AgentTurn
from personas.play.simulator import Reply
from personas.replay.replayer import Exchange, replay
from reward_server.episodes.stage import PersonaInput, PersonaStage
from reward_server.errors import LabsError
from reward_server.llm.base import Answer, LanguageModel, LlmFailed, Question
from reward_server.server.engine import load_matcher, load_reader
from reward_server.settings import Settings, load_settings
from reward_server.store.records import EpisodeRow, EpisodeStatus
from reward_server.telemetry.metrics import Metrics
from reward_server.voice.build import own_voice_model, speaker_of
from reward_server.voice.prompt import HINTS, Utterance
from scenarios.library import Library, SealedScenario, load_library

LOOK_S = 0.5
SEED = 3


@dataclass
class PlayedTurn:
    """One turn: what was said, by whose words, and what it took."""

    scenario: str
    turn: int
    agent: str
    persona: str
    engine: str
    does: list[str]
    attempts: list[dict[str, str | None]] = field(default_factory=list)
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @property
    def is_voiced(self) -> bool:
        """True if the model's words were said."""
        return self.persona != self.engine


class Listening:
    """The model, with what it was asked and answered; one conversation at a time is told by its lab."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.calls: dict[str, list[tuple[Question, Answer | LlmFailed]]] = {}

    name = "listening"
    version = "listening"
    has_logprobs = False

    async def ask(self, question: Question, *, lab_id: str, sample: int = 0) -> Answer:
        """Ask the model, and keep what came of it."""
        calls = self.calls.setdefault(lab_id, [])
        try:
            answer = await self._model.ask(question, lab_id=lab_id, sample=sample)
        except LlmFailed as failure:
            calls.append((question, failure))
            raise
        calls.append((question, answer))
        return answer

    def describe(self) -> Mapping[str, Any]:
        """Describe the model."""
        return self._model.describe()


class VoicedPlay:
    """Plays conversations, each on its own."""

    def __init__(self, library: Library, settings: Settings, threads: ThreadPoolExecutor) -> None:
        model = own_voice_model(settings)
        assert model is not None, "the settings name one"
        self._library = library
        self._model = Listening(model)
        self._matcher, self._reader = load_matcher(settings), load_reader(settings)
        voices = load_temperaments()
        speaker = speaker_of(self._model, settings, Metrics())
        self._stage = PersonaStage(library.vault, voices, self._reader, self._matcher, threads, speaker=speaker)
        self._local = PersonaStage(library.vault, voices, self._reader, self._matcher, threads)

    async def play(self, scenario: SealedScenario, lines: AsyncIterator[str], folder: Path) -> list[PlayedTurn]:
        """The turns of one conversation; each is written when it is played."""
        slug, case = scenario.card.slug, scenario.case
        persona = case.temperaments[0]
        opening = await self._stage.open(scenario.collection, slug, persona, SEED, None)
        row = _episode(scenario, persona, opening.text, opening.state.to_json())
        earlier, heard, turns = [opening.text], list[str](), list[PlayedTurn]()
        out = folder / f"{slug}.jsonl"
        out.write_text(json.dumps({"scenario": slug, "persona": persona, "opening": opening.text}) + "\n")
        async for said in lines:
            given = PersonaInput(row, AgentTurn(said), earlier, heard)
            engine, reply = await self._answer(self._local, given), await self._answer(self._stage, given)
            turn = PlayedTurn(
                slug, len(turns) + 1, said, reply.text, engine.text, [str(p.move.kind) for p in reply.parts]
            )
            self._count(turn)
            turns.append(turn)
            with out.open("a") as file:
                file.write(json.dumps(asdict(turn), ensure_ascii=False) + "\n")
            earlier, heard = [*earlier, reply.text], [*heard, said]
            row = replace(row, turn=len(turns), persona_state=reply.state.to_json())
            if reply.ended:
                break
        self._same_credit(scenario, opening.text, turns)
        return turns

    async def _answer(self, stage: PersonaStage, given: PersonaInput) -> Reply:
        [found] = await stage.replies([given], lambda _number, _reply: None)
        if isinstance(found, LabsError):
            raise found
        return found[0]

    def _count(self, turn: PlayedTurn) -> None:
        calls = self._model.calls.pop(turn.scenario, [])
        for (_, outcome), (later, _) in zip(calls, [*calls[1:], (None, None)], strict=True):
            why = (
                None
                if later is None
                else next((o.value for o, hint in HINTS.items() if later.user.endswith(hint)), "?")
            )
            if isinstance(outcome, LlmFailed):
                turn.attempts.append({"text": None, "objection": outcome.kind.value})
                continue
            assert isinstance(outcome.parsed, Utterance)
            text = outcome.parsed.utterance.strip()
            last = None if text == turn.persona else "rejected"
            turn.attempts.append({"text": text, "objection": why or last})
            turn.input_tokens += outcome.usage.input_tokens
            turn.cached_tokens += outcome.usage.cached_tokens
            turn.output_tokens += outcome.usage.output_tokens

    def _same_credit(self, scenario: SealedScenario, opening: str, turns: Sequence[PlayedTurn]) -> None:
        """Say so where replay credits the model's lines with something else than the engine's."""
        credits = []
        for lines in ([turn.persona for turn in turns], [turn.engine for turn in turns]):
            exchanges = [Exchange(AgentTurn(turn.agent), line) for turn, line in zip(turns, lines, strict=True)]
            record = replay(scenario.case, opening, exchanges, self._reader, self._matcher)
            credits.append({topic: found.turn for topic, found in record.elicited.items()})
        voiced, engine = credits
        print(f"{scenario.card.slug}: {len(voiced)} facts; same credit as the engine's lines: {voiced == engine}")
        if voiced != engine:
            print("  ", sorted(set(voiced.items()) ^ set(engine.items())))


def _episode(scenario: SealedScenario, persona: str, opening: str, state: dict[str, Any]) -> EpisodeRow:
    now = datetime.now(UTC)
    return EpisodeRow(
        episode_id=scenario.card.slug,
        lab_id=scenario.card.slug,
        collection=scenario.collection,
        scenario=scenario.card.slug,
        seed=SEED,
        persona_slug=persona,
        observation_role="assistant",
        score_turns=False,
        reward_config=None,
        metadata=None,
        max_turns=scenario.card.max_turns,
        turn=0,
        persona_state=state,
        status=EpisodeStatus.ACTIVE,
        terminal_reason=None,
        opening=opening,
        created_at=now,
        active_at=now,
    )


async def awaited(folder: Path) -> AsyncIterator[str]:
    """The agent's lines as they are written; an empty one is the end."""
    for number in range(1, 60):
        path = folder / f"{number}.txt"
        while (text := _written(path)) is None:  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(LOOK_S)
        if not text:
            return
        yield text


def _written(path: Path) -> str | None:
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


async def scripted(scenario: SealedScenario) -> AsyncIterator[str]:
    """The lines of the excellent agent of the exam."""
    for step in scenario.secrets.exam.oracle:
        if step.say:
            yield step.say


def figures(turns: Sequence[PlayedTurn]) -> dict[str, Any]:
    """What the voice came to."""
    asked = [turn for turn in turns if turn.attempts]
    first = [turn for turn in asked if turn.attempts[0]["objection"] is None]
    why = Counter(str(each["objection"]) for turn in asked for each in turn.attempts if each["objection"])
    calls = sum(len(turn.attempts) for turn in asked)
    return {
        "turns": len(turns),
        "asked": len(asked),
        "first try": len(first),
        "voiced": sum(turn.is_voiced for turn in asked),
        "calls a turn": round(calls / max(1, len(asked)), 2),
        "input tokens a turn": round(sum(turn.input_tokens for turn in asked) / max(1, len(asked))),
        "of them cached": round(sum(turn.cached_tokens for turn in asked) / max(1, len(asked))),
        "output tokens a turn": round(sum(turn.output_tokens for turn in asked) / max(1, len(asked))),
        "objections": dict(why.most_common()),
    }


async def _run(given: argparse.Namespace) -> None:
    given.folder.mkdir(parents=True, exist_ok=True)
    library = load_library()
    chosen = [library.vault.open(*name) for name in library.vault.names() if name[1] in given.scenarios]
    settings = load_settings(
        {
            "persona_voice": "llm",
            "voice_model": given.model,
            "voice_base_url": given.url,
            "llm_deadline_s": given.deadline,
            "request_deadline_s": given.deadline * 4,
            "data": given.folder,
        }
    )
    with ThreadPoolExecutor(1) as threads:
        play = VoicedPlay(library, settings, threads)
        print("ready", flush=True)
        sources = [scripted(each) if given.scripted else awaited(given.folder / each.card.slug) for each in chosen]
        work = (play.play(each, lines, given.folder) for each, lines in zip(chosen, sources, strict=True))
        played = [turn for turns in await asyncio.gather(*work) for turn in turns]
    print(json.dumps(figures(played), indent=1))


def main() -> None:
    """Play."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenarios", nargs="+", help="slugs")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--deadline", type=float, default=900.0)
    parser.add_argument("--scripted", action="store_true")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
