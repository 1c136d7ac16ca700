"""What an agent's words mean in a case, whatever the state: topics asked about, commitments made, comfort given.

The part of hearing that needs the text encoder and the patterns. It depends on case, matcher and text alone, so
it is remembered: the turn of an episode and every replay that scores it share the work. What the words are
worth in a state (gates, repetition, rapport) is `hearing`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

from personas.acts import MAX_STATEMENTS, Kind, Reading, read_turn, seams
from personas.clauses import Aside, asides
from personas.compiled import CompiledCase, CompiledCommitment
from personas.idle import bare
from personas.manners import COURTESY_ANCHORS, FEELING
from personas.matcher import Matcher
from personas.matching import Match, Similarity, match
from personas.meant import is_void
from personas.memory import KEPT_CHARS, Memory
from personas.respelling import Vocabulary
from personas.wording import content_stems, content_words, stems, tokens

__all__ = ["Question", "Understood", "not_yet_understood", "texts_to_compare", "understand"]

EMPATHY_COSINE = 0.68
OFFER_MATCH = 0.70
"""An offer in the form of a question asks for a topic, too, only if it is at least as close to it as this."""
LEAST_LIKE = 0.25
"""What only has the words of a commitment has to be so much like an example of it to earn anything."""
CLOSE, STRANGE = 0.6, 2
"""So many meaningful words of no text of the case make it a sentence about something else, unless it is so close."""
ONE_MATTER = 16
"""Words, at most, of a sentence that says one thing: of a longer one each part is looked at alone."""
MOST_PARTS = MAX_STATEMENTS
MOST_UNCLEAR = 2 * MAX_STATEMENTS
KEPT_TEXTS = 16_384
_SPEECH = frozenset({Kind.STATEMENT, Kind.QUESTION})
_PART_ENDS = re.compile(r"[,;:\u2013\u2014]\s+|\s(?=(?:and|but|because|so) )")
"""Where a sentence may go on to another matter."""
_ESCAPE = re.compile(r"\\[a-z]")


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """One thing asked."""

    text: str
    match: Match | None
    stray: bool
    """It is about nothing in the case, and neither steers the talk nor offers anything."""
    offers: bool
    """It makes a commitment in the form of a question."""


@dataclass(frozen=True, slots=True, repr=False)
class Comfort:
    """A sympathetic sentence."""

    gist: str
    """Its meaningful words."""
    sentence: str
    courteous: bool
    """Thanks, praise or encouragement, which name nothing that the other feels."""


@dataclass(frozen=True, slots=True, repr=False)
class Understood:
    """The meaning of an agent's text. Private: it names topics and commitments."""

    reading: Reading
    questions: tuple[Question, ...] = ()
    commitments: tuple[tuple[CompiledCommitment, str], ...] = ()
    """Each commitment that is made, with the first sentence that makes it and is about it, if there is one."""
    vague: frozenset[str] = frozenset()
    """Those of them, by id, of which the agent only has words: the persona answers, but they earn nothing."""
    muttered: tuple[tuple[CompiledCommitment, str], ...] = ()
    """Commitments that the persona does not rely on: among noise, lists of words and talk about the simulation, or in
    sentences that are not meant as they say."""
    comforts: tuple[Comfort, ...] = ()
    """Every sympathetic sentence."""


@dataclass(frozen=True, slots=True, repr=False)
class _Beside:
    """What is compared with a case beside the sentences of a turn."""

    unclear: tuple[Aside, ...]
    parts: tuple[str, ...]
    """Of sentences that have words of a commitment, and sentences beyond those that are always compared; not all."""


_Made = Sequence[tuple[CompiledCommitment, Sequence[str]]]
"""The sentences that make each commitment."""
_kept_beside: Memory[tuple[CompiledCase, Reading], _Beside] = Memory(512)
_known: Memory[tuple[CompiledCase, Matcher, str], Understood] = Memory(KEPT_TEXTS)


def texts_to_compare(case: CompiledCase, reading: Reading) -> tuple[str, ...]:
    """The texts of a turn that are compared with the case."""
    beside = _beside(case, reading)
    return (*reading.questions, *reading.statements, *beside.parts, *(aside.clause for aside in beside.unclear))


def _beside(case: CompiledCase, reading: Reading) -> _Beside:
    """Worked out once for the texts of a turn and once more for what they mean."""
    key = (case, reading)
    known = _kept_beside.recall([key])
    if key not in known:
        known = {key: _Beside(_unclear(case, reading), tuple(islice(_worded_parts(case, reading), MOST_PARTS)))}
        _kept_beside.keep(known)
    return known[key]


def _worded_parts(case: CompiledCase, reading: Reading) -> Iterator[str]:
    crowded = frozenset(each.text for each in reading.rest)
    for sentence in (*reading.statements, *reading.questions, *(each.text for each in reading.rest)):
        worded = [commitment for commitment in case.commitments if _any_match(commitment.patterns, sentence)]
        if worded and sentence in crowded:
            yield sentence
        yield from (each for each in _parts(sentence) if any(_any_match(c.patterns, each) for c in worded))


