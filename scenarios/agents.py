"""Natural agents of a scenario: `<slug>.agents.yaml` beside its file.

Three scripts, written by people who saw the public card and the opening, but neither the asks nor the rubric. They
show what rewards ordinary agents get; `labs scenarios check` plays them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenarios.rules import Remark, call_problem
from scenarios.schema import NaturalAgents, ScenarioCard
from scenarios.yamlfile import Finding, ScenarioError, load

SUFFIX = ".agents.yaml"
SCRIPTS = ("excellent", "ok", "poor")


def load_agents(path: Path, card: ScenarioCard, name: str | None = None) -> NaturalAgents | None:
    """The agents of a file; None if there is no such file.

    Raises:
        ScenarioError: a script does not fit the scenario; names file and line.
    """
    if not path.is_file():
        return None
    agents, document = load(path, NaturalAgents, name or path.name)
    findings: list[Finding] = [document.finding(each.loc, each.message) for each in _remarks(agents, card)]
    if findings:
        raise ScenarioError(findings)
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
