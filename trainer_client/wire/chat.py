"""Plain inference with the lab's own policies: OpenAI's chat completions, whole and in parts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from trainer_client.wire.base import MAX_TURNS, Messages, RequestModel, ResponseModel, SlugField

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class ChatStreamOptions(RequestModel):
    """The parts of a stream besides the answer."""

    include_usage: bool = False
    """Whether the last chunk says the tokens used."""


class _Conversation(RequestModel):
    messages: Annotated[Messages, Field(min_length=1, max_length=2 * MAX_TURNS + 32)]
    """The agent's own side has role `assistant`; the last message is what it answers."""
    collection_slug: SlugField | None = None
    scenario_slug: SlugField | None = None
    """With a scenario the agent is told its public card and its tools, as when it is evaluated."""
    stream: bool = False
    """Server-sent events with OpenAI's chunks instead of one answer."""
    stream_options: ChatStreamOptions | None = None
    """For streams only."""

    @model_validator(mode="after")
    def _whole_scenario(self) -> Self:
        if (self.collection_slug is None) != (self.scenario_slug is None):
            raise ValueError("`collection_slug` and `scenario_slug` go together")
        return self

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the tokens used."""
        return self.stream_options is not None and self.stream_options.include_usage


class AgentChatRequest(_Conversation):
    """POST /agents/{id}/chat."""


class ChatCompletionRequest(_Conversation):
    """POST /chat."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """`agent_…`, or `run_…` of a training run that is complete."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)] | None = None
    """Default: the agent's own; of a run 1."""
    max_tokens: Annotated[int, Field(ge=1, le=32_768, strict=True)] | None = None


class ChatFunction(ResponseModel):
    """The function that a tool call names."""

    name: str
    arguments: str
    """JSON text."""


class ChatToolCall(ResponseModel):
    """A tool call in OpenAI's shape."""

    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatMessage(ResponseModel):
    """The answer."""

    role: Literal["assistant"]
    content: str
    tool_calls: list[ChatToolCall] | None = None


class ChatChoice(ResponseModel):
    """The one answer."""

    index: int
    message: ChatMessage
    finish_reason: FinishReason


class ChatUsage(ResponseModel):
    """Tokens as the endpoint counts them; 0 where it does not say."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletionResponse(ResponseModel):
    """Answer of POST /chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    request_id: str
