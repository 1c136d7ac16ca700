"""Reads one agent turn: which sentences ask, state, comfort, insult, say goodbye, or make no sense.

A question needs the form of a question; a list of keywords is none, with or without a question mark. The
reading depends on the text alone, never on the case, so it is the same for the simulator and for scoring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from personas import lexicon, manners
from personas.clauses import BEGINNING, Aside, asides
from personas.disguise import undisguised, unturned
from personas.joints import PICTURE, unglued
from personas.legible import is_odd, readings
from personas.meant import void_among
from personas.memory import remembered
from personas.noise import without_noise
from personas.rudeness import is_rude
from personas.wording import FUNCTION_WORDS, any_of, content_words, plain, tokens

MAX_SENTENCE_CHARS = 320
SEAM = MAX_SENTENCE_CHARS // 2
MAX_QUESTIONS = 12
MAX_STATEMENTS = 24
QUESTIONS_A_TURN = 3
"""More questions than this in one turn are an interrogation."""


class Kind(StrEnum):
    """What a sentence does."""

    QUESTION = "question"
    STATEMENT = "statement"
    KEYWORDS = "keywords"  # a list of content words without grammar
    NOISE = "noise"  # no words, another language, machine text
    META = "meta"  # about the simulation, its prompt or its scoring


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and what it does."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that can be told from the text of one agent turn alone."""

    sentences: tuple[Sentence, ...]
    questions: tuple[str, ...]
    """One entry per thing asked: joined questions are split."""
    statements: tuple[str, ...]
    rest: tuple[Sentence, ...]
    """Questions and statements beyond those: too many to compare, but what they promise is not overlooked."""
    empathy: tuple[str, ...]
    """Sentences with an expression of sympathy, respect or encouragement."""
    check_ins: frozenset[str]
    """Those of `questions` that only steer the talk ("Does that make sense?")."""
    closings: frozenset[str]
    """Those that ask for a word on the statement before them ("What do you say?"): they are about no topic."""
    rude: bool
    farewell: bool
    garbled: bool
    """Nothing in it is a sentence of the persona's language."""
    meta: bool
    stuffed: bool
    interrogation: bool
    open_question: bool
    buried: tuple[str, ...] = ()
    """Questions among noise, in code or beside talk about the simulation: too many are too many all the same."""
    fenced: tuple[str, ...] = ()
    """Sentences in blocks of code, which are not said to the persona."""
    made_out: tuple[str, ...] = ()
    """What can be read out of odd spellings; none of it is said clearly."""
    asides: tuple[Aside, ...] = ()
    """What is stated within a sentence that does something else, too, or only looks like a question."""
    void: frozenset[str] = frozenset()
    """Sentences that are not meant as they say: denied, taken back, made up, or words in any order."""


