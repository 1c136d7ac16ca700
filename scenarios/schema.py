"""The schema of collections and scenarios: a public half and a private half that never mix.

`ScenarioCard` is all an agent's key may see. `ScenarioSecrets` holds the persona's case, the rubric
and the exam scripts; it is a `PrivateModel` (no content in repr or errors) and shares no base with
the card. Only `scoring`, `episodes`, `judges` and `jobs` of the server may import it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from personas.case.private import PrivateModel
from personas.case.schema import Identifier, Line, Needs, PersonaCase, Slug, Topic
from scenarios.texts import KeywordCheck, RegexCheck

DimensionName = Annotated[str, StringConstraints(pattern=r"^D[1-9]_[A-Z][A-Za-z]+$", max_length=48)]
PluginName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class PublicModel(BaseModel):
    """Base of what may be shown to anyone."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(PublicModel):
    """A tool the agent may call, as it is sent to the agent."""

    id: Identifier
    type: Literal["artifact", "decision"]
    name: Line
    mode: Literal["json_schema", "options"]
    description: Text | None = None
    json_schema: dict[str, Any] | None = None
    options: tuple[Line, ...] | None = None

    @model_validator(mode="after")
    def _mode_has_its_field(self) -> Self:
        wanted, other = ("json_schema", "options") if self.mode == "json_schema" else ("options", "json_schema")
        if not getattr(self, wanted) or getattr(self, other) is not None:
            raise ValueError(f"mode {self.mode} needs `{wanted}` and no `{other}`")
        return self

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of a call's `input`, whatever the mode."""
        if self.options is None:
            return dict(self.json_schema or {})
        return {
            "type": "object",
            "properties": {"value": {"enum": list(self.options)}},
            "required": ["value"],
            "additionalProperties": False,
        }

    def shown(self) -> dict[str, Any]:
        """The tool as agents are told of it."""
        return {**self.model_dump(mode="json", exclude_none=True), "input_schema": self.input_schema}


class ScenarioCard(PublicModel):
    """The public half of a scenario."""

    slug: Slug
    name: Line
    description: Text
    max_turns: int = Field(ge=4, le=50)
    tools: tuple[Tool, ...] = ()


class CollectionCard(PublicModel):
    """The public half of a collection."""

    slug: Slug
    name: Line
    description: Text
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")


class Family(StrEnum):
    """The seven criterion families; `reward_config.quality_weights` is keyed by them."""

    SUCCESS_METRICS = "success_metrics"
    FAILURE_METRICS = "failure_metrics"
    BEST_PRACTICES = "best_practices"
    RUBRICS = "rubrics"
    DISCOVERY = "discovery"
    OUTPUT_SIMILARITY = "output_similarity"
    DECISION_MATCH = "decision_match"


# --- checks: what decides a criterion. Exactly one kind per criterion. -------------------------


class ElicitedCheck(PrivateModel):
    """State: facts or denials the persona said because a question earned them."""

    facts: tuple[Identifier, ...] = Field(min_length=1)
    need: Literal["all", "any", "share"] = "all"
    """`share` gives partial credit: the share of `facts` elicited."""
    by_turn: int | None = Field(default=None, ge=1, le=50)


class CommittedCheck(PrivateModel):
    """State: the agent made one of these commitments (after `after` was said, if given)."""

    any_of: tuple[Identifier, ...] = Field(min_length=1)
    after: Needs = ()
    """Facts or denials that must have been said in an earlier turn than the commitment; of a list, any one."""
    before: Needs = ()
    """Met only if some of these had NOT yet been said when the commitment was made (premature)."""


class ToolCheck(PrivateModel):
    """State: a valid call of a tool, with an input that fits."""

    tool: Identifier
    value: tuple[Line, ...] = ()
    """For a decision: acceptable values of `input.value`; empty means any."""
    contains: dict[str, tuple[Line, ...]] = Field(default_factory=dict)
    """For an artifact: input field -> words or phrases of which one must occur in it. Every field must have one.
    Whole words are compared, whatever their case and punctuation."""
    after: Needs = ()
    before: Needs = ()
    """As in `CommittedCheck`: premature."""
    wrong: bool = False
    """Met by a valid call whose value is NOT among `value`."""
    invalid: bool = False
    """Met by a call that names no such tool or whose input does not fit its schema."""
    more_than: int | None = Field(default=None, ge=0)
    """Met when the tool was called more often than this."""


