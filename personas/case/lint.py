"""Finds what the schema of a case cannot: gates that never open, lines that give facts away, dead references.

Messages name places and ids, never the text of a line, because they end up in terminals and build logs.
Whether questions find their topics needs a text encoder and is not checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from personas.case.compiled import merged_topics
from personas.case.library import load_temperaments
from personas.case.schema import RAPPORT_CEILING, Condition, Denial, Fact, PersonaCase, Tier, Topic, all_hold, named_in
from personas.text.wording import content_words, grams, normal, stem

MIN_ASKS = 3
MAX_LEFT_OUT = 2
"""How many volunteered facts an opening may leave to the first reply."""
GIVEAWAY = 0.6
"""A partial answer with this share of a wording's content words says too much."""

# Each line of a case is compared with all others.
_normal, _grams = lru_cache(4096)(normal), lru_cache(4096)(grams)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something an author has to change. `path` leads into the persona's part of the file."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class _Item:
    """A fact or denial and where it stands."""

    path: str
    item: Fact | Denial
    texts: Topic

    @property
    def tier(self) -> Tier:
        return self.item.tier if isinstance(self.item, Fact) else Tier.ASKED

    @property
    def gate(self) -> Condition:
        return self.item.gate if isinstance(self.item, Fact) else Condition()


@dataclass(frozen=True, slots=True)
class _Desk:
    """The data that all checks look at."""

    case: PersonaCase
    topics: Mapping[str, Topic]
    items: tuple[_Item, ...]
    final_tools: Collection[str]


def lint_case(case: PersonaCase, topics: Mapping[str, Topic], final_tools: Collection[str] = ()) -> list[Problem]:
    """All problems of a case; `final_tools` are ids of tools that may stand among its goals."""
    merged = merged_topics(case, topics)
    facts = [_Item(f"facts[{i}]", fact, merged[fact.id]) for i, fact in enumerate(case.facts)]
    denials = [_Item(f"denials[{i}]", denial, merged[denial.id]) for i, denial in enumerate(case.denials)]
    desk = _Desk(case, topics, (*facts, *denials), final_tools)
    return [problem for check in _CHECKS for problem in check(desk)]


def _ids(desk: _Desk) -> Iterator[Problem]:
    commitments = [(f"commitments[{i}]", c.id) for i, c in enumerate(desk.case.commitments)]
    places = [(entry.path, entry.item.id) for entry in desk.items] + commitments
    count = Counter(name for _, name in places)
    yield from (Problem(f"{path}.id", f"the id {name} is used twice") for path, name in places if count[name] > 1)


def _topics(desk: _Desk) -> Iterator[Problem]:
    for entry in desk.items:
        if entry.item.topic and entry.item.topic not in desk.topics:
            yield Problem(f"{entry.path}.topic", f"the collection has no topic {entry.item.topic}")


def _enough_questions(desk: _Desk) -> Iterator[Problem]:
    for entry in desk.items:
        asks = len(entry.texts.asks)
        if entry.tier in (Tier.ASKED, Tier.RAPPORT) and asks < MIN_ASKS:
            yield Problem(f"{entry.path}.asks", f"{asks} example questions, at least {MIN_ASKS} are needed")
        elif isinstance(entry.item, Fact) and entry.item.answer and not asks:
            yield Problem(f"{entry.path}.asks", "an answer nobody can ask for: there are no example questions")


def _distinct_questions(desk: _Desk) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for entry in desk.items:
        for ask in sorted({normal(ask) for ask in entry.texts.asks}):
            if owner.setdefault(ask, entry.path) != entry.path:
                yield Problem(f"{entry.path}.asks", f"shares an example question with {owner[ask]}")