_BREAK = re.compile(r"(?<=[.!?\u2026])[\"')\]]*\s+| ?\n\s*(?:[-*\u2022]\s+|\d{1,2}[.)]\s+)?|(?<=[?!])(?=[A-Z])")
_LABEL = re.compile(
    any_of(
        r"^(?i:thought process|reasoning|(?:final )?answer|solution|analysis|response)"
        r"(?: ?: ?| (?=[A-Z][a-z']* [a-z]))",
        r"^(?:(?i:(?:in )?conclusion|therefore|thus|hence|ergo|consequently|accordingly|result|outcome|output|verdict"
        r"|decision|rationale|justification|explanation|evidence|observation|finding|comment|remark|reply|note|statement"
        r"|thoughts?|recommendation|plan|action|bottom line|next step|tl;?dr"
        r"|(?:step|question) (?:\d{1,2}|one|two|three)|question|agent|assistant)"
        r"(?: ?: ?| ?[\u2013\u2014] ?| -{1,2} )|(?i:q|a|me): )+(?=\w)",
    )
)
"""Labels that stand for an answer ("master keys", arXiv 2507.08794); what follows is read without them."""
_STRAY = re.compile(r"^[:;.,]+\s+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|dr|mr|mrs|ms|prof|st|vs|approx|a\.m|p\.m|inc|ltd|fig)\.$", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*\u2022>]+|\(?\d{1,2}[.)]|\(?[a-h][.)])\s+")
_JOINT = re.compile(r"^(?:(?:and|but|or|also|plus)\b[, ]*)+", re.IGNORECASE)
_CODE = re.compile(r"```(?:.*?```)?", re.DOTALL)
"""A fence that is never closed hides nothing behind it."""
_SHORT_WORDS, _LEAST_RUN = 2, 3
_RULE = re.compile(r"([^\w\s])\1{3,}")
_SPACES = re.compile(r"[^\S\n]+")
_NUMBER = re.compile(r"\(?\d{1,2}[.)]")
_MACHINE = re.compile(
    r"```|</?\w+[^>]{0,80}>|[{}\[\]|\\^~]{2,}|[{\[]\s*\"|\"\s*:\s*[\"{\[\d]|[A-Za-z0-9+/=_-]{40,}|0x[0-9a-f]{6,}"
)
_FORMS_AT_START = (lexicon.QUESTION_START, lexicon.AUX_START, lexicon.ELLIPTIC, lexicon.WH_PHRASE)
_CLAUSE_FORMS = (lexicon.QUESTION_START, lexicon.ELLIPTIC_CLAUSE)
_FORMS_ANYWHERE = (lexicon.INVERSION, lexicon.WH_INVERSION, lexicon.INDIRECT)
_STOP_WITHIN = re.compile(rf"[^\W\d_](?:[.?!\u2026]|{PICTURE})+[^\W\d_]")
_LINE_END = re.compile(r"(?<=[^\W_])[ \t]*\n\s*(?:[-*\u2022]\s+|\d{1,2}[.)]\s+)?(?=[A-Za-z])")
_LINE_WITHIN = re.compile(r"(?<=[^\s.?!:])[ \t]*-?\n\s*(?=[a-z])")
_LETTER = re.compile(r"[^\W\d_]")


def split_sentences(text: str) -> list[str]:
    """Sentences in order; bullets and lines count as sentences of their own."""
    pieces: list[str] = []
    glue = False
    # Runs of spaces go first: they would make the search for line breaks quadratic.
    line = _RULE.sub(r"\1\1\1", plain(undisguised(text)).replace("\r", "\n"))
    line = _SPACES.sub(" ", _CODE.sub("\n```\n", unglued(line)))
    for piece in map(str.strip, _BREAK.split(line)):
        if not piece or _NUMBER.fullmatch(piece):
            continue
        if glue:
            pieces[-1] = f"{pieces[-1]} {piece}"
        else:
            pieces.append(_LABEL.sub("", _STRAY.sub("", _BULLET.sub("", piece))) or piece)
        glue = bool(_ABBREVIATION.search(piece))
    return [part for piece in pieces for clause in _run_on(piece) for part in _portions(clause)]


def _run_on(piece: str) -> list[str]:
    """A sentence that is too long for one, where another seems to begin in it."""
    return [piece] if len(piece) <= MAX_SENTENCE_CHARS else BEGINNING.split(piece)


def _portions(piece: str) -> Iterator[str]:
    """A sentence, in portions if it is too long for one: nothing is hidden behind its beginning."""
    while len(piece) > MAX_SENTENCE_CHARS:
        cut = piece.rfind(" ", 1, MAX_SENTENCE_CHARS)
        cut = cut if cut > 0 else MAX_SENTENCE_CHARS
        yield piece[:cut]
        piece = piece[cut:].lstrip()
    if piece:
        yield piece


def seams(sentences: tuple[Sentence, ...]) -> tuple[str, ...]:
    """The text around each place where a sentence was cut: an expression may stand on both sides of it."""
    cut = (pair for pair in pairwise(sentences) if len(pair[0].text) >= SEAM and pair[0].text[-1] not in ".!?\u2026")
    return tuple(f"{left.text[-SEAM:]} {right.text[:SEAM]}" for left, right in cut)


def _is_noise(text: str, words: list[str]) -> bool:
    letters = _LETTER.findall(text)
    if not letters or len(letters) * 2 < len(text.replace(" ", "")):
        return True
    if _MACHINE.search(text):
        return True
    if sum(not letter.isascii() for letter in letters) * 4 > len(letters):
        return True
    return _is_foreign(words)


def _is_foreign(words: list[str]) -> bool:
    english = sum(word in FUNCTION_WORDS and word not in manners.FOREIGN_WORDS for word in words)
    foreign = sum(word in manners.FOREIGN_WORDS and word not in FUNCTION_WORDS for word in words)
    if foreign > english:
        return foreign >= 2 or (not english and len(words) <= 4)
    return not english and sum(not word.isascii() for word in words) * 2 >= len(words)


