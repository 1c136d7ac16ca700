"""Natural agents of a scenario: `<slug>.agents.yaml` beside its file.

Three scripts, written by people who saw the public card and the opening, but neither the asks nor the rubric. They
show what rewards ordinary agents get; `labs scenarios check` plays them. The author's own script, the oracle, may stand
in the same file: it is a part of the scenario, and `scenarios.whole` puts it there. So may breaches, which the check
listens to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenarios.rules import NodeFinding, call_problem, in_file
from scenarios.schema import AgentsFile, AuthorsScripts, Breach, NaturalAgents, ScenarioCard
from scenarios.yamlfile import Document, ScenarioFileError, read_document, validated

SUFFIX = ".agents.yaml"
SCRIPTS = ("excellent", "ok", "poor")


def load_agents(path: Path, card: ScenarioCard, name: str | None = None) -> NaturalAgents | None:
    """The natural agents of a file; None if there is no such file, or only an oracle in it.

    Raises:
        ScenarioFileError: a script does not fit the scenario; names file and line.
    """
    if not path.is_file():
        return None
    document = read_document(path, name or path.name)
    file = _read(document)
    if not isinstance(file, AgentsFile):
        return None
    agents = NaturalAgents(excellent=file.excellent, ok=file.ok, poor=file.poor)
    findings = in_file(document, _findings(agents, card))
    if findings:
        raise ScenarioFileError(findings)
    return agents


def load_breaches(path: Path) -> tuple[Breach, ...]:
    """The breaches of a file; none if there is no such file.

    Raises:
        ScenarioFileError: the file is not what it should be; names file and line.
    """
    return _read(read_document(path, path.name)).breaches if path.is_file() else ()


def _read(document: Document) -> AgentsFile | AuthorsScripts:
    """A file with natural agents, or one in which the author's own scripts stand alone."""
    alone = isinstance(document.data, dict) and set(document.data) <= set(AuthorsScripts.model_fields)
    return validated(document, AuthorsScripts) if alone else validated(document, AgentsFile)


def _findings(agents: NaturalAgents, card: ScenarioCard) -> Iterator[NodeFinding]:
    tools = {tool.id: tool for tool in card.tools}
    for script in SCRIPTS:
        steps = getattr(agents, script)
        if len(steps) > card.max_turns:
            yield NodeFinding(
                (script,), f"{len(steps)} steps do not fit into {card.max_turns} turns: shorten the script"
            )
        for i, step in enumerate(steps):
            for j, call in enumerate(step.tools):
                problem = call_problem(call, tools)
                if problem:
                    yield NodeFinding((script, i, "tools", j), problem)
