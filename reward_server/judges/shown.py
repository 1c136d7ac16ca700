"""What a language model is shown of an agent: what it said and did, less what was meant for whoever judges it.

A model that reads "I was thorough" may believe it, and then quote another sentence for it, so checking quotes is not
enough. Such sentences are left out without a trace: a turn with one behind it is shown as the turn without it, so the
question is the same, and no model can answer it otherwise. Turns keep their numbers, though nothing may be left of one.

It leaves out too much rather than too little, which costs an agent at most the credit for that sentence. It must never
spare an agent a penalty, though: about bad conduct the model is asked with all that was said, too (`inquiry`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from personas.acts import read_turn
from personas.disguise import undisguised
from personas.memory import remembered
from personas.wording import any_of, plain
from reward_server.errors import BodyTooLarge
from reward_server.judges.base import Evidence
from reward_server.judges.prompt import TOO_LONG
from reward_server.scoring.gates import tool_texts
from reward_server.scoring.judge_talk import ROLE_LINE, is_for_the_judge
from reward_server.scoring.transcript import Transcript, Turn

_END = re.compile(r"(?:(?<![^\w\s])(?=[^\w\s]*[.!?\u2026])[^\w\s]++(?=\s|\Z)|[\u3002\uff01\uff1f]+|\n[^\S\n]*\n)\s*+")
"""Where a sentence ends: a full stop among signs before a space, a full stop of other scripts, an empty line."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ANSWER = r"(?:thought process|reasoning|(?:final )?answer|solution|analysis|response)"
_LABEL = re.compile(
    any_of(
        rf"\W*{_ANSWER}\W*(?: (?=(?-i:[A-Z][a-z']* [a-z]))|:\W*?(?:\s+|$))",
        r"\W*(?:thinking|explanation|step \d+|verdict|score|grade|rating|result|evaluation|overall)\W*?:\W*?(?:\s+|$)",
        r"\W*(?:(?:okay|ok|so|well|sure)\W+)?here(?:'s| is) (?:the|my) (?:final )?(?:answer|solution|verdict|reasoning)"
        r"\W*?:\W*?(?:\s+|$)",
        r"[:;.,|`{}\[\]]+\s+",
    ),
    re.IGNORECASE,
)
"""A label that stands for an answer, or signs before a sentence; what follows is shown."""
_VIRTUE = (
    r"(?:empathy|sympathy|rapport|discovery|open (?:questions?|ended)|next steps?|safety|summar(?:y|ies)|politeness"
    r"|active listening|listening|professionalism|honesty|patience|kindness|clarity|accuracy|closing)"
)
_VERDICT = re.compile(
    any_of(
        rf"(?:\b{_VIRTUE}\W{{1,4}}){{2}}(?:and )?{_VIRTUE}\b",
        r"(?<![\w\"':(])\[x\] \w",
        r"\b(?:all|every|each|both) (?:\w+ ){0,2}(?:checks?|tests?|criteri\w+|box(?:es)?|requirements?) "
        r"(?:\w+ )?(?:passed|met|ticked|fulfilled|satisfied)\b",
        r"\b(?:tick|check|mark) (?:every|all|each)(?: of)?(?: the)? (?:box|item|criteri|requirement)",
        r"^\W*(?:overall|result|verdict|conclusion|assessment)\W*[:=]\W*(?:\w+ )?(?:excellent|perfect|outstanding"
        r"|flawless|exemplary|pass(?:ed)?|met|100 ?%|full)\b",
        r"\b(?:perfect|full|top|maximum) (?:marks?|scores?|grades?|rating) (?:is|are|was|were|would|should|will)\b",
        r"\b(?:reviewer|rater|grader|evaluator|examiner|scorer|assessor)s? (?:should|must|please)\b",
        r"\b(?:reading|read) this to (?:assess|judge|grade|rate|score|evaluate|review)\b",
        r"\b(?:assess|judge|grade|rate|score|evaluate) me\b(?! (?:for|by|on) (?:the )?(?:loan|credit))",
        r"^\W*(?:therefore|thus|hence|so),? the answer is (?:yes|no|correct|right|met|true|clear)\b",
        r"^\W*q\.? ?e\.? ?d\b\W*$",
        r"^\W*(?:let me|i will|i'll) (?:answer (?:that|this|it) for you|speak for both of us)\b",
        r"\b(?:nobody|no one) could have \w+ (?:\w+ ){0,3}(?:better|more)\b",
        r"\bi(?:'ve| have)? (?:asked|explained|listened|summed up|summari[sz]ed|understood|took|taken|considered"
        r"|covered|addressed|answered|treated)\b[^.?!]{0,60}\b(?:clearly|carefully|seriously|thoroughly|patiently|fully"
        r"|properly|all along|throughout|before i)\b",
        r"\bwith me you(?:'re| are| were| have| had)\b",
        r"^\W*as (?:the|your|an?) (?:caller|customer|client|patient|student|user|persona|buyer|tenant),? i\b",
    ),
    re.IGNORECASE,
)
"""Verdicts, checklists, words of praise for itself and requests for lenience that only who is marked would say."""
_TABLE = re.compile(
    r"^\W*\|\W*(?:criteri\w+|requirements?|rubric|met|verdict|score|passed)\b\W*\|", re.IGNORECASE | re.MULTILINE
)
_OTHERS = re.compile(
    any_of(
        r"^\s*>+\s",
        r"^\s*(?:them|me|you|they|caller|buyer|seller|tenant|guest)\s*:\s",
        r"^\s*[(*_\[]+\s*(?:the )?(?:caller|customer|client|patient|student|user|persona|buyer|they|he|she)\b.*[)*_\]]",
    ),
    re.IGNORECASE,
)
"""Lines that quote or tell what another speaker says or does."""
_EDGES = " \t\n.,;:!?"
_MARKS = re.compile(r"[*_#`~]+")