def _is_keywords(words: list[str]) -> bool:
    grammar = sum(word in FUNCTION_WORDS for word in words)
    return len(words) >= 5 and grammar * 6 < len(words)


def _asks(text: str, words: list[str]) -> bool:
    """Whether a sentence has the form of a question."""
    low = text.lower()
    marked = low.rstrip("\"') ").endswith("?") or "?" in low[-4:]
    if not marked:
        return bool(lexicon.UNMARKED.match(low))
    if not any(word in FUNCTION_WORDS for word in words):
        return False
    if any(form.match(low) for form in _FORMS_AT_START) or any(form.search(low) for form in _FORMS_ANYWHERE):
        return True
    # A declarative question ("You have had this before?") needs ordinary grammar.
    return sum(word in FUNCTION_WORDS for word in words) * 4 >= len(words)


def _kind(text: str) -> Kind:
    low = text.lower()
    if manners.META.search(low) or manners.META_MARKUP.search(low):
        return Kind.META
    words = tokens(text)
    if _is_noise(text, words):
        return Kind.NOISE
    if _is_keywords(words) and not lexicon.QUESTION_START.match(low):
        return Kind.KEYWORDS
    if _asks(text, words):
        return Kind.QUESTION
    return Kind.STATEMENT


def _clauses(question: str) -> list[str]:
    """Splits questions that were joined in one sentence; a lead-in that asks nothing stays attached."""
    low = question.lower()
    breaks = (found for found in lexicon.CLAUSE_BREAK.finditer(low) if found.group().strip())
    cuts = [found.start() for found in breaks if 8 <= found.start() <= len(low) - 8]
    clauses: list[str] = []
    start = 0
    for cut in cuts:
        left, right = _trimmed(question[start:cut]), _trimmed(question[cut:])
        if _stands_alone(left) and _stands_alone(right) and not lexicon.SUBORDINATE.match(left.lower()):
            clauses.append(f"{left}?")
            start = cut
    clauses.append(_trimmed(question[start:], end="") if start else question.strip())
    return clauses


def _trimmed(clause: str, end: str = "?") -> str:
    """A clause without what joined it to its neighbours."""
    return _JOINT.sub("", clause.strip(" ,;:-\u2014" + end))


def _stands_alone(clause: str) -> bool:
    words = tokens(clause)
    enough = len(words) >= 3 or (len(words) == 2 and bool(content_words(clause)))
    return enough and any(form.match(clause.lower()) for form in _CLAUSE_FORMS)


def _bare(text: str) -> str:
    return text.lower().strip(" .?!,\"'")


