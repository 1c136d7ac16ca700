"""Bodies that the Open Reward Standard's clients send and get, for `compat.ors`.

Fields are those of the packages ors-sdk 0.1.0 and openreward 0.1.167. Bodies that are lists there are lists here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel

from trainer_client.wire import MAX_TURNS, RequestModel, ResponseModel, Reward, SlugField
from trainer_client.wire.episodes import Split as VariantSplit

Seed = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Index = Annotated[int, Field(ge=-(2**53), le=2**53, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=300)]


class EnvironmentNames(RootModel[list[str]]):
    """The environments; the first is the default."""


class Split(ResponseModel):
    """A range of tasks."""

    name: str
    type: Literal["train", "test"]


class Splits(RootModel[list[Split]]):
    """The splits of an environment."""


class Task(RequestModel):
    """A scenario with a seed. A client may set what is left; what else it adds is its own."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    collection_slug: SlugField
    scenario_slug: SlugField
    seed: Seed
    max_turns: Annotated[int, Field(ge=1, le=MAX_TURNS, strict=True)] | None = None
    persona_slug: SlugField | None = None
    split: VariantSplit | None = None


class SplitCall(RequestModel):
    """Names a split."""

    split: Name


class TaskCall(SplitCall):
    """Names a task by its place in a split."""

    index: Index


class RangeCall(SplitCall):
    """Names tasks as a Python slice does."""

    start: Index | None = None
    stop: Index | None = None


class TaskCount(ResponseModel):
    """The number of tasks of a split."""

    num_tasks: int
    request_id: str


class OneTask(ResponseModel):
    """A task, and the environment it is of."""

    task: dict[str, Any]
    env_name: str
    request_id: str


class SomeTasks(ResponseModel):
    """Tasks in order, and the environment they are of."""

    tasks: list[dict[str, Any]]
    env_name: str
    request_id: str


class CreateCall(RequestModel):
    """The task that a session plays: `task_spec`, or `split` and `index`. Secrets are not read."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    env_name: Name | None = None
    task_spec: Task | None = None
    split: Name | None = None
    index: Index | None = None
    toolset_name: None = None
    """Toolsets are for sandboxes, which Labs does not have."""


class SessionReply(ResponseModel):
    """The session that the call was about."""

    sid: str
    request_id: str


class Status(ResponseModel):
    """All is well."""

    status: Literal["ok"]
    request_id: str


class TextBlock(ResponseModel):
    """A piece of text."""

    type: Literal["text"]
    text: str


class Prompt(RootModel[list[TextBlock]]):
    """The prompt of the policy before it begins."""


class ToolSpec(ResponseModel):
    """A tool of the policy."""

    name: str
    description: str
    input_schema: dict[str, Any]


class TerminalTool(ResponseModel):
    """The tool for a last message without a tool call, as its argument `arg`."""

    name: str
    arg: str
    description: str


class Tools(ResponseModel):
    """The tools of the policy."""

    tools: list[ToolSpec]
    terminal_tool: TerminalTool
    request_id: str


class Call(RequestModel):
    """A tool call of the policy; `task_id` is that of a call whose stream broke off."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    name: Name
    input: dict[str, Any]
    task_id: Annotated[str, Field(max_length=64)] | None = None


class Output(ResponseModel):
    """The output of a tool call."""

    blocks: list[TextBlock]
    metadata: dict[str, Any]
    reward: Reward | None
    """Of the whole conversation, with the call that ends it; null before."""
    finished: bool


class Outcome(ResponseModel):
    """The data of the event `end`: `output`, or what was wrong with the call."""

    ok: bool
    output: Output | None = None
    error: str | None = None
    reason: Literal["not_found", "input_validation", "episode_finished"] | None = None
