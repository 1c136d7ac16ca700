"""Practice cases of the reader: short cases of many domains with labelled turns, for training alone.

A case is two files, `practice/<domain>/<slug>.yaml` and `<slug>.turns.jsonl` beside it. Nobody plays one, so it has no
rubric, no gates and no temperament; it says who the agent is and which of the commitments cost the agent.

The domains of `HELD_OUT` are for measuring alone: nothing is trained or tuned on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from personas.case.compiled import CompiledCase, compile_case
from personas.case.private import PrivateModel
from personas.case.schema import Background, Commitment, Denial, Fact, Identifier, Line, PersonaCase
from scenarios.turns import SUFFIX, LabelledTurn
from scenarios.yamlfile import Document, FileFinding, ScenarioFileError, load, relative_name

PRACTICE = Path(__file__).parent / "practice"
HELD_OUT = frozenset({"car-workshop", "career-counselling", "legal-aid", "restaurant-complaint", "wedding-planning"})
"""The five domains that come first in the order of the blake2b digests of their names: chosen by nobody."""
ENTRIES = ("facts", "denials", "commitments", "background")

Kind = Literal["specific", "double", "open", "foreign", "background", "summary", "social", "commit", "near_commit"]
Stance = Literal["negated", "asked", "quoted", "conditional", "option", "other", "past"]
Style = Literal["plain", "warm", "casual", "verbose", "terse", "formal", "typo"]
_AT_LEAST = {"specific": 1, "double": 2, "background": 1}
"""How many ids a turn of a kind asks for; a kind that is not here may ask for none."""
_ASK_NOTHING = frozenset({"foreign", "summary", "social"})


class PracticeCommitment(Commitment):
    """A commitment that says whether it costs the agent: an over-promise, unsafe advice, a check left out."""

    costs: bool


class PracticePersona(PrivateModel):
    """`<slug>.yaml`."""

    name: Line
    role: Line
    """What the persona is to the agent."""
    agent: Line
    """Who the agent is."""
    openings: tuple[Line, ...] = Field(min_length=2)
    facts: tuple[Fact, ...] = Field(min_length=6)
    denials: tuple[Denial, ...] = Field(min_length=1)
    commitments: tuple[PracticeCommitment, ...] = Field(min_length=4)
    background: tuple[Background, ...] = Field(min_length=2)
    unknown: tuple[Line, ...] = Field(min_length=1)

    @property
    def topics(self) -> frozenset[str]:
        """The topics of questions that belong to the matter."""
        return frozenset({*(fact.id for fact in self.facts), *(denial.id for denial in self.denials)})

    @property
    def promises(self) -> frozenset[str]:
        """The commitments that a turn can make."""
        return frozenset(each.id for each in self.commitments)

    @property
    def life(self) -> frozenset[str]:
        """The topics of questions that lie beside the matter."""
        return frozenset(each.id for each in self.background)


class _Row(PrivateModel):
    """One line of `<slug>.turns.jsonl`."""

    turn: Line
    asks: tuple[Identifier, ...]
    commits: tuple[Identifier, ...]
    kind: Kind
    style: Style = "plain"
    before: tuple[tuple[Literal["persona", "agent"], Line], ...] = ()
    near: Identifier | None = None
    stance: Stance | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if len(self.asks) < _AT_LEAST.get(self.kind, 0):
            raise ValueError(f"a `{self.kind}` turn asks for at least {_AT_LEAST[self.kind]}: add to `asks`")
        if self.kind in _ASK_NOTHING and self.asks:
            raise ValueError(f"a `{self.kind}` turn asks for nothing of the case: empty `asks`")
        if (self.kind == "commit") != bool(self.commits):
            raise ValueError("`commits` names something if and only if the kind is `commit`")
        if {self.kind == "near_commit"} != {self.near is not None, self.stance is not None}:
            raise ValueError("`near` and `stance` belong to a `near_commit` turn, both of them")
        return self

    def labelled(self, number: int) -> LabelledTurn:
        """The turn as the reader's training takes it."""
        said = [text for role, text in self.before if role == "persona"]
        return LabelledTurn(
            turn=self.turn,
            asks=self.asks,
            commits=self.commits,
            kind=self.kind,
            style=self.style,
            line=said[-1] if said else "",
            near=self.near,
            stance=self.stance,
            number=number,
        )


