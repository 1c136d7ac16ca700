"""Rubrics without a persona: criteria that any conversation can be judged by, wherever it was held.

There are no facts, so no criterion is about what was found out and none waits for a fact. What is left out is filled
in: one dimension, one point, the family of what earns or caps. A file of its own, a scenario of a collection, or a
part of a request; which of them it is, `scenarios.given` and `scenarios.library` know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from personas.case.schema import Line, Slug
from scenarios.rules import (
    Loc,
    NodeFinding,
    checks_of,
    fallbacks,
    in_file,
    one_weighs_all,
    repeated,
    similar,
    tool_schemas,
    tool_values,
)
from scenarios.schema import CompositeReward, Criterion, Dimension, Family, Rubric, ScenarioCard, Text, Tool
from scenarios.yamlfile import Document, ScenarioFileError, errors_of, validated

SCHEMA = "labs.rubric/1"
GIVEN = "rubric"
"""The collection of rubrics that come with a request or a command; no other may be called so."""
MAX_TURNS = 50
DIMENSION = "D1_Quality"
CONDUCT = ("rude", "empathy")
"""What an agent does in any conversation; other conduct is told by what a persona knows and answers."""
MAX_EXEMPLARS = 200
_NEEDS_A_PERSONA = ("elicited", "committed", "pace")
_CRITERIA: Loc = ("criteria",)


class OpenRubric(Rubric):
    """A rubric of any size."""

    dimensions: tuple[Dimension, ...] = Field(min_length=1, max_length=6)
    criteria: tuple[Criterion, ...] = Field(min_length=1, max_length=40)


class RubricFile(OpenRubric):
    """`labs.rubric/1`: a rubric without a persona."""

    schema_: Literal["labs.rubric/1"] = Field(alias="schema")
    version: int = Field(default=1, ge=1)
    draft: bool = False
    """Written by a model, and not yet checked on logs that a person graded."""
    slug: Slug | None = None
    """Of a file, its name unless it is given."""
    name: Line
    situation: Text
    """Who talks to whom about what: judges are told so, and so is whoever sees the card."""
    tools: Annotated[tuple[Tool, ...], Field(max_length=20)] = ()
    """Those of the agent that criteria are about."""
    reward: CompositeReward | None = None
    """Who makes up the reward; the rubric alone unless it is given."""

    @property
    def card(self) -> ScenarioCard:
        """Its public half."""
        return ScenarioCard(
            slug=self.slug or "rubric",
            name=self.name,
            description=self.situation,
            max_turns=MAX_TURNS,
            tools=self.tools,
        )

    @property
    def rubric(self) -> Rubric:
        """Dimensions and criteria alone."""
        return OpenRubric(dimensions=self.dimensions, criteria=self.criteria)


def is_rubric(data: object) -> bool:
    """True if the data of a file says that it is a rubric without a persona."""
    return isinstance(data, Mapping) and data.get("schema") == SCHEMA


def read_rubric(document: Document, slug: str | None = None) -> RubricFile:
    """The rubric of a document; raises `ScenarioFileError` with everything that is wrong with it."""
    document.data = completed(document.data, slug)
    file = validated(document, RubricFile)
    errors = errors_of(in_file(document, findings_of(file)))
    if errors:
        raise ScenarioFileError(errors)
    return file


def completed(data: Any, slug: str | None = None) -> Any:
    """The data of a rubric with what its author left out; anything odd stays, and the schema refuses it."""
    if not isinstance(data, dict):
        return data
    own = dict(data)
    if slug is not None:
        own.setdefault("slug", slug)
    own.setdefault("dimensions", [{"name": DIMENSION, "weight": 1.0}])
    first = own["dimensions"][0] if isinstance(own["dimensions"], list) and own["dimensions"] else None
    only = first.get("name") if isinstance(first, dict) and len(own["dimensions"]) == 1 else None
    if isinstance(own.get("criteria"), list):
        own["criteria"] = [_completed(each, only) for each in own["criteria"]]
    return own


def _completed(criterion: Any, dimension: Any) -> Any:
    if not isinstance(criterion, dict):
        return criterion
    caps = criterion.get("cap") is not None
    filled = {
        "family": (Family.FAILURE_METRICS if caps else Family.RUBRICS).value,
        "points": 0 if caps else 1,
        "about": _about(criterion),
    }
    if dimension is not None:
        filled["dimension"] = dimension
    return {**filled, **criterion}


def _about(criterion: Mapping[str, Any]) -> Any:
    """The meaning: the question to a judge, or its name in words."""
    check = criterion.get("check")
    judge = check.get("judge") if isinstance(check, dict) else None
    asked = judge.get("question") if isinstance(judge, dict) else None
    return asked or str(criterion.get("id", "")).replace("_", " ") or "a criterion"


def findings_of(file: RubricFile) -> Iterator[NodeFinding]:
    """The rules of a rubric without a persona that the schema of one model cannot hold."""
    tools = {tool.id: tool for tool in file.tools}
    yield from repeated([(("tools", i, "id"), tool.id) for i, tool in enumerate(file.tools)], "tools")
    yield from tool_schemas(file.tools, ("tools",))
    yield from repeated([((*_CRITERIA, i, "id"), each.id) for i, each in enumerate(file.criteria)], "criteria")
    names = [(("dimensions", i, "name"), each.name) for i, each in enumerate(file.dimensions)]
    yield from repeated(names, "dimensions")
    yield from _dimensions(file)
    yield from fallbacks(file, _CRITERIA)
    yield from similar(file, _CRITERIA)
    yield from one_weighs_all(file, _CRITERIA)
    yield from _without_facts(file)
    for loc, check in checks_of(file, _CRITERIA):
        if check.tool:
            if check.tool.tool not in tools:
                yield NodeFinding((*loc, "tool", "tool"), f"there is no tool `{check.tool.tool}`: add it under `tools`")
            yield from tool_values(check.tool, tools, (*loc, "tool"))


def _dimensions(file: RubricFile) -> Iterator[NodeFinding]:
    declared = {dimension.name for dimension in file.dimensions}
    for i, criterion in enumerate(file.criteria):
        if criterion.dimension not in declared:
            yield NodeFinding((*_CRITERIA, i, "dimension"), f"no dimension `{criterion.dimension}` under `dimensions`")
    for i, dimension in enumerate(file.dimensions):
        if not any(each.points > 0 for each in file.criteria if each.dimension == dimension.name):
            message = f"`{dimension.name}` has no positive points: give it criteria that can be earned, or remove it"
            yield NodeFinding(("dimensions", i) if len(declared) > 1 else _CRITERIA, message)


def _without_facts(file: RubricFile) -> Iterator[NodeFinding]:
    """Nobody here knows or tells a fact, so nothing may hang on one."""
    for i, criterion in enumerate(file.criteria):
        if criterion.given:
            yield NodeFinding((*_CRITERIA, i, "given"), "a rubric without a persona has no facts: remove `given`")
    exemplars = 0
    for loc, check in checks_of(file, _CRITERIA):
        if check.kind in _NEEDS_A_PERSONA:
            yield NodeFinding(
                (*loc, check.kind), f"`{check.kind}` needs a persona: use another check, or write a scenario"
            )
        waits = check.tool or check.conduct
        if waits and (waits.after or getattr(waits, "before", ()) or getattr(waits, "or_commits", ())):
            yield NodeFinding((*loc, check.kind), "a rubric without a persona has no facts: remove what waits for one")
        if check.conduct and check.conduct.act not in CONDUCT:
            known = " or ".join(CONDUCT)
            yield NodeFinding((*loc, "conduct", "act"), f"only a persona can tell `{check.conduct.act}`: use {known}")
        if check.similar:
            exemplars += len(check.similar.exemplars) + len(check.similar.against)
    if exemplars > MAX_EXEMPLARS:
        yield NodeFinding(_CRITERIA, f"{exemplars} exemplars in all: at most {MAX_EXEMPLARS}")
