"""Runs the exam of one scenario: plays, scores, measures, and says what failed and why.

Everything is derived from the scenario and fixed seeds, so two runs agree to the last digit. The scorer and the
matcher are handed in: the exam uses what the server uses, through the same calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev

from personas.acts import read_turn
from personas.compiled import merged_topics
from personas.hearing import texts_to_compare
from personas.matcher import Matcher
from personas.temperament import Temperament
from reward_server.jobs.exam.advice import Findings, failures, notes
from reward_server.jobs.exam.marks import Mark, Marker
from reward_server.jobs.exam.play import Play, play
from reward_server.jobs.exam.questions import understanding
from reward_server.jobs.exam.report import Figures, ScenarioExam
from reward_server.scoring.scorer import Prefetching
from scenarios.exam import Act, ScriptedAgent, agents, varied
from scenarios.library import SealedScenario
from scenarios.probing import TURNS, probing_lines

GROUP = 6
"""Varied agents in the group whose reward spread is measured."""


@dataclass(frozen=True)
class Examiner:
    """What every exam of a run shares."""

    matcher: Matcher
    marker: Marker
    temperaments: Mapping[str, Temperament]
    others: Mapping[str, Sequence[str]]
    """Scenario name -> the lines of its oracle: what the random agent draws from."""
    seeds: tuple[int, ...] = (1, 2)
    probing_turns: int = TURNS

    async def examine(self, scenario: SealedScenario) -> ScenarioExam:
        """The whole exam of one scenario."""
        started = time.monotonic()
        await self._prefetch(scenario)
        plays = self._plays(scenario)
        marks = await self.marker.mark(scenario, plays)
        group = self._group(scenario)
        group_marks = await self.marker.mark(scenario, group)
        probed = self._probe(scenario)
        heard = understanding(scenario, self.matcher)
        leaks = [f"{p.agent}, {p.temperament}, {leak}" for p in (*plays, *group, *probed) for leak in p.leaks]
        drawn_out = [told for p in probed for told in p.told]
        never, always = _idle_criteria(scenario, [*marks, *group_marks])
        rewards: dict[str, tuple[float, ...]] = {}
        for one, mark in zip(plays, marks, strict=True):
            rewards[one.agent] = (*rewards.get(one.agent, ()), mark.reward)
        figures = Figures(
            scenario=scenario.name,
            plays=len(plays) + len(group) + len(probed),
            rewards=rewards,
            hit_rate=heard.hit_rate,
            probes=heard.probes,
            foreign_rate=heard.foreign_rate,
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
        found = Findings(scenario, figures, pairs, heard, leaks, drawn_out, never, always)
        return ScenarioExam(figures, failures(found, self.matcher), tuple(notes(found)), time.monotonic() - started)

    async def _prefetch(self, scenario: SealedScenario) -> None:
        """Encode what the agents will say in a few large batches, which saves a third of the time."""
        if not isinstance(self.matcher, Prefetching):
            return
        others = self._lines_from_elsewhere(scenario)
        scripts = [a.script for seed in self.seeds for a in self._agents(scenario, others, seed).values()]
        lines = {act.say for script in scripts for act in script}
        lines |= set(probing_lines(scenario.secrets.persona, scenario.foreign, self.probing_turns))
        lines |= {
            probe
            for topic in merged_topics(scenario.secrets.persona, scenario.topics).values()
            for probe in topic.probes
        }
        read = map(read_turn, sorted(lines))
        await self.matcher.prefetched([t for reading in read for t in texts_to_compare(scenario.case, reading)])

    def _agents(self, scenario: SealedScenario, others: Sequence[str], seed: int) -> dict[str, ScriptedAgent]:
        return agents(scenario.secrets, scenario.topics, others, seed)

    def _plays(self, scenario: SealedScenario) -> list[Play]:
        others = self._lines_from_elsewhere(scenario)
        found: list[Play] = []
        for seed in self.seeds:
            everyone = self._agents(scenario, others, seed)
            for slug in scenario.secrets.persona.temperaments:
                found += [
                    play(scenario, self.temperaments[slug], agent, self.matcher, seed) for agent in everyone.values()
                ]
        return found

    def _lines_from_elsewhere(self, scenario: SealedScenario) -> list[str]:
        """Oracle lines of other collections: in its own domain an agent drawn at random would not be clueless."""
        away = {name: lines for name, lines in self.others.items() if name.split("/")[0] != scenario.collection}
        rest = away or {name: lines for name, lines in self.others.items() if name != scenario.name}
        return [line for _, lines in sorted(rest.items()) for line in lines]

    def _group(self, scenario: SealedScenario) -> list[Play]:
        temperament = self._default(scenario)
        drawn = [varied(scenario.secrets, seed) for seed in range(GROUP)]
        return [play(scenario, temperament, agent, self.matcher, self.seeds[0]) for agent in drawn]

    def _default(self, scenario: SealedScenario) -> Temperament:
        return self.temperaments[scenario.secrets.persona.temperaments[0]]

    def _probe(self, scenario: SealedScenario) -> list[Play]:
        """Probing talks, each until the persona has had enough, until all lines are used."""
        lines = probing_lines(scenario.secrets.persona, scenario.foreign, self.probing_turns)
        found: list[Play] = []
        used = 0
        while used < len(lines):
            agent = ScriptedAgent("prober", tuple(Act(line) for line in lines[used:]))
            found.append(play(scenario, self._default(scenario), agent, self.matcher, len(found) + 1))
            used += max(1, found[-1].turns)
        return found

    def _same_again(self, scenario: SealedScenario, first: Play) -> bool:
        """Whether the first play, played anew, gives the same bytes and the same state."""
        agent = self._agents(scenario, (), first.seed)[first.agent]
        again = play(scenario, self.temperaments[first.temperament], agent, self.matcher, first.seed)
        return again.messages == first.messages and again.final_state == first.final_state

    async def _same_reward(self, scenario: SealedScenario, plays: Sequence[Play], marks: Sequence[Mark]) -> bool:
        """Whether a play scored alone, and all plays in reverse order, get the rewards they got together."""
        alone = [await self.marker.mark(scenario, [one]) for one in plays[:3]]
        backwards = await self.marker.mark(scenario, list(reversed(plays)))
        rewards = [mark.reward for mark in marks]
        return [mark.reward for (mark,) in alone] == rewards[:3] and [m.reward for m in backwards][::-1] == rewards


def _idle_criteria(scenario: SealedScenario, marks: Sequence[Mark]) -> tuple[list[str], list[str]]:
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
