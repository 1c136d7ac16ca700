"""The interface of language models: a question in, a structured answer out, or a typed failure.

Adapters (`anthropic_provider`, `openai_provider`) speak to one provider once: no retries, no cache. Everything that
surrounds a call (deadline, retries, breaker, concurrency, budget, single flight) lives in `caller`. Nothing here
knows what is asked, and nothing here turns a failure into an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from reward_server.errors import ProviderFailed


class FailureKind(StrEnum):
    """The ways in which asking a language model can fail; metric labels and operators' logs carry these words."""

    RATE_LIMITED = "rate_limited"
    """429 of the provider."""
    OVERLOADED = "overloaded"
    """529, 503 or another 5xx."""
    TIMEOUT = "timeout"
    """No response within the deadline of one attempt (connect or read)."""
    RESET = "reset"
    """The connection broke."""
    HANG = "hang"
    """The response began and did not end in time."""
    REFUSED = "refused"
    """The model declined to answer; no verdict on the transcript."""
    TRUNCATED = "truncated"
    """The answer stopped at the token limit or the context window."""
    MALFORMED = "malformed"
    """Not JSON, or JSON of another shape."""
    WRONG_IDS = "wrong_ids"
    """Answers to questions nobody asked, or some missing or doubled."""
    OUT_OF_RANGE = "out_of_range"
    """A turn that does not exist, a score outside [0, 1]."""
    NOT_FINITE = "not_finite"
    """NaN or an infinity where a number belongs."""
    TOO_LARGE = "too_large"
    """An answer, or a question, far beyond what fits."""
    EMPTY = "empty"
    """Nothing was answered."""
    FOREIGN_QUOTE = "foreign_quote"
    """Evidence that stands in no agent turn."""
    UNAUTHORISED = "unauthorised"
    """The provider refuses our key or wants to be paid: an operator has to act."""
    NOT_FOUND = "not_found"
    """Nothing is at this address, or no such model: an operator has to act."""
    NO_LOGPROBS = "no_logprobs"
    """Log-probabilities were asked for and not given: an operator has to say that this model has none."""
    REJECTED = "rejected"
    """The provider does not take this question, for a reason that is neither the key nor its size."""
    MISSING = "missing"
    """A decision that was asked for and is not among the answers."""
    UNKNOWN_LABEL = "unknown_label"
    """A decision for something that was no option, or none for something that was."""
    WRONG_TYPE = "wrong_type"
    """A decision of another type than the question."""
    NO_DISTRIBUTION = "no_distribution"
    """Probabilities whose sum is far from 1."""
    BREAKER_OPEN = "breaker_open"
    """Not asked at all: this provider has been failing. Whoever was asked and failed keeps the kind of that failure."""


NO_LOGPROBS_HINT = "set LABS_LLM_LOGPROBS=false: this model gives no log-probabilities"
"""What `no_logprobs` asks of an operator."""
TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.OVERLOADED,
        FailureKind.TIMEOUT,
        FailureKind.RESET,
        FailureKind.HANG,
        FailureKind.EMPTY,
    }
)
"""Worth another attempt as it is; the caller makes it."""
MISTAKES = frozenset(
    {
        FailureKind.MALFORMED,
        FailureKind.NOT_FINITE,
        FailureKind.OUT_OF_RANGE,
        FailureKind.WRONG_IDS,
        FailureKind.FOREIGN_QUOTE,
        FailureKind.TRUNCATED,
    }
)
"""What a model answered wrong, and may answer right when it is told so: for whoever asked to do, once."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those read from the provider's prompt cache."""

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


class LlmFailed(ProviderFailed):
    """A language model gave no usable answer. The message to a caller never says what was asked or answered."""

    def __init__(
        self, kind: FailureKind, *, retry_after_s: float | None = None, usage: TokenUsage | None = None
    ) -> None:
        super().__init__()
        self.kind = kind
        self.retry_after_s = retry_after_s
        """What the provider asked for, if it did."""
        self.usage = usage
        """What the attempt used up all the same; None where the provider did not say."""


