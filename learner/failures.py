"""The failure of an episode: a code to count by, and what the server or the learner said of it.

Codes are the server's, or the learner's own where an episode fails before it asks the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainer_client import LabsError, Unauthenticated

SET_A_KEY = "set LABS_API_KEY to one that it has (`./labs keys create` makes one)"
"""What to do when the server wants a key or refuses this one."""


@dataclass(frozen=True)
class Failure:
    """The end of an episode without a reward."""

    code: str
    message: str = ""

    @classmethod
    def of(cls, error: LabsError) -> Failure:
        """The failure that an error of the client stands for."""
        if isinstance(error, Unauthenticated):
            return cls(error.code, f"the server needs a key or refuses this one; {SET_A_KEY}")
        return cls(error.code, error.explanation)


TURN_TOO_LONG = Failure(
    "turn_too_long", "the server does not accept turns as long as the policy's: lower model.max_tokens"
)
EPISODE_ERROR = Failure("episode_error", "the server ended the episode with an error")


def context_full(prompt: int, context: int, max_tokens: int, *, has_system: bool) -> Failure:
    """A prompt of so many tokens and a turn have no room in the model; only what would help is advised."""
    ways = [f"lower model.max_tokens to at most {context - prompt}"] if prompt < context else []
    ways += ["set server.system to 'none'"] if has_system else []
    advice = " or ".join(ways) or "use a model with a longer context, or a scenario with a shorter prompt"
    return Failure(
        "context_full",
        f"a prompt of {prompt} tokens and a turn of model.max_tokens = {max_tokens} do not fit into the model's context"
        f" of {context} tokens: {advice}",
    )


def messages_of(failures: Iterable[Failure]) -> dict[str, str]:
    """The first message of each code."""
    found: dict[str, str] = {}
    for failure in failures:
        if failure.message:
            found.setdefault(failure.code, failure.message)
    return found


def told(code: str, messages: Mapping[str, str]) -> str:
    """A code with its message, where it has one."""
    return f"{code} ({messages[code].rstrip('.')})" if code in messages else code


def most_frequent(codes: Sequence[str], messages: Mapping[str, str]) -> str:
    """The code that most episodes ended with, and its message."""
    return told(Counter(codes).most_common(1)[0][0], messages)