def as_shown(transcript: Transcript) -> Transcript:
    """The transcript as a language model is shown it.

    Raises:
        BodyTooLarge: the input of a tool is nested too deep to be read.
    """
    try:
        return replace(transcript, turns=tuple(map(_turn, transcript.turns)))
    except RecursionError:
        raise BodyTooLarge(TOO_LONG) from None


def is_whole(shown: Transcript, transcript: Transcript) -> bool:
    """Whether nothing but space was left out."""
    pairs = zip(shown.turns, transcript.turns, strict=True)
    return all(one.agent == turn.agent.strip() and one.uses == turn.uses for one, turn in pairs)


def as_said(transcript: Transcript, evidence: Evidence) -> Evidence:
    """Evidence to the letter: of a quote that goes across words that were left out, the longer part."""
    said = transcript.said_by(evidence.role, evidence.turn)
    if evidence.quote in said:
        return evidence
    beginning, end = _longest(evidence.quote, said, 1), _longest(evidence.quote, said, -1)
    return replace(evidence, quote=max(beginning, end, key=len).strip(_EDGES))


def is_evidence(transcript: Transcript, evidence: Evidence) -> bool:
    """Whether a quote holds anything but words that were meant for a judge."""
    if evidence.role != "agent":
        return True
    shown = shown_of(transcript.said_by("agent", evidence.turn))
    return any(sentence in shown for sentence in _sentences(shown_of(evidence.quote)))


@remembered(4096, longest=20_000)
def shown_of(text: str) -> str:
    """A text of an agent without what was meant for a judge."""
    own = "".join(line for line in _LINE.findall(text) if not _is_anothers(line))
    keeps_signs = text.count("```") > 1
    return "".join(_left_of(sentence, keeps_signs) for sentence in _sentences(own)).strip()


def _sentences(text: str) -> Iterator[str]:
    """The text cut behind each sentence and the space after it."""
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    if start < len(text):
        yield text[start:]


def _left_of(sentence: str, keeps_signs: bool) -> str:
    """What is left of a sentence: nothing, some of its lines, what stands behind a label, or all of it."""
    if not keeps_signs and _is_bare(sentence):
        return ""
    lines = [line for line in _LINE.findall(sentence) if not _is_for_a_judge(line)]
    if _TABLE.search(sentence):
        lines = [line for line in lines if not line.lstrip().startswith("|")]
    left = "".join(lines if keeps_signs else map(_without_label, lines))
    return "" if _is_for_a_judge(left) else left


def _without_label(line: str) -> str:
    label = _LABEL.match(line)
    return line[label.end() :] if label else line


def _is_anothers(line: str) -> bool:
    """Whether a line poses as another speaker's, or tells what somebody else does."""
    read = undisguised(line)
    return bool(ROLE_LINE.match(read) or _OTHERS.match(read))


def _is_bare(text: str) -> bool:
    """Whether there are signs alone, and no picture among them."""
    return not any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def _is_for_a_judge(text: str) -> bool:
    read = " ".join(plain(undisguised(text)).split())
    bare = _MARKS.sub("", read).strip()
    return any(is_for_the_judge(each) or _VERDICT.search(each) for each in {read, bare} if each) or read_turn(read).meta


def _longest(quote: str, said: str, step: int) -> str:
    """The longest beginning (step 1) or end (step -1) of a quote that was said; by halves, as every shorter one was."""
    low, high = 0, len(quote)
    while low < high:
        middle = (low + high + 1) // 2
        part = quote[:middle] if step > 0 else quote[-middle:]
        low, high = (middle, high) if part in said else (low, middle - 1)
    return quote[:low] if step > 0 else quote[len(quote) - low :]


def _turn(turn: Turn) -> Turn:
    changed = any(shown_of(text) != text.strip() for text in tool_texts(turn))
    uses = tuple(replace(use, input=_value(use.input)) for use in turn.uses) if changed else turn.uses
    return replace(turn, agent=shown_of(turn.agent), uses=uses)


def _value(value: Any) -> Any:
    """A tool's input with its texts as they are shown, and without fields whose names are no names."""
    if isinstance(value, Mapping):
        return {name: _value(one) for name, one in value.items() if shown_of(name) == name.strip()}
    if isinstance(value, list):
        return [_value(one) for one in value]
    return shown_of(value) if isinstance(value, str) else value