@dataclass(frozen=True, slots=True)
class PracticeCase:
    """One case and its labelled turns."""

    domain: str
    slug: str
    case: PracticePersona
    turns: tuple[LabelledTurn, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Domain and slug, as collection and scenario of a packaged case."""
        return self.domain, self.slug

    @property
    def held_out(self) -> bool:
        """True if it is for measuring alone."""
        return self.domain in HELD_OUT

    @property
    def costs(self) -> frozenset[str]:
        """The commitments that cost the agent."""
        return frozenset(each.id for each in self.case.commitments if each.costs)

    def compiled(self) -> CompiledCase:
        """The case as a reader takes it, with its author's examples alone."""
        persona = PersonaCase(
            name=self.case.name,
            role=self.case.role,
            temperaments=("plain",),
            openings=self.case.openings,
            facts=self.case.facts,
            denials=self.case.denials,
            commitments=self.case.commitments,
            unknown=self.case.unknown,
            nudges=self.case.unknown[:1],
        )
        return compile_case(persona, {}, background=self.case.background, costs=self.costs)


def load_practice(root: Path = PRACTICE) -> list[PracticeCase]:
    """All practice cases below a folder, in order of domain and slug.

    Raises:
        ScenarioFileError: files that cannot be used; one line per finding, with file and line.
    """
    cases: list[PracticeCase] = []
    findings: list[FileFinding] = []
    for path in _paths(root):
        try:
            cases.append(_read_case(path))
        except ScenarioFileError as error:
            findings.extend(error.findings)
    if findings:
        raise ScenarioFileError(findings)
    return cases


def _paths(root: Path) -> list[Path]:
    """The case file of every case, also of one that has turns alone."""
    turns = (path.with_name(path.name.removesuffix(SUFFIX) + ".yaml") for path in root.glob(f"*/*{SUFFIX}"))
    return sorted({*root.glob("*/*.yaml"), *turns})


def _read_case(path: Path) -> PracticeCase:
    case, document = load(path, PracticePersona, relative_name(path))
    findings = list(_doubled_ids(case, document))
    rows = path.with_name(path.stem + SUFFIX)
    turns = _read_turns(rows, case, findings)
    if findings:
        raise ScenarioFileError(findings)
    return PracticeCase(path.parent.name, path.stem, case, turns)


def _doubled_ids(case: PracticePersona, document: Document) -> Iterator[FileFinding]:
    seen: set[str] = set()
    for entries in ENTRIES:
        for place, each in enumerate(getattr(case, entries)):
            if each.id in seen:
                yield document.finding((entries, place, "id"), f"the id `{each.id}` stands here twice: rename one")
            seen.add(each.id)


def _read_turns(path: Path, case: PracticePersona, findings: list[FileFinding]) -> tuple[LabelledTurn, ...]:
    """The turns of a file; what is wrong in it goes to the findings."""
    name = relative_name(path)
    if not path.is_file():
        findings.append(FileFinding(name, 1, "the file is missing: write the labelled turns of the case"))
        return ()
    turns: list[LabelledTurn] = []
    first_at: dict[tuple[str, str], int] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            turn = _Row.model_validate(json.loads(text)).labelled(number)
            _check_ids(turn, case)
        except ValueError as error:
            findings.append(FileFinding(name, number, _reason(error)))
            continue
        before = first_at.setdefault((turn.turn.casefold(), turn.line), number)
        if before != number:
            findings.append(FileFinding(name, number, f"the turn stands in line {before}, too: remove one"))
        turns.append(turn)
    return tuple(turns)


def _check_ids(turn: LabelledTurn, case: PracticePersona) -> None:
    """Raises `ValueError` for the first id in a turn's labels that the case does not have."""
    topics = case.life if turn.kind == "background" else case.topics
    near = () if turn.near is None else (turn.near,)
    for key, names, known in (("asks", turn.asks, topics), ("commits", (*turn.commits, *near), case.promises)):
        if unknown := sorted(set(names) - known):
            raise ValueError(f"`{key}` of a `{turn.kind}` turn: the case has no `{unknown[0]}` for it: mend the id")


def _reason(error: ValueError) -> str:
    """One line for what is wrong in a row, without its values."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg}, character {error.colno}): write one object a line"
    if not isinstance(error, ValidationError):
        return str(error)
    detail = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in detail["loc"])
    return (f"`{place}`: " if place else "") + detail["msg"].removeprefix("Value error, ")