class ConductCheck(PrivateModel):
    """State: how often the agent behaved in a way the simulator notices. Fewer times than `at_least` earn a share of
    positive points, and cost nothing."""

    act: Literal["rude", "empathy", "repeated_question", "interrogation", "open_question", "off_topic"]
    at_least: int = Field(default=1, ge=1)
    or_commits: tuple[Identifier, ...] = ()
    """With `empathy`: commitments that encourage as well ("praises_work"); each turn counts once, no wording twice."""
    after: Needs = ()
    """Facts or denials that must have been said in an earlier turn: how the agent took the news."""

    @model_validator(mode="after")
    def _encourages(self) -> Self:
        if self.or_commits and self.act != "empathy":
            raise ValueError("`or_commits` goes with `act: empathy`")
        return self


class PaceCheck(PrivateModel):
    """State: the share of these facts that was elicited within so many agent turns (efficient progress)."""

    facts: tuple[Identifier, ...] = Field(min_length=1)
    max_turns: int = Field(ge=1, le=50)


class LengthCheck(PrivateModel):
    """Rule: the share of agent turns within limits must be at least `share`."""

    max_words: int = Field(default=120, ge=5)
    min_words: int = Field(default=1, ge=0)
    max_questions: int | None = Field(default=None, ge=1)
    share: float = Field(default=0.8, gt=0.0, le=1.0)


class SimilarCheck(PrivateModel):
    """Local: the best agent sentence's cosine with an exemplar, mapped from [floor, full] to [0, 1]."""

    exemplars: tuple[Line, ...] = Field(min_length=1, max_length=200)
    against: tuple[Line, ...] = Field(default=(), max_length=200)
    """Counter-exemplars: a sentence closer to one of these does not count."""
    where: Literal["any", "last", "first"] = "any"
    floor: float = Field(default=0.45, ge=0.0, lt=1.0)
    full: float = Field(default=0.65, gt=0.0, le=1.0)


class JudgeCheck(PrivateModel):
    """LLM: a yes/no question about the agent's conduct; abstains where no LLM judge is configured."""

    question: Text


