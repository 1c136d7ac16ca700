"""The rule judge: limits on the length of the agent's turns, and words that are to be said or not (`words`).

Lint lets it pay only beside facts, and only turns that bring something new count for the agent. A turn that calls a
tool without a word is not measured: there are no words in it that could be too many or too few.
"""

from __future__ import annotations

from personas.reading.acts import Act
from personas.replay.replayer import TurnRecord
from personas.text.plain import plain
from reward_server.judges.base import NOT_MET, Case, Finding, Verdict, cite, verdict
from reward_server.judges.words import keyword_finding, regex_finding
from scenarios.schema import Criterion, LengthCheck


class RuleJudge:
    """Decides the checks that are counts."""

    name = "rule"
    version = "7"
    kinds = frozenset({"length", "keyword", "regex"})

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion."""
        check, finding = criterion.check, NOT_MET
        if check.length:
            finding = _length(case, check.length)
        elif check.keyword:
            finding = keyword_finding(case, criterion, check.keyword)
        elif check.regex:
            finding = regex_finding(case, criterion, check.regex)
        return verdict(self, criterion, finding)


def _length(case: Case, check: LengthCheck) -> Finding:
    # Small talk and repetitions of the right length do not make up for turns of the wrong one, however many they are.
    measured = [turn for turn in case.record.turns if not _only_calls(turn)]
    misfits = sum(not _fits(turn, check) for turn in measured)
    fitting = [turn.turn for turn in measured if _brings(case, turn) and _fits(turn, check)]
    if not fitting or len(fitting) < check.share * (len(fitting) + misfits):
        return NOT_MET
    shown = sorted({fitting[0], fitting[-1]})
    return Finding(1.0, tuple(cite(case.transcript, turn, "agent", "") for turn in shown))


def _brings(case: Case, turn: TurnRecord) -> bool:
    """True if something comes of the turn; where no case can tell, whether it says anything of its own."""
    return turn.brings if case.scenario.has_persona else bool(turn.own or turn.tools)


def _only_calls(turn: TurnRecord) -> bool:
    return bool(turn.tools) and not _words(turn)


def _words(turn: TurnRecord) -> int:
    return len(plain(turn.agent_text).split())


def _fits(turn: TurnRecord, check: LengthCheck) -> bool:
    if not check.min_words <= _words(turn) <= check.max_words:
        return False
    return check.max_questions is None or _questions(turn) <= check.max_questions


def _questions(turn: TurnRecord) -> int:
    """Sentences that ask, or topics asked about where these are more."""
    sentences = sum(sentence.does(Act.ASK) for sentence in turn.hearing.reading.readable)
    return max(sentences, sum(not asked.invited for asked in turn.hearing.asked))
