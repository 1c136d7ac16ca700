"""The weight of messages: how much there is to read, which a request costs, known before any of it is read.

Characters are counted as they are read, in NFKC: some become many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic_core import to_json

from reward_server.errors import FieldProblem, InvalidRequest, TooMuchText
from reward_server.transcripts.transcript import PARTIES, SpokenMessage
from trainer_client.wire import normalised_length

MAX_TRANSCRIPT_CHARACTERS = 250_000
MAX_TURN_CHARACTERS = 40_000
"""Of consecutive messages of one party together, which are read as one text, in one go."""
MAX_REQUEST_CHARACTERS = 1_000_000
"""Of all conversations of a request together."""
MAX_MESSAGE_INPUTS = 40_000
"""Of all tool calls of a message together."""
MESSAGE = 20
"""What a message costs besides its characters."""
HEAVY = 20_000
"""From here on even looking at it is work, which the event loop has no time for."""


def weight(message: SpokenMessage) -> int:
    """The characters of a message, its tool calls included."""
    return MESSAGE + normalised_length(message.content) + _inputs(message)


def weight_of(messages: Sequence[SpokenMessage]) -> int:
    """The characters of a conversation; `TooMuchText` if they are too many to be read in time."""
    total = turn = 0
    speaker = ""
    for index, message in enumerate(messages):
        content, inputs = normalised_length(message.content), _inputs(message)
        if message.role in PARTIES:
            turn = content + (turn if message.role == speaker else 0)
            speaker = message.role
        if turn > MAX_TURN_CHARACTERS:
            raise TooMuchText(
                f"Consecutive messages of one party may have {MAX_TURN_CHARACTERS} characters together, and no more."
            )
        if inputs > MAX_MESSAGE_INPUTS:
            told = f"The inputs of a message may have {MAX_MESSAGE_INPUTS} characters together."
            raise InvalidRequest(errors=[FieldProblem(("messages", index, "tool_calls"), told)])
        total += MESSAGE + content + inputs
    if total > MAX_TRANSCRIPT_CHARACTERS:
        raise TooMuchText(f"A conversation may have {MAX_TRANSCRIPT_CHARACTERS} characters; this one has more.")
    return total


def weight_of_all(conversations: Iterable[Sequence[SpokenMessage]]) -> int:
    """That of all conversations of a request."""
    total = sum(map(weight_of, conversations))
    if total > MAX_REQUEST_CHARACTERS:
        raise TooMuchText(
            f"A request may hold {MAX_REQUEST_CHARACTERS} characters of conversations; this one has more."
        )
    return total


def _inputs(message: SpokenMessage) -> int:
    if not message.tool_calls:
        return 0
    written = to_json([call.input for call in message.tool_calls])
    return len(written) if written.isascii() else max(len(written), normalised_length(written.decode()))