class PluginCheck(PrivateModel):
    """Own: decided by a judge plug-in that the operator has installed and named."""

    name: PluginName
    options: dict[str, Any] = Field(default_factory=dict)
    """What the plug-in wants to be told; a JSON object."""

    @field_validator("options")
    @classmethod
    def _is_json(cls, options: dict[str, Any]) -> dict[str, Any]:
        try:
            json.dumps(options, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("`options` must be a JSON object: text, numbers, booleans, lists, mappings") from None
        return options


class Check(PrivateModel):
    """Exactly one way to decide a criterion."""

    elicited: ElicitedCheck | None = None
    committed: CommittedCheck | None = None
    tool: ToolCheck | None = None
    conduct: ConductCheck | None = None
    pace: PaceCheck | None = None
    length: LengthCheck | None = None
    keyword: KeywordCheck | None = None
    regex: RegexCheck | None = None
    similar: SimilarCheck | None = None
    judge: JudgeCheck | None = None
    plugin: PluginCheck | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("a check has exactly one kind")
        return self

    @property
    def kind(self) -> str:
        """The name of the one kind that is set."""
        return next(iter(self.model_fields_set))


class Fallback(PrivateModel):
    """A dearer check, asked only where the one before it abstains or is unsure."""

    unsure: tuple[float, float]
    """The values of the check before that are too close to call, both ends included."""
    check: Check

    @field_validator("unsure")
    @classmethod
    def _is_a_band(cls, unsure: tuple[float, float]) -> tuple[float, float]:
        low, high = unsure
        if not 0.0 <= low <= high <= 1.0:
            raise ValueError("`unsure` is [low, high] with 0 <= low <= high <= 1")
        return unsure


class SharedCriterion(PrivateModel):
    """The criterion, whole or in part, that scenarios of a collection have in common: a criterion of a scenario
    with the same `id` takes over every key that it does not have itself."""

    id: Identifier
    family: Family | None = None
    dimension: DimensionName | None = None
    points: float | None = Field(default=None, ge=-20.0, le=20.0)
    """Positive: credit. Negative: a penalty when met. 0 only for failure metrics, which cap."""
    cap: float | None = Field(default=None, ge=0.0, le=0.6)
    """Failure metrics only: when met, the reward is at most this."""
    given: Needs = ()
    """Facts or denials that must have been elicited, else the criterion is not met; of a list, any one."""
    about: Text | None = None
    """What it means, for authors and operators; never sent."""
    check: Check | None = None
    fallback: tuple[Fallback, ...] = Field(default=(), max_length=3)
    """Who is asked where `check` is unsure, cheap first."""


class Criterion(SharedCriterion):
    """One line of the rubric."""

    family: Family
    dimension: DimensionName
    points: float = Field(ge=-20.0, le=20.0)
    about: Text
    check: Check

    @property
    def checks(self) -> tuple[Check, ...]:
        """Its own check and those of its fallbacks, in order."""
        return (self.check, *(fallback.check for fallback in self.fallback))

    @model_validator(mode="after")
    def _failure_caps(self) -> Self:
        if (self.family is Family.FAILURE_METRICS) != (self.cap is not None):
            raise ValueError("failure metrics have a `cap`, and only they")
        if self.cap is None and self.points == 0:
            raise ValueError("points may be 0 only for failure metrics")
        if self.cap is not None and self.points > 0:
            raise ValueError("a failure metric cannot have positive points")
        return self


class Dimension(PrivateModel):
    """A named part of the reward. The names are public by design, the weights are not."""

    name: DimensionName
    weight: float = Field(gt=0.0, le=1.0)


class Rubric(PrivateModel):
    """The rules by which a conversation is scored: `private.rubric`, or the whole of `<slug>.rubric.yaml`."""

    dimensions: tuple[Dimension, ...] = Field(min_length=2, max_length=6)
    criteria: tuple[Criterion, ...] = Field(min_length=7, max_length=40)

    @model_validator(mode="after")
    def _weights_sum_to_one(self) -> Self:
        if abs(sum(d.weight for d in self.dimensions) - 1.0) > 1e-6:
            raise ValueError("the weights of the dimensions must sum to 1")
        return self


class RewardPart(PrivateModel):
    """One judge of a composite reward."""

    judge: PluginName
    """`rubric`, `reward_model`, or the name of a plug-in."""
    weight: float = Field(default=1.0, ge=0.0, le=1e6, allow_inf_nan=False)
    at_least: float | None = Field(default=None, ge=0.0, le=1.0)
    """Of the first part of `gated`: what it has to reach for the others to count."""


class CompositeReward(PrivateModel):
    """A reward put together from several judges; a request's own `composite` wins over it."""

    combine: Literal["weighted_sum", "min", "product", "gated"]
    parts: tuple[RewardPart, ...] = Field(min_length=1, max_length=8)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if len({part.judge for part in self.parts}) < len(self.parts):
            raise ValueError("each judge may be named once")
        gated = self.combine == "gated"
        if gated and len(self.parts) < 2:
            raise ValueError("`gated` needs a gate and at least one further part")
        if [part.at_least is not None for part in self.parts] != [gated, *[False] * (len(self.parts) - 1)]:
            raise ValueError("`at_least` belongs to the first part of `gated`, and nowhere else")
        if self.combine != "min" and not any(part.weight > 0 for part in self.parts[gated:]):
            raise ValueError("at least one weight must be greater than 0")
        return self


class ScriptStep(PrivateModel):
    """One agent turn of an exam script."""

    say: Line
    tools: tuple[dict[str, Any], ...] = ()
    """Tool calls of this turn: {"name": …, "input": {…}}."""


class Exam(PrivateModel):
    """The author's script, which `labs scenarios check` plays beside the natural agents (`NaturalAgents`):
    `private.exam`, or `oracle` in `<slug>.agents.yaml`."""

    oracle: tuple[ScriptStep, ...] = Field(min_length=3, max_length=50)
    """Shows that the rubric can be met: reaches at least 0.85 with every temperament of the case."""


class NaturalAgents(PrivateModel):
    """Agents whose lines were written without sight of the asks and the rubric."""

    excellent: tuple[ScriptStep, ...] = Field(min_length=3, max_length=50)
    ok: tuple[ScriptStep, ...] = Field(min_length=1, max_length=50)
    """Does part of the work, in few words."""
    poor: tuple[ScriptStep, ...] = Field(min_length=1, max_length=50)
    """Polite, and no use: does not find out, or decides wrongly."""


class Breach(PrivateModel):
    """A sentence that some agent may say, and that must cost it: it makes a commitment that a cap rests on."""

    say: Line
    commits: Identifier


class AuthorsScripts(PrivateModel):
    """The part of `<slug>.agents.yaml` that the author alone writes."""

    oracle: tuple[ScriptStep, ...] = ()
    breaches: tuple[Breach, ...] = Field(default=(), max_length=100)
    """In other words than the examples of the commitments: `labs scenarios check` says which of them cost nothing."""


class AgentsFile(NaturalAgents, AuthorsScripts):
    """`<slug>.agents.yaml`: the natural agents beside what the author writes (the oracle: `Exam`), or without."""


class ToolSecrets(PrivateModel):
    """The part of a tool that the agent is not told."""

    id: Identifier
    final: bool = False
    """A valid call counts as reaching the persona's goal of the same id."""
    reply: tuple[Line, ...] = ()
    """What the persona says after a valid call, if it would notice it."""


class ScenarioSecrets(PrivateModel):
    """The private half of a scenario."""

    fact_groups: dict[Identifier, Annotated[tuple[Identifier, ...], Field(min_length=2)]] = Field(default_factory=dict)
    """Names for lists of facts and denials of which any one will do: a need (`after`, `before`, `given`, `requires`)
    may be such a name instead of the list."""
    persona: PersonaCase
    tools: tuple[ToolSecrets, ...] = ()
    rubric: Rubric
    reward: CompositeReward | None = None
    """Who makes up the reward; the rubric alone unless it is given."""
    exam: Exam


NOBODY = PersonaCase.model_construct(
    name="",
    role="",
    temperaments=(),
    openings=(),
    facts=(),
    denials=(),
    commitments=(),
    unknown=(),
    nudges=(),
    phrases={},
)
"""The case of a rubric without a persona: nothing to find out, nothing to promise."""


def rubric_secrets(rubric: Rubric, reward: CompositeReward | None) -> ScenarioSecrets:
    """The private half of a rubric without a persona."""
    return ScenarioSecrets.model_construct(
        fact_groups={},
        persona=NOBODY,
        tools=(),
        rubric=rubric,
        reward=reward,
        exam=Exam.model_construct(oracle=()),
    )


class ScenarioFile(PrivateModel):
    """One scenario: `scenarios/collections/<collection>/<slug>.yaml` with what `scenarios.whole` puts in."""

    schema_: Literal["labs.scenario/1"] = Field(alias="schema")
    version: int = Field(ge=1)
    public: ScenarioCard
    private: ScenarioSecrets


class CollectionFile(PrivateModel):
    """`collection.yaml` of a collection folder: its card, and the topics and criteria that its scenarios share."""

    schema_: Literal["labs.collection/1"] = Field(alias="schema")
    public: CollectionCard
    topics: dict[Identifier, Topic] = Field(default_factory=dict)
    criteria: tuple[SharedCriterion, ...] = ()
    foreign: tuple[Line, ...] = ()
    """Questions that belong to no topic here, at least 20 where there are personas; `labs scenarios check` expects no
    disclosure."""