def _parts(sentence: str) -> list[str]:
    """The parts of a sentence that says several things; none if it says one."""
    parts = _PART_ENDS.split(sentence)
    return parts if len(parts) > 1 else []


def _unclear(case: CompiledCase, reading: Reading) -> tuple[Aside, ...]:
    """What is no speech, where long sentences were cut, and what only might be meant: as many as of the others.

    Each with the text whose words decide whether it is meant otherwise: for a clause its sentence, else itself.
    """
    noise = tuple(s.text for s in reading.sentences if s.kind not in _SPEECH)
    written = (*reading.statements, *reading.questions, *noise, *reading.made_out, *reading.fenced)
    respelt = tuple(_respelt(case, written))
    whole = [Aside(t, t) for t in (*noise, *reading.made_out, *seams(reading.sentences), *reading.fenced, *respelt)]
    crowded = [Aside(each.text, each.text) for each in reading.rest]
    bared = [Aside(plain, plain) for text in written for plain in bare(text)]
    clauses = (*bared, *crowded, *reading.asides, *(each for text in respelt for each in asides(text)))
    if len(whole) > MOST_UNCLEAR:  # What is near a commitment first: nothing else pushes it out.
        whole.sort(key=lambda aside: not _is_near(case, aside.clause))
    return (*whole[:MOST_UNCLEAR], *[each for each in clauses if _is_near(case, each.clause)][:MOST_UNCLEAR])


@lru_cache(maxsize=256)
def _vocabulary(texts: tuple[str, ...]) -> Vocabulary:
    """Made when a case is first played: most of those that are compiled never are."""
    return Vocabulary(texts)


def _respelt(case: CompiledCase, texts: Iterable[str]) -> Iterator[str]:
    """Those of the texts in which misspelt words may be some of a commitment, with those words."""
    promised = _vocabulary(case.promised)
    for text in texts:
        respelt, written = promised.respelt(text), text.lower().split()
        if content_stems(respelt) - content_stems(text) or len(set(written) - set(respelt.split())) >= 2:
            yield respelt
        rejoined = promised.rejoined(" ".join(tokens(text)))
        if rejoined is not None:
            yield rejoined


def _is_near(case: CompiledCase, clause: str) -> bool:
    """Whether a clause is worded as a commitment, or has enough words in common with an example of one."""
    meaning, words = content_stems(clause), frozenset(stems(clause))
    return (
        any(len(meaning & gist) * 2 >= max(4, min(len(meaning), len(gist))) for gist in case.promises)
        or any(len(words & phrase) * 4 >= len(phrase) * 3 for phrase in case.phrases)
        or any(_worded(commitment, clause) for commitment in case.commitments)
    )


def understand(case: CompiledCase, matcher: Matcher, texts: Sequence[str]) -> list[Understood]:
    """The meaning of each text; blocking, because the matcher may run a model, at most once for all of them."""
    keys = [(case, matcher, text) for text in texts]
    known = _known.recall(keys)
    missing = dict.fromkeys(key for key in keys if key not in known)
    if missing:
        readings = {key: read_turn(key[-1]) for key in missing}
        similarity = Similarity(
            case, matcher, (t for reading in readings.values() for t in texts_to_compare(case, reading))
        )
        fresh = {key: _understood(case, reading, similarity) for key, reading in readings.items()}
        _known.keep({key: value for key, value in fresh.items() if len(key[-1]) <= KEPT_CHARS})
        known |= fresh
    return [known[key] for key in keys]


def not_yet_understood(case: CompiledCase, matcher: Matcher, texts: Sequence[str]) -> list[str]:
    """The sentences that understanding the texts will compare with the case."""
    known = _known.recall((case, matcher, text) for text in texts)
    return [t for text in texts if (case, matcher, text) not in known for t in texts_to_compare(case, read_turn(text))]


def _understood(case: CompiledCase, reading: Reading, similarity: Similarity) -> Understood:
    made = [(commitment, tuple(_made_in(commitment, reading, similarity))) for commitment in case.commitments]
    muttered = tuple(_muttered(case, reading, similarity, made))
    heard = tuple(_heard(case, reading, similarity, made))
    if reading.garbled or reading.meta:
        return Understood(reading, muttered=(*((commitment, quote) for commitment, quote, _ in heard), *muttered))
    return Understood(
        reading,
        muttered=muttered,
        questions=tuple(_question(case, question, reading, similarity) for question in reading.questions),
        commitments=tuple((commitment, quote) for commitment, quote, _ in heard),
        vague=frozenset(commitment.id for commitment, _, is_about_it in heard if not is_about_it),
        comforts=tuple(_comforts(case, reading, similarity)),
    )


def _question(case: CompiledCase, question: str, reading: Reading, similarity: Similarity) -> Question:
    found = match(case, question, similarity.row(question))
    offers = _offers(case, question, similarity)
    if question in reading.closings or (offers and found is not None and found.score < OFFER_MATCH):
        found = None
    stray = found is None and question not in reading.check_ins and not offers
    return Question(question, found, stray, offers)


