"""Metrics of episodes and evaluations: what was played, scored and paid, and what was not."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reward_server.telemetry.llm_metrics import LATENCY_BUCKETS_S

REWARD_BUCKETS = tuple(number / 10 for number in range(11))


class ScoringMetrics:
    """The counters of episodes, judges and personas."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.episodes_started = Counter("labs_episodes_started", "Episodes created.", registry=registry)
        self.episodes_ended = Counter(
            "labs_episodes_ended", "Episodes that ended.", ("terminal_reason",), registry=registry
        )
        self.turns = Counter("labs_turns", "Turns answered and stored.", registry=registry)
        self.evaluations = Counter(
            "labs_evaluations", "Conversations scored outside episodes.", ("source",), registry=registry
        )
        self.unscored = Counter(
            "labs_unscored", "Conversations that got an error instead of a reward.", ("code",), registry=registry
        )
        self.judge_abstentions = Counter(
            "labs_judge_abstentions",
            "Criteria that no judge decided, by the kind of their check.",
            ("kind",),
            registry=registry,
        )
        self.judge_failures = Counter(
            "labs_judge_failures",
            "Conversations that a judge failed on, by how it failed.",
            ("kind",),
            registry=registry,
        )
        self.persona_lines = Counter(
            "labs_persona_lines",
            "Lines of personas by whose words were said: the model's (`model`), or the engine's own and why.",
            ("source",),
            registry=registry,
        )
        self.voice_attempts = Counter(
            "labs_voice_attempts",
            "Lines that a model wrote: `accepted`, or what the guard had against them.",
            ("outcome",),
            registry=registry,
        )
        self.voice_failures = Counter(
            "labs_voice_failures",
            "Lines that a model did not write, by the kind of the failure.",
            ("kind",),
            registry=registry,
        )
        self.rewards = Histogram(
            "labs_rewards", "Rewards given.", ("collection", "scenario"), buckets=REWARD_BUCKETS, registry=registry
        )
        self.reward_drift = Gauge(
            "labs_reward_drift",
            "How far the mean of the latest rewards is from that of those before, in standard deviations.",
            ("collection", "scenario"),
            registry=registry,
        )
        self.scoring_seconds = Histogram(
            "labs_scoring_seconds",
            "Time of all judges for one request, a batch being one; for a single turn without the wait for a thread.",
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
