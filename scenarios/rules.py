"""The rules of a good rubric, each a function from a scenario to findings.

They hold what the schema of one model cannot: references between parts, balance of the whole, and
that empty talk earns nothing. They judge form only; whether the rubric can tell a good agent from a
bad one is found out by the exam, by playing. Findings name ids and never quote text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema

from personas.case.schema import Needs, Tier, named_in
from personas.text.wording import normal
from scenarios.patterns import pattern_problem
from scenarios.schema import Check, CollectionFile, Criterion, Family, Rubric, ScenarioFile, Tool, ToolCheck
from scenarios.spelling import nearest
from scenarios.yamlfile import Document, FileFinding, Severity

Loc = tuple[str | int, ...]

JUDGE_SHARE = 0.15
"""Share of a dimension's positive points that may hang on an LLM judge: without one it abstains."""
MOST_OF_ONE = 0.5
"""Share of a rubric's positive points beyond which one criterion decides the reward."""
_STATE_KINDS = ("elicited", "committed", "tool", "pace")
_CRITERIA: Loc = ("private", "rubric", "criteria")
_PERSONA: Loc = ("private", "persona")
_MAY_BE_NULL = ("const", "default")
"""Words of a JSON Schema."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True)
class NodeFinding:
    """One broken rule at one place of the file."""

    loc: Loc
    message: str
    severity: Severity = Severity.ERROR


def in_file(document: Document, findings: Iterable[NodeFinding]) -> list[FileFinding]:
    """The findings with file and line, each once, in the order of the lines."""
    placed = dict.fromkeys(document.finding(finding.loc, finding.message, finding.severity) for finding in findings)
    return sorted(placed, key=lambda finding: (finding.file, finding.line))


@dataclass(frozen=True)
class ReferenceIds:
    """The ids of one scenario, sorted by what a reference may point at."""

    earnable: frozenset[str]
    """Facts and denials that a question can elicit."""
    sayable: frozenset[str]
    """Everything the persona can say at all: the earnable and the volunteered."""
    unearnable: Mapping[str, str]
    commitments: frozenset[str]
    tools: Mapping[str, Tool]
    groups: frozenset[str]


def names_of(file: ScenarioFile) -> ReferenceIds:
    """Collect the ids that other parts of the file refer to."""
    persona = file.private.persona
    denials = frozenset(d.id for d in persona.denials)
    earnable = denials | {f.id for f in persona.facts if f.tier in (Tier.ASKED, Tier.RAPPORT)}
    return ReferenceIds(
        earnable=earnable,
        sayable=earnable | {f.id for f in persona.facts if f.tier is Tier.VOLUNTEERED},
        unearnable={f.id: f.tier.value for f in persona.facts if f.tier in (Tier.VOLUNTEERED, Tier.UNKNOWN)},
        commitments=frozenset(c.id for c in persona.commitments),
        tools={tool.id: tool for tool in file.public.tools},
        groups=frozenset(file.private.fact_groups),
    )


def rule_findings(file: ScenarioFile, collection: CollectionFile) -> list[NodeFinding]:
    """Every rule of this module over one scenario."""
    names = names_of(file)
    return [
        *_unique_ids(file),
        *_fact_groups(file, names),
        *_balance(file),
        *_references(file, names),
        *_paid_for(file),
        *fallbacks(file.private.rubric, _CRITERIA),
        *similar(file.private.rubric, _CRITERIA),
        *one_weighs_all(file.private.rubric, _CRITERIA),
        *tool_schemas(file.public.tools, ("public", "tools")),
        *_private_tools(file, names),
        *_goals(file),
        *_scripts(file, names),
        *_public_text(file),
    ]


# --- ids ------------------------------------------------------------------------------------------


def _unique_ids(file: ScenarioFile) -> Iterator[NodeFinding]:
    persona = file.private.persona
    named = {f.id for f in persona.facts} | {d.id for d in persona.denials} | {c.id for c in persona.commitments}
    for i, tool in enumerate(file.public.tools):
        if tool.id in named:
            message = f"the id `{tool.id}` is also used by the persona: rename the tool, goals could mean either"
            yield NodeFinding(("public", "tools", i, "id"), message)
    yield from repeated([(("public", "tools", i, "id"), t.id) for i, t in enumerate(file.public.tools)], "tools")
    criteria = [((*_CRITERIA, i, "id"), c.id) for i, c in enumerate(file.private.rubric.criteria)]
    yield from repeated(criteria, "criteria")
    dimensions = file.private.rubric.dimensions
    names = [(("private", "rubric", "dimensions", i, "name"), d.name) for i, d in enumerate(dimensions)]
    yield from repeated(names, "dimensions")
    secret = [(("private", "tools", i, "id"), t.id) for i, t in enumerate(file.private.tools)]
    yield from repeated(secret, "private tools")


def _fact_groups(file: ScenarioFile, names: ReferenceIds) -> Iterator[NodeFinding]:
    for name, facts in file.private.fact_groups.items():
        loc: Loc = ("private", "fact_groups", name)
        if name in names.sayable or name in names.unearnable:
            yield NodeFinding(loc, f"the id `{name}` is also used by the persona: rename the group")
        yield from _known(facts, names.sayable, "sayable fact or denial", loc)


def repeated(found: Sequence[tuple[Loc, str]], among: str) -> Iterator[NodeFinding]:
    """Ids that are used twice."""
    seen: set[str] = set()
    for loc, name in found:
        if name in seen:
            yield NodeFinding(loc, f"the id `{name}` is used twice among {among}: rename one")
        seen.add(name)


# --- the rubric as a whole ------------------------------------------------------------------------


def _balance(file: ScenarioFile) -> Iterator[NodeFinding]:
    rubric = file.private.rubric
    families = {criterion.family for criterion in rubric.criteria}
    missing = [family.value for family in Family if family not in families]
    if missing:
        yield NodeFinding(_CRITERIA, f"no criterion of {', '.join(missing)}: every scenario uses all seven families")
    declared = {dimension.name for dimension in rubric.dimensions}
    for i, criterion in enumerate(rubric.criteria):
        if criterion.dimension not in declared:
            yield NodeFinding((*_CRITERIA, i, "dimension"), f"no dimension `{criterion.dimension}` under `dimensions`")
    for i, dimension in enumerate(rubric.dimensions):
        yield from _dimension(rubric.criteria, ("private", "rubric", "dimensions", i), dimension.name)


def _dimension(criteria: tuple[Criterion, ...], loc: Loc, name: str) -> Iterator[NodeFinding]:
    positive = [c for c in criteria if c.dimension == name and c.points > 0]
    total = sum(c.points for c in positive)
    if not total:
        yield NodeFinding(loc, f"`{name}` has no positive points: give it criteria that can be earned, or remove it")
        return
    judged = sum(c.points for c in positive if c.check.kind == "judge")
    if judged > JUDGE_SHARE * total:
        share = f"{judged / total:.0%}"
        yield NodeFinding(loc, f"{share} of the points of `{name}` need an LLM judge: at most {JUDGE_SHARE:.0%}")


def _paid_for(file: ScenarioFile) -> Iterator[NodeFinding]:
    for i, criterion in enumerate(file.private.rubric.criteria):
        kinds = [check.kind for check in criterion.checks if check.kind not in _STATE_KINDS]
        if criterion.points > 0 and kinds and not criterion.given:
            kind = kinds[0]
            advice = "add `given: [fact, …]` so that empty talk earns nothing"
            yield NodeFinding((*_CRITERIA, i), f"`{criterion.id}` pays for `{kind}` alone: {advice}")


def one_weighs_all(rubric: Rubric, at: Loc) -> Iterator[NodeFinding]:
    """Of several criteria none should decide the reward alone: an agent learns that one and little else."""
    total = sum(criterion.points for criterion in rubric.criteria if criterion.points > 0)
    earning = [(i, criterion) for i, criterion in enumerate(rubric.criteria) if criterion.points > 0]
    for i, criterion in earning:
        if len(earning) > 2 and criterion.points > MOST_OF_ONE * total:
            message = f"`{criterion.id}` has {criterion.points / total:.0%} of the points: split it into pieces"
            yield NodeFinding((*at, i), message, Severity.WARNING)


# --- fallbacks ------------------------------------------------------------------------------------


def checks_of(rubric: Rubric, at: Loc) -> Iterator[tuple[Loc, Check]]:
    """Every check with its place below that of the criteria, those of fallbacks too."""
    for i, criterion in enumerate(rubric.criteria):
        yield (*at, i, "check"), criterion.check
        for j, fallback in enumerate(criterion.fallback):
            yield (*at, i, "fallback", j, "check"), fallback.check


def fallbacks(rubric: Rubric, at: Loc) -> Iterator[NodeFinding]:
    """Cheap first, each judge once, and only where there is doubt."""
    for i, criterion in enumerate(rubric.criteria):
        loc: Loc = (*at, i, "fallback")
        kinds = [check.kind for check in criterion.checks]
        if len(set(kinds)) < len(kinds):
            yield NodeFinding(loc, f"`{criterion.id}` asks the same kind of judge twice: each kind once")
        if "judge" in kinds[:-1]:
            yield NodeFinding(loc, f"`{criterion.id}` asks the LLM before a cheaper check: `judge` comes last")
        for j, fallback in enumerate(criterion.fallback):
            low, high = fallback.unsure
            if low <= 0.0 or high >= 1.0:
                message = "values of 0 and 1 are sure: `unsure` lies between them, both excluded"
                yield NodeFinding((*loc, j, "unsure"), message)


# --- references -----------------------------------------------------------------------------------


def _references(file: ScenarioFile, names: ReferenceIds) -> Iterator[NodeFinding]:
    for i, criterion in enumerate(file.private.rubric.criteria):
        yield from _earnable(named_in(criterion.given), names, (*_CRITERIA, i, "given"), names.groups)
    for loc, check in checks_of(file.private.rubric, _CRITERIA):
        if check.elicited:
            yield from _earnable(check.elicited.facts, names, (*loc, "elicited", "facts"))
        if check.pace:
            yield from _earnable(check.pace.facts, names, (*loc, "pace", "facts"))
        if check.conduct:
            yield from _sayable(check.conduct.after, (), names, (*loc, "conduct"))
            yield from _known(
                check.conduct.or_commits, names.commitments, "commitment", (*loc, "conduct", "or_commits")
            )
        if check.committed:
            here: Loc = (*loc, "committed")
            yield from _known(check.committed.any_of, names.commitments, "commitment", (*here, "any_of"))
            yield from _sayable(check.committed.after, check.committed.before, names, here)
        if check.tool:
            here = (*loc, "tool")
            yield from _known((check.tool.tool,), names.tools, "tool", (*here, "tool"))
            yield from _sayable(check.tool.after, check.tool.before, names, here)
            yield from tool_values(check.tool, names.tools, here)


def _earnable(
    ids: Iterable[str], names: ReferenceIds, loc: Loc, groups: frozenset[str] = frozenset()
) -> Iterator[NodeFinding]:
    for name in ids:
        if name in names.unearnable:
            tier = names.unearnable[name]
            yield NodeFinding(loc, f"`{name}` has tier `{tier}`, so no question can earn it: refer to an asked one")
        elif name not in names.earnable:
            yield NodeFinding(loc, _unknown("fact or denial", name, names.earnable | groups))


def _sayable(after: Needs, before: Needs, names: ReferenceIds, loc: Loc) -> Iterator[NodeFinding]:
    for key, needs in (("after", after), ("before", before)):
        yield from _known(named_in(needs), names.sayable, "sayable fact or denial", (*loc, key), names.groups)


def _known(
    ids: Iterable[str], known: Iterable[str], what: str, loc: Loc, groups: frozenset[str] = frozenset()
) -> Iterator[NodeFinding]:
    known = set(known)
    for name in ids:
        if name not in known:
            yield NodeFinding(loc, _unknown(what, name, known | groups))


def _unknown(what: str, name: str, meant: Iterable[str]) -> str:
    close = nearest(name, meant)
    return f"there is no {what} `{name}`: {f'did you mean `{close}`?' if close else 'correct the id'}"


def tool_values(check: ToolCheck, tools: Mapping[str, Tool], loc: Loc) -> Iterator[NodeFinding]:
    """NodeFinding on tools that a check names and that cannot be called so."""
    tool = tools.get(check.tool)
    if tool is None:
        return
    if tool.options is not None:
        for value in check.value:
            if value not in tool.options:
                yield NodeFinding((*loc, "value"), f"a value is not among the options of `{tool.id}`: copy an option")
    if check.wrong and not check.value:
        yield NodeFinding((*loc, "wrong"), "`wrong` needs `value`: list the values that are right")
    properties = (tool.json_schema or {}).get("properties", {})
    for field in check.contains:
        if field not in properties:
            yield NodeFinding((*loc, "contains"), f"`{tool.id}` has no input field `{field}`: correct the field")
        if not all(normal(phrase).strip() for phrase in check.contains[field]):
            yield NodeFinding((*loc, "contains"), f"`{field}` names no word: give words that one may find there")


# --- exemplars ------------------------------------------------------------------------------------


def similar(rubric: Rubric, at: Loc) -> Iterator[NodeFinding]:
    """Exemplars that reward a meaning, not one phrase."""
    for place, checked in checks_of(rubric, at):
        check = checked.similar
        loc = (*place, "similar")
        if check and check.floor >= check.full:
            yield NodeFinding(loc, "`floor` must be below `full`: the score rises from one to the other")
        if check and len(set(check.exemplars)) < 2:
            yield NodeFinding((*loc, "exemplars"), "one exemplar rewards one phrase: give at least two different ones")


# --- tools and goals ------------------------------------------------------------------------------


def tool_schemas(tools: Sequence[Tool], at: Loc) -> Iterator[NodeFinding]:
    """Schemas that are valid, and that can be shown to agents and checked against what they send."""
    for i, tool in enumerate(tools):
        if tool.json_schema is None:
            continue
        loc: Loc = (*at, i, "json_schema")
        try:
            jsonschema.Draft202012Validator.check_schema(tool.json_schema)
        except jsonschema.SchemaError as error:
            rule = f"rule `{error.validator}` of the JSON Schema standard"
            yield NodeFinding((*loc, *error.absolute_path), f"this is not a valid JSON Schema ({rule}): mend it")
            continue
        if tool.json_schema.get("type") != "object" or not tool.json_schema.get("properties"):
            yield NodeFinding(loc, "a tool's input is an object: give `type: object` and `properties`")
        yield from _schema_words(tool.json_schema, loc)


def _private_tools(file: ScenarioFile, names: ReferenceIds) -> Iterator[NodeFinding]:
    for i, secret in enumerate(file.private.tools):
        yield from _known((secret.id,), names.tools, "tool", ("private", "tools", i, "id"))


def _schema_words(node: object, loc: Loc) -> Iterator[NodeFinding]:
    """Agents read them, and their text is checked against them: no gaps, no slow patterns, nothing from elsewhere."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _REFERENCES and not str(value).startswith("#"):
                yield NodeFinding((*loc, key), "a `$ref` may only point into the same schema (`#/…`)")
            elif key == "pattern" and isinstance(value, str):
                problem = pattern_problem(value)
                if problem:
                    yield NodeFinding((*loc, key), problem)
            elif key == "patternProperties" and isinstance(value, dict):
                problems = {name: pattern_problem(str(name)) for name in value}
                yield from (NodeFinding((*loc, key, name), each) for name, each in problems.items() if each)
            elif value is None and key not in _MAY_BE_NULL:
                yield NodeFinding((*loc, key), "there is no value: quote text that has a comma and stands in braces")
            yield from _schema_words(value, (*loc, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _schema_words(value, (*loc, i))


def final_tools(file: ScenarioFile) -> frozenset[str]:
    """The tools whose call can meet a goal of the persona."""
    return frozenset(tool.id for tool in file.private.tools if tool.final)


def _goals(file: ScenarioFile) -> Iterator[NodeFinding]:
    """NodeFinding on what the lint of the case cannot know: that there are goals, and final tools among them."""
    groups = file.private.persona.ending.goals
    if not groups:
        yield NodeFinding(
            (*_PERSONA, "ending"), "`goals` is empty, so the talk can never be completed: name a commitment"
        )
    named = {name for group in groups for name in group}
    for i, tool in enumerate(file.private.tools):
        if tool.final and tool.id not in named:
            yield NodeFinding(("private", "tools", i, "final"), f"`{tool.id}` is final: name it in `ending.goals`")


# --- exam scripts ---------------------------------------------------------------------------------


def _scripts(file: ScenarioFile, names: ReferenceIds) -> Iterator[NodeFinding]:
    steps = file.private.exam.oracle
    loc: Loc = ("private", "exam", "oracle")
    if len(steps) > file.public.max_turns:
        yield NodeFinding(loc, f"{len(steps)} steps do not fit into {file.public.max_turns} turns: shorten the script")
    for i, step in enumerate(steps):
        for j, call in enumerate(step.tools):
            problem = call_problem(call, names.tools)
            if problem:
                yield NodeFinding((*loc, i, "tools", j), problem)
    if len({step.say for step in steps}) < len(steps):
        yield NodeFinding(loc, "the oracle says the same line twice: an excellent agent does not")


def call_problem(call: Mapping[str, Any], tools: Mapping[str, Tool]) -> str | None:
    """The reason why a scripted tool call is not valid; None when it is."""
    if not {"name", "input"} <= set(call) <= {"name", "input", "type"}:
        return "a tool call is `{name: …, input: {…}}`: correct its keys"
    tool = next((t for t in tools.values() if call["name"] in (t.id, t.name)), None)
    if tool is None:
        return "the call names no tool of this scenario: use a tool's id"
    if not isinstance(call["input"], dict):
        return "`input` must be a mapping"
    if tool.options is not None:
        fits = set(call["input"]) == {"value"} and call["input"]["value"] in tool.options
        return None if fits else f"the input of `{tool.id}` is `{{value: <one of its options>}}`: correct it"
    try:
        return _schema_problem(call["input"], tool)
    except jsonschema.SchemaError:
        return f"the schema of `{tool.id}` is not valid: mend it first"


def _schema_problem(value: Mapping[str, Any], tool: Tool) -> str | None:
    schema = tool.json_schema or {}
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(value),
        key=lambda error: list(map(str, error.absolute_path)),
    )
    if errors:
        field = ".".join(map(str, errors[0].absolute_path)) or "input"
        rule = errors[0].validator
        return f"the input of `{tool.id}` does not fit its schema at `{field}` (rule `{rule}`): correct it"
    return None


# --- the public half ------------------------------------------------------------------------------


def _public_text(file: ScenarioFile) -> Iterator[NodeFinding]:
    """The card may not say what the persona keeps to itself."""
    public = _plain(file.public.model_dump_json())
    for i, fact in enumerate(file.private.persona.facts):
        if fact.tier is not Tier.VOLUNTEERED and any(_plain(line) in public for line in fact.says):
            loc: Loc = (*_PERSONA, "facts", i, "says")
            yield NodeFinding(loc, f"the public half contains a wording of `{fact.id}`: rewrite the description")


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