def _comforts(case: CompiledCase, reading: Reading, similarity: Similarity) -> Iterable[Comfort]:
    if reading.rude:
        return
    span = case.empathy_span
    for sentence in (s.text for s in reading.sentences if s.text not in reading.void):
        if sentence in reading.empathy:
            courteous = not FEELING.search(sentence.lower())
        elif sentence in reading.statements:
            likeness = similarity.row(sentence)[span.start : span.stop]
            if likeness.max(initial=0.0) < EMPATHY_COSINE:
                continue
            courteous = int(likeness.argmax()) >= len(likeness) - len(COURTESY_ANCHORS)
        else:
            continue
        yield Comfort(" ".join(content_words(sentence)) or sentence.lower(), sentence, courteous)


def _made_in(commitment: CompiledCommitment, reading: Reading, similarity: Similarity) -> Iterator[str]:
    """The sentences that make a commitment, whether or not they mean it."""
    sentences = (*reading.statements, *reading.questions) if commitment.also_questions else reading.statements
    yield from (s for s in sentences if _makes(commitment, s, similarity))
    rest = (s.text for s in reading.rest if s.kind is Kind.STATEMENT or commitment.also_questions)
    yield from (s for s in rest if _worded(commitment, s))


def _heard(
    case: CompiledCase, reading: Reading, similarity: Similarity, made: _Made
) -> Iterator[tuple[CompiledCommitment, str, bool]]:
    """The commitments that are meant, each with a quote and whether that is about it."""
    for commitment, sentences in made:
        meant = [each for each in sentences if not _is_void(each, reading)]
        about = next((each for each in meant if _is_about(case, commitment, each, similarity)), None)
        if meant:
            yield commitment, about or meant[0], about is not None


def _muttered(
    case: CompiledCase, reading: Reading, similarity: Similarity, made: _Made
) -> Iterator[tuple[CompiledCommitment, str]]:
    unclear = _beside(case, reading).unclear
    for commitment, sentences in made:
        unsaid = (
            a.clause
            for a in unclear
            if _makes(commitment, a.clause, similarity) and not _any_match(commitment.unless, a.within)
        )
        quote = next(chain(unsaid, (each for each in sentences if _is_void(each, reading))), None)
        if quote is not None:
            yield commitment, quote


def _is_void(sentence: str, reading: Reading) -> bool:
    return sentence in reading.void or is_void(sentence)


def _is_about(case: CompiledCase, commitment: CompiledCommitment, sentence: str, similarity: Similarity) -> bool:
    """Whether a sentence with the words of a commitment is about it: single words of one may stand in any.

    Where there are no examples, the patterns alone say what it is about. Of too many parts some are not compared.
    """
    if commitment.span.start == commitment.span.stop:
        return True
    worded = (each for each in _parts(sentence) if _any_match(commitment.patterns, each))
    compared = {each: _likeness(commitment, each, similarity) for each in (sentence, *worded) if each in similarity}
    least, close = min(LEAST_LIKE, commitment.threshold), min(CLOSE, commitment.threshold)
    is_short = len(tokens(sentence)) <= ONE_MATTER
    return any(
        likeness >= close or (likeness >= least and _strange_words(case, sentence if is_short else each) < STRANGE)
        for each, likeness in compared.items()
    )


def _strange_words(case: CompiledCase, text: str) -> int:
    """How many meaningful words of a text stand in no text of the case; figures are none."""
    return sum(not any(map(str.isdigit, word)) for word in content_stems(text) - _words_of(case))


@lru_cache(maxsize=256)
def _words_of(case: CompiledCase) -> frozenset[str]:
    """The stems of the meaningful words of a case: of what is asked and told in it, and promised."""
    patterns = (_ESCAPE.sub(" ", each.pattern) for commitment in case.commitments for each in commitment.patterns)
    return frozenset(chain.from_iterable(map(content_stems, (*case.anchors, *case.wordings, *patterns))))


def _offers(case: CompiledCase, question: str, similarity: Similarity) -> bool:
    """Whether a question is a commitment in the form of one ("Shall we book you in for today?")."""
    return any(c.also_questions and _makes(c, question, similarity) for c in case.commitments)


def _makes(commitment: CompiledCommitment, sentence: str, similarity: Similarity) -> bool:
    if _likeness(commitment, sentence, similarity) >= commitment.threshold:
        return not _any_match(commitment.unless, sentence)
    return _worded(commitment, sentence)


def _likeness(commitment: CompiledCommitment, sentence: str, similarity: Similarity) -> float:
    """The cosine with the nearest example."""
    span = commitment.span
    return float(similarity.row(sentence)[span.start : span.stop].max(initial=0.0))


def _worded(commitment: CompiledCommitment, sentence: str) -> bool:
    return _any_match(commitment.patterns, sentence) and not _any_match(commitment.unless, sentence)


def _any_match(patterns: tuple[re.Pattern[str], ...], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)
