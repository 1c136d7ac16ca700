"""Natural agents of a scenario: `<slug>.agents.yaml` beside its file.

Three scripts, written by people who saw the public card and the opening, but neither the asks nor the rubric. They
show what rewards ordinary agents get; `labs scenarios check` plays them. The author's own script, the oracle, may stand
in the same file: it is a part of the scenario, and `scenarios.whole` puts it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenarios.rules import Remark, call_problem
from scenarios.schema import AgentsFile, NaturalAgents, ScenarioCard
from scenarios.yamlfile import FileFinding, ScenarioFileError, read_document, validated

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
    if isinstance(document.data, dict) and set(document.data) == {"oracle"}:
        return None
    file = validated(document, AgentsFile)
    agents = NaturalAgents(excellent=file.excellent, ok=file.ok, poor=file.poor)
    findings: list[FileFinding] = [document.finding(each.loc, each.message) for each in _remarks(agents, card)]
    if findings:
        raise ScenarioFileError(findings)
    return agents


def _remarks(agents: NaturalAgents, card: ScenarioCard) -> Iterator[Remark]:
    tools = {tool.id: tool for tool in card.tools}
    for script in SCRIPTS:
        steps = getattr(agents, script)
        if len(steps) > card.max_turns:
            yield Remark((script,), f"{len(steps)} steps do not fit into {card.max_turns} turns: shorten the script")
        for i, step in enumerate(steps):
            for j, call in enumerate(step.tools):
                problem = call_problem(call, tools)
                if problem:
                    yield Remark((script, i, "tools", j), problem)