def _gates(desk: _Desk) -> Iterator[Problem]:
    tiers = {entry.item.id: entry.tier for entry in desk.items}
    for entry in desk.items:
        gate, where = entry.gate, f"{entry.path}.gate"
        if entry.tier in (Tier.VOLUNTEERED, Tier.UNKNOWN) and gate != Condition():
            yield Problem(where, f"a fact of tier {entry.tier} has no gate")
        if entry.tier is Tier.ASKED and gate.rapport > 0:
            yield Problem(f"{where}.rapport", "only facts of tier rapport need rapport")
        if entry.tier is Tier.RAPPORT and gate.rapport <= 0:
            yield Problem(f"{where}.rapport", "a fact of tier rapport needs rapport above 0")
        for name in named_in(gate.requires):
            if tiers.get(name, Tier.UNKNOWN) is Tier.UNKNOWN:
                yield Problem(f"{where}.requires", f"{name} is nothing the persona can say")
    yield from _rapport_in_reach(desk)
    yield from _solvable(desk)


def _rapport_in_reach(desk: _Desk) -> Iterator[Problem]:
    known = load_temperaments()
    for i, slug in enumerate(desk.case.temperaments):
        if slug not in known:
            yield Problem(f"temperaments[{i}]", f"there is no temperament {slug}")
            continue
        for entry in desk.items:
            if entry.tier is Tier.RAPPORT and entry.gate.rapport + known[slug].reserve > RAPPORT_CEILING:
                needed = entry.gate.rapport + known[slug].reserve
                message = f"{slug} would need {needed:g} of rapport, {RAPPORT_CEILING:g} is the most there is"
                yield Problem(f"{entry.path}.gate.rapport", message)


def _solvable(desk: _Desk) -> Iterator[Problem]:
    """Opens gates until nothing changes; what is left waits for itself."""
    said: set[str] = set()
    waiting = [entry for entry in desk.items if entry.tier is not Tier.UNKNOWN]
    while ready := [entry for entry in waiting if all_hold(entry.gate.requires, said)]:
        said |= {entry.item.id for entry in ready}
        waiting = [entry for entry in waiting if entry not in ready]
    yield from (Problem(f"{entry.path}.gate.requires", "this gate can never open") for entry in waiting)


def _wordings(desk: _Desk) -> Iterator[Problem]:
    for entry in desk.items:
        again = entry.item.again if isinstance(entry.item, Fact) else None
        if entry.tier is not Tier.UNKNOWN and len(entry.item.says) < 2 and not again:
            yield Problem(f"{entry.path}.says", "give two wordings or an `again`, or it will repeat itself")
        forms = [_normal(line) for line in _revealing(entry.item)]
        for other in desk.items:
            lines = [_normal(line) for line in _revealing(other.item)] if other is not entry else []
            if any(form in line for form in forms for line in lines):
                yield Problem(f"{entry.path}.says", f"a wording is contained in one of {other.path}")


def _revealing(item: Fact | Denial) -> tuple[str, ...]:
    return (*item.says, item.again) if isinstance(item, Fact) and item.again else item.says


def _leaks(desk: _Desk) -> Iterator[Problem]:
    """Lines that may be said at any time must not tell a fact."""
    volunteered = {entry.item.id for entry in desk.items if entry.tier is Tier.VOLUNTEERED}
    for path, line in _harmless_lines(desk.case):
        for entry in desk.items:
            if entry.item.id in volunteered and path.startswith("openings"):
                continue
            if any(_normal(wording) in _normal(line) for wording in _revealing(entry.item)):
                yield Problem(path, f"contains a wording of {entry.path}")
            elif any(_grams(wording) & _grams(line) for wording in _revealing(entry.item)):
                yield Problem(path, f"repeats four content words of {entry.path} in a row")


def _harmless_lines(case: PersonaCase) -> Iterator[tuple[str, str]]:
    lists: list[tuple[str, Iterable[str]]] = [
        ("openings", case.openings),
        ("unknown", case.unknown),
        ("nudges", case.nudges),
        ("ending.farewell", case.ending.farewell),
    ]
    for i, fact in enumerate(case.facts):
        lists += [(f"facts[{i}].partial", [fact.partial or ""]), (f"facts[{i}].answer", [fact.answer or ""])]
    for i, commitment in enumerate(case.commitments):
        # A reply comes after what it rests on was said, so it may refer to it; an early one may not.
        lists.append((f"commitments[{i}].reply_early", commitment.reply_early))
    for path, lines in lists:
        yield from ((f"{path}[{i}]" if len(list(lines)) > 1 else path, line) for i, line in enumerate(lines) if line)