class ProviderRequest(Protocol):
    """A request to a provider, as far as calling it goes."""

    @property
    def together(self) -> int:
        """The number of such questions that a decision takes: a budget has room for all or none."""

    @property
    def size(self) -> int:
        """Bytes of text."""

    @property
    def max_tokens(self) -> int:
        """The most that may be answered."""


class ProviderAnswer(Protocol):
    """An answer of a provider, as far as calling it goes."""

    @property
    def usage(self) -> TokenUsage:
        """The tokens that it cost."""


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """One structured question. `system` is the fixed, cacheable part; `user` holds the data. Private: no repr."""

    system: str
    user: str
    schema: type[BaseModel]
    """The shape of the answer; sent as a strict JSON schema."""
    max_tokens: int = 2048
    temperature: float | None = None
    """Sent only to providers that take one."""
    seed: int | None = None
    logprobs: bool = False
    """Ask for the alternatives of each token: an answer without is a failure. For providers that have them alone."""
    together: int = 1
    """How many such questions a decision takes: an answer alone is not kept, so a budget has room for all or none."""

    @property
    def size(self) -> int:
        """Bytes of text."""
        return len(self.system.encode("utf-8", "replace")) + len(self.user.encode("utf-8", "replace"))

    def __repr__(self) -> str:
        return f"<Question: {self.schema.__name__}, {len(self.system) + len(self.user)} characters>"


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One token of an answer and how likely its alternatives were."""

    token: str = field(repr=False)
    alternatives: Mapping[str, float] = field(repr=False)
    """Natural logarithms of probabilities, by token; includes the chosen one."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer of a language model."""

    parsed: BaseModel
    """An instance of the question's schema."""
    text: str
    model: str
    """The model that the provider says answered."""
    usage: TokenUsage = TokenUsage()
    tokens: tuple[TokenChoice, ...] = ()
    """Of the answer text, in order; empty where the provider gives none."""

    def __repr__(self) -> str:
        return f"<Answer: {type(self.parsed).__name__} of {self.model}>"


AskedT_contra = TypeVar("AskedT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Provider(Protocol[AskedT_contra, AnswerT_co]):
    """One model of one provider, asked once per call."""

    @property
    def name(self) -> str:
        """The provider: `anthropic`, `openai`, `vllm`, `systemone`, …"""

    @property
    def model(self) -> str:
        """The model that is asked."""

    @property
    def endpoint(self) -> str:
        """The address that is asked: scheme, host and path, without credentials."""

    async def complete(self, question: AskedT_contra, timeout_s: float) -> AnswerT_co:
        """One attempt; raises `LlmFailed`. Cancelling the call closes the connection."""

    async def close(self) -> None:
        """Release connections."""


class ChatProvider(Provider[Question, Answer], Protocol):
    """A provider of chat models."""

    @property
    def has_logprobs(self) -> bool:
        """True if answers carry `tokens` where a question asks for them; never changes, as verdicts rest on it."""


class LanguageModel(Protocol):
    """A provider with everything that belongs around it; what judges and personas use."""

    @property
    def name(self) -> str:
        """Provider and model, such as `anthropic/claude-…`."""

    @property
    def version(self) -> str:
        """Changes whenever answers may: provider, model, endpoint, sampling settings."""

    @property
    def has_logprobs(self) -> bool:
        """True if answers carry `tokens` where a question asks for them; never changes."""

    async def ask(self, question: Question, *, lab_id: str, sample: int = 0) -> Answer:
        """The answer, within the deadline. `sample` tells repeated questions of one kind apart.

        Raises:
            LlmFailed: after retries; never a made-up answer.
            BudgetExhausted: the lab has spent its tokens or money of the day; nothing was sent. `BudgetTooSmall`: no
                day has room for it.
        """

    def describe(self) -> Mapping[str, Any]:
        """Describe it for operators: provider, model, limits; no secrets."""
