"""Preferences between two conversations: stored comparisons, what people say, and exports for training."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from trainer_client.wire.base import Message, RequestModel, ResponseModel, Reward, Role, SlugField
from trainer_client.wire.scoring import Candidate

Winner = Literal["a", "b", "tie"]
ExportFormat = Literal["trl", "openrlhf", "openai"]
PreferenceSource = Literal["label", "compare", "episodes"]


class PreferenceRequest(RequestModel):
    """POST /preferences: what a person says of a stored comparison, or of two conversations that come along."""

    comparison_id: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    collection_slug: SlugField | None = None
    scenario_slug: SlugField | None = None
    response_a: Candidate | None = None
    response_b: Candidate | None = None
    agent_role: Role = "assistant"
    winner: Winner
    margin: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """How much better, where the person says so."""
    labeller: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    """A name for who says it; use one that is nobody's own."""
    note: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    """Why, in the person's words; in no export for training."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        pair = (self.collection_slug, self.scenario_slug, self.response_a, self.response_b)
        if self.comparison_id is None and None in pair:
            raise ValueError("give comparison_id, or collection_slug, scenario_slug, response_a and response_b")
        if self.comparison_id is not None and any(part is not None for part in pair):
            raise ValueError("comparison_id says which conversations are meant: leave them out")
        if self.winner == "tie" and self.margin is not None:
            raise ValueError("a tie has no margin")
        return self


class PreferenceSide(ResponseModel):
    """One of the two conversations."""

    messages: list[Message]


class PreferenceSummary(ResponseModel):
    """A stored comparison (`compare`) or what a person said (`label`)."""

    id: str
    """`cmp_…` or `pref_…`."""
    source: Literal["label", "compare"]
    collection_slug: str
    scenario_slug: str
    winner: Winner
    margin: Reward | None = None
    labeller: str | None = None
    note: str | None = None
    comparison_id: str | None = None
    reward_a: Reward | None = None
    reward_b: Reward | None = None
    judge: str | None = None
    scoring_version: str | None = None
    agent_role: Role
    response_a: PreferenceSide
    response_b: PreferenceSide
    created_at: str


class PreferenceResponse(PreferenceSummary):
    """Answer of POST /preferences."""

    request_id: str


class PreferenceList(ResponseModel):
    """Answer of GET /preferences."""

    data: list[PreferenceSummary]
    next_cursor: str | None = None
    request_id: str


class OpenAiPrompt(ResponseModel):
    """The input of a line in OpenAI's format."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    parallel_tool_calls: bool


class ExportedPair(ResponseModel):
    """A line of GET /preferences/export: the first four fields for TRL and OpenRLHF, the next three for OpenAI."""

    prompt: list[dict[str, Any]] | None = None
    chosen: list[dict[str, Any]] | None = None
    rejected: list[dict[str, Any]] | None = None
    margin: Reward | None = None
    input: OpenAiPrompt | None = None
    preferred_output: list[dict[str, Any]] | None = None
    non_preferred_output: list[dict[str, Any]] | None = None
    provenance: dict[str, Any] | None = None
    """Source, ids, judge, scoring version and rewards."""


class PreferenceExport(ResponseModel):
    """The export that GET /preferences/export streams."""

    rows: list[ExportedPair]
    text: str
    """The file as it came: write it to a `.jsonl`."""

    @property
    def sha256(self) -> str:
        """The digest that the manifest names for the same query."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class AgreementFigure(ResponseModel):
    """A figure with its 95 % interval, drawn by comparison."""

    value: float
    low: float
    high: float
    n: int


class AgreementResponse(ResponseModel):
    """Answer of GET /preferences/agreement."""

    labels: int
    """Of comparisons of one scoring version: those that count."""
    left_out: int
    """Labels without rewards, or of another version."""
    scoring_version: str | None = None
    accuracy: AgreementFigure | None = None
    """How often the reward prefers what people prefer, ties aside; absent for fewer than five labels."""
    ties: float | None = None
    """How often the rewards are equal."""
    kappa: AgreementFigure | None = None
    """Cohen's: agreement of the reward and people on a, b or tie, beyond chance."""
    alpha: AgreementFigure | None = None
    """Krippendorff's: agreement of named labellers among themselves, beyond chance, where several spoke of the same
    comparisons."""
    request_id: str


class ManifestResponse(ResponseModel):
    """Answer of GET /preferences/manifest: what an export holds."""

    version: str
    format: ExportFormat
    until: str
    """Everything stored up to this moment is in it; the same query with it gives the same bytes again."""
    min_margin: float
    pairs: int
    sources: dict[str, int]
    scenarios: dict[str, int]
    scoring_versions: dict[str, int]
    left_out: dict[str, int]
    """How many there are of what is no pair, by the reason."""
    bytes: int
    sha256: str
    """Of the bytes of the export."""
    request_id: str