def _partials(desk: _Desk) -> Iterator[Problem]:
    for entry in desk.items:
        fact = entry.item
        if not isinstance(fact, Fact):
            continue
        if fact.answer and fact.tier is not Tier.UNKNOWN:
            yield Problem(f"{entry.path}.answer", "only facts of tier unknown have an answer")
        if fact.partial and fact.gate == Condition():
            yield Problem(f"{entry.path}.partial", "without a gate it is never said")
        if any(_gives_away(line, fact) for line in (fact.partial, fact.answer) if line):
            yield Problem(f"{entry.path}.partial", "says most of what the fact says")


def _gives_away(line: str, fact: Fact) -> bool:
    words = {stem(word) for word in content_words(line)}
    for wording in fact.says:
        needed = {stem(word) for word in content_words(wording)}
        if needed and len(needed & words) >= GIVEAWAY * len(needed):
            return True
    return False


def _openings(desk: _Desk) -> Iterator[Problem]:
    openings = desk.case.openings
    for i, opening in enumerate(openings):
        if normal(opening) in {normal(other) for other in openings[:i]}:
            yield Problem(f"openings[{i}]", "the same as an earlier opening")
        told = {stem(word) for word in content_words(opening)}
        left_out = 0
        for entry in desk.items:
            if entry.tier is Tier.VOLUNTEERED:
                needs = [{stem(word) for word in content_words(wording)} for wording in entry.item.says]
                left_out += not any(len(need & told) >= GIVEAWAY * len(need) for need in needs)
        if left_out > MAX_LEFT_OUT:
            yield Problem(f"openings[{i}]", f"leaves {left_out} volunteered facts to the first reply")


def _commitments(desk: _Desk) -> Iterator[Problem]:
    tiers = {entry.item.id: entry.tier for entry in desk.items}
    for i, commitment in enumerate(desk.case.commitments):
        path = f"commitments[{i}]"
        for name in named_in(commitment.after):
            if tiers.get(name, Tier.UNKNOWN) is Tier.UNKNOWN:
                yield Problem(f"{path}.after", f"{name} is nothing the persona can say")
        if commitment.after and not commitment.reply_early:
            yield Problem(f"{path}.reply_early", "needed, because the commitment can come too early")


def _goals(desk: _Desk) -> Iterator[Problem]:
    known = {c.id for c in desk.case.commitments} | set(desk.final_tools)
    for i, group in enumerate(desk.case.ending.goals):
        if not group:
            yield Problem(f"ending.goals[{i}]", "an empty group can never be met")
        for name in group:
            if name not in known:
                yield Problem(f"ending.goals[{i}]", f"{name} is neither a commitment nor a final tool")


def _bargain(desk: _Desk) -> Iterator[Problem]:
    bargain = desk.case.bargain
    if bargain is None:
        return
    amount = next((c.amount for c in desk.case.commitments if c.id == bargain.closes), None)
    if amount is None or amount.at_least is None or amount.at_most is None:
        yield Problem("bargain.closes", f"{bargain.closes} is no commitment with an amount from at_least to at_most")
    elif amount.at_least <= bargain.asking <= amount.at_most:
        yield Problem("bargain.asking", "is within the bounds of what the persona accepts: there is nothing to haggle")
    known = {entry.item.id for entry in desk.items}
    yield from (Problem("bargain.figures", f"{name} is no fact") for name in bargain.figures if name not in known)


_CHECKS: tuple[Callable[[_Desk], Iterator[Problem]], ...] = (
    _ids,
    _topics,
    _enough_questions,
    _distinct_questions,
    _gates,
    _wordings,
    _leaks,
    _partials,
    _openings,
    _commitments,
    _goals,
    _bargain,
)
