"""Runs the exam of one scenario: plays, scores, measures, and says what failed and why.

Everything is derived from the scenario and fixed seeds, so two runs agree to the last digit. The scorer and the
matcher are handed in: the exam uses what the server uses, through the same calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import pstdev

from personas.case.temperament import Temperament
from personas.reading.reader import Reader
from reward_server.exam.breaches import unfired
from reward_server.exam.failures import ExamEvidence, failures
from reward_server.exam.marks import PlayScore, PlayScorer
from reward_server.exam.notes import notes
from reward_server.exam.play import Play, play
from reward_server.exam.questions import understanding
from reward_server.exam.report import Figures, ScenarioExam
from reward_server.exam.variants import examine_variants
from scenarios.exam import ExamTurn, ScriptedAgent, agents
from scenarios.exam import varied as thinned
from scenarios.library import Library, SealedScenario
from scenarios.probing import TURNS, probing_lines
from scenarios.schema import Breach, NaturalAgents
from scenarios.turns import LabelledTurn

GROUP = 6
"""Varied agents in the group whose reward spread is measured."""


@dataclass(frozen=True)
class Examiner:
    """The parts that every exam of a run shares."""

    library: Library
    reader: Reader
    marker: PlayScorer
    temperaments: Mapping[str, Temperament]
    natural: Mapping[str, NaturalAgents]
    """Scenario name -> its natural agents; scenarios without any are checked on the other agents."""
    turns: Mapping[str, Sequence[LabelledTurn]]
    """Scenario name -> its labelled turns, of which those kept aside are measured on."""
    breaches: Mapping[str, Sequence[Breach]] = field(default_factory=dict)
    """Scenario name -> what must cost an agent that says it."""
    seeds: tuple[int, ...] = (1, 2)
    probing_turns: int = TURNS

    async def examine(self, scenario: SealedScenario) -> ScenarioExam:
        """The whole exam of one scenario."""
        started = time.monotonic()
        plays = self._plays(scenario)
        marks = await self.marker.mark(scenario, plays)
        group = self._group(scenario)
        group_marks = await self.marker.mark(scenario, group)
        probed = self._probe(scenario)
        heard = understanding(self.library, scenario, self.turns.get(scenario.name, ()), self.reader)
        leaks = [f"{p.agent}, {p.temperament}, {leak}" for p in (*plays, *group, *probed) for leak in p.leaks]
        drawn_out = [told for p in probed for told in p.told]
        never, always = _idle_criteria(scenario, [*marks, *group_marks])
        rewards: dict[str, tuple[float, ...]] = {}
        for one, mark in zip(plays, marks, strict=True):
            rewards[one.agent] = (*rewards.get(one.agent, ()), mark.reward)
        variants = self.library.vault.variants(scenario.collection, scenario.card.slug)
        varied = await examine_variants(variants, self.temperaments, self.reader, self.marker, self.seeds[0])
        figures = Figures(
            scenario=scenario.name,
            plays=len(plays) + len(group) + len(probed) + varied.plays,
            rewards=rewards,
            understood=heard.shares,
            probing_turns=sum(p.turns for p in probed),
            leaks=len(leaks),
            drawn_out=len(drawn_out),
            replay_identical=self._same_again(scenario, plays[0]),
            reward_equal=await self._same_reward(scenario, plays, marks),
            group_spread=pstdev(mark.reward for mark in group_marks),
            never_met=len(never),
            always_met=len(always),
        )
        pairs = list(zip(plays, marks, strict=True))
        silent = unfired(scenario, self.breaches.get(scenario.name, ()), self.reader)
        evidence = ExamEvidence(scenario, figures, pairs, heard, leaks, drawn_out, never, always, silent)
        failed, noted = (*failures(evidence), *varied.failures), (*notes(evidence), *varied.notes)
        return ScenarioExam(figures, failed, noted, time.monotonic() - started)

    def _agents(self, scenario: SealedScenario) -> dict[str, ScriptedAgent]:
        return agents(scenario.secrets, scenario.topics, self.natural.get(scenario.name))

    def _plays(self, scenario: SealedScenario) -> list[Play]:
        everyone = self._agents(scenario).values()
        return [
            play(scenario, self.temperaments[slug], agent, self.reader, seed)
            for seed in self.seeds
            for slug in scenario.secrets.persona.temperaments
            for agent in everyone
        ]

    def _group(self, scenario: SealedScenario) -> list[Play]:
        temperament = self._default(scenario)
        natural = self.natural.get(scenario.name)
        steps = natural.excellent if natural else scenario.secrets.exam.oracle
        drawn = [thinned(steps, seed) for seed in range(GROUP)]
        return [play(scenario, temperament, agent, self.reader, self.seeds[0]) for agent in drawn]

    def _default(self, scenario: SealedScenario) -> Temperament:
        return self.temperaments[scenario.secrets.persona.temperaments[0]]

    def _probe(self, scenario: SealedScenario) -> list[Play]:
        """Probing talks, each until the persona has had enough, until all lines are used."""
        lines = probing_lines(scenario.secrets.persona, scenario.foreign, self.probing_turns)
        found: list[Play] = []
        used = 0
        while used < len(lines):
            agent = ScriptedAgent("prober", tuple(ExamTurn(line) for line in lines[used:]))
            found.append(play(scenario, self._default(scenario), agent, self.reader, len(found) + 1))
            used += max(1, found[-1].turns)
        return found

    def _same_again(self, scenario: SealedScenario, first: Play) -> bool:
        """True if the first play, played anew, gives the same bytes and the same state."""
        agent = self._agents(scenario)[first.agent]
        again = play(scenario, self.temperaments[first.temperament], agent, self.reader, first.seed)
        return again.messages == first.messages and again.final_state == first.final_state

    async def _same_reward(self, scenario: SealedScenario, plays: Sequence[Play], marks: Sequence[PlayScore]) -> bool:
        """True if a play scored alone, and all plays in reverse order, get the rewards they got together."""
        alone = [await self.marker.mark(scenario, [one]) for one in plays[:3]]
        backwards = await self.marker.mark(scenario, list(reversed(plays)))
        rewards = [mark.reward for mark in marks]
        return [mark.reward for (mark,) in alone] == rewards[:3] and [m.reward for m in backwards][::-1] == rewards


def _idle_criteria(scenario: SealedScenario, marks: Sequence[PlayScore]) -> tuple[list[str], list[str]]:
    """Positive criteria that nobody met, and criteria that everybody met; those that abstained are left out."""
    never: list[str] = []
    always: list[str] = []
    for criterion in scenario.secrets.rubric.criteria:
        values = [mark.values[criterion.id] for mark in marks if mark.values.get(criterion.id) is not None]
        met = [value is not None and value > 0 for value in values]
        if met and all(met):
            always.append(criterion.id)
        if met and criterion.points > 0 and not any(met):
            never.append(criterion.id)
    return never, always