@remembered(4096, longest=10_000)
def sentences_of(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text and what each does: all that can be told without reading it in other ways."""
    return tuple(Sentence(piece, _kind(piece)) for piece in split_sentences(text))


@remembered(4096, longest=10_000)
def read_turn(text: str) -> Reading:
    """What an agent turn does; cached, because scoring reads the same turns again and again."""
    sentences = sentences_of(text)
    fenced = tuple(s for block in _CODE.findall(text) for s in split_sentences(block.strip("`")))
    runs = (*_runs(sentences, _LEAST_RUN), *_uncut(text))
    made_out = tuple(dict.fromkeys(_made_out((*(each.text for each in sentences), *fenced), runs)))
    questions: list[str] = []
    for sentence in sentences:
        if sentence.kind is Kind.QUESTION:
            questions += _clauses(sentence.text)
    statements = [sentence.text for sentence in sentences if sentence.kind is Kind.STATEMENT]
    closings = frozenset(_closings(sentences))
    check_ins = closings | frozenset(q for q in questions if lexicon.CHECK_IN.match(_bare(q)))
    buried = tuple(_buried(sentences, fenced))
    spoken = [s.text for s in sentences if s.kind in (Kind.QUESTION, Kind.STATEMENT)]
    lows = [s.lower() for s in spoken]
    return Reading(
        sentences=sentences,
        questions=tuple(questions[:MAX_QUESTIONS]),
        statements=tuple(statements[:MAX_STATEMENTS]),
        rest=(
            *(Sentence(text, Kind.STATEMENT) for text in statements[MAX_STATEMENTS:]),
            *(Sentence(text, Kind.QUESTION) for text in questions[MAX_QUESTIONS:]),
        ),
        empathy=tuple(s for s, low in zip(spoken, lows, strict=True) if manners.EMPATHY.search(low)),
        check_ins=check_ins,
        closings=closings,
        # Offence is taken at whatever it is written among: noise beside it hides none.
        rude=any(
            map(
                is_rude,
                (*(s.text for s in sentences), *seams(sentences), *fenced, *runs, *_runs(sentences, 2), *_in_one(text)),
            )
        ),
        farewell=not (set(questions) - check_ins) and any(manners.FAREWELL.search(low.rstrip(" .!")) for low in lows),
        garbled=all(s.kind is Kind.NOISE for s in sentences),
        meta=any(s.kind is Kind.META for s in sentences),
        stuffed=any(s.kind is Kind.KEYWORDS for s in sentences),
        interrogation=len(questions) - len(check_ins) + len(buried) > QUESTIONS_A_TURN,
        buried=buried,
        fenced=fenced,
        made_out=made_out,
        asides=tuple(dict.fromkeys(_asides(sentences, made_out))),
        void=void_among([each.text for each in sentences]),
        open_question=any(lexicon.OPEN_QUESTION.match(q.lower()) for q in questions if q not in check_ins),
    )


def _buried(sentences: Iterable[Sentence], fenced: Iterable[str]) -> Iterator[str]:
    """What would be asked in sentences that are no speech to anybody, were there nothing else in them."""
    noise = (each.text for each in sentences if each.kind not in (Kind.QUESTION, Kind.STATEMENT))
    for meant in map(without_noise, (*noise, *fenced)):
        starts = (form.search(meant.lower()) for form in _FORMS_ANYWHERE)
        parts = (meant, *(meant[found.start() :].lstrip(" ,;:-") for found in starts if found))
        asked = next((part for part in parts if _kind(part) is Kind.QUESTION), None)
        clauses = _clauses(asked) if asked else []
        yield from (each for each in clauses if not lexicon.CHECK_IN.match(_bare(each)))


def _runs(sentences: tuple[Sentence, ...], least: int) -> Iterator[str]:
    """So many sentences of a word or two in a row, or more, as one: "Please! tell! me!"."""
    run: list[str] = []
    for text in (*(each.text for each in sentences), ""):
        if text and len(text.split()) <= _SHORT_WORDS:
            run.append(text)
            continue
        if len(run) >= least:
            joined = " ".join(run)
            yield from (joined[at : at + MAX_SENTENCE_CHARS] for at in range(0, max(1, len(joined) - SEAM), SEAM))
        run = []


def _uncut(text: str) -> Iterator[str]:
    """What was cut in its middle, in one piece: at a sign without a space, or at the end of a line."""
    yield from unturned(text)
    shown = plain(undisguised(text))
    if _STOP_WITHIN.search(shown) or _LINE_WITHIN.search(shown):
        for joined in dict.fromkeys((_LINE_WITHIN.sub(" ", shown), _LINE_WITHIN.sub("", shown))):
            yield from (piece for each in _BREAK.split(joined) if each for piece in _portions(each.strip()))


def _in_one(text: str) -> Iterator[str]:
    """Lines that end without a stop, with the next: an expression may stand on both sides of a break."""
    shown = plain(undisguised(text))
    if _LINE_END.search(shown):
        joined = _LINE_END.sub(" ", shown)
        yield from (piece for each in _BREAK.split(joined) if each for piece in _portions(each.strip()))


def _made_out(texts: Iterable[str], runs: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if is_odd(text):
            yield from (each for each in readings(text) if each != text.lower().rstrip(".?!"))
    for run in runs:
        yield from readings(run)


def _asides(sentences: Iterable[Sentence], made_out: Iterable[str]) -> Iterator[Aside]:
    for sentence in sentences:
        yield from asides(sentence.text, whole=sentence.kind is not Kind.STATEMENT)
    for text in made_out:
        yield from asides(text)


def _closings(sentences: tuple[Sentence, ...]) -> Iterator[str]:
    for before, sentence in pairwise(sentences):
        fresh = before.kind is not Kind.QUESTION and sentence.kind is Kind.QUESTION
        if fresh and lexicon.CLOSING.match(_bare(sentence.text)):
            yield sentence.text
