"""From chat messages to token ids without ever encoding the policy's own text again.

The first prompt is rendered by the model's chat template. After that the next prompt is the ids so
far plus a suffix: what the template puts between the policy's last token and its next one. The
suffix is the difference of two renderings of dummy text, so any append-only template works; one
that rewrites history is refused. What the persona says is encoded as plain text: control tokens
spelled out in it stay letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

POLICY_MARK = "\u2063policy\u2063"
PERSONA_MARK = "\u2063persona\u2063"


class Tokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    eos_token_id: int
    all_special_tokens: list[str]

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        """Render messages."""
        ...

    def encode(self, text: str, **options: Any) -> list[int]:
        """Text to ids."""
        ...

    def decode(self, token_ids: list[int], **options: Any) -> str:
        """Ids to text."""
        ...

    def convert_ids_to_tokens(self, ids: int) -> str:
        """The spelling of one id."""
        ...


class TemplateError(ValueError):
    """The chat template cannot be used for conversations that only grow."""


@dataclass(frozen=True)
class Spoken:
    """What the policy's tokens say."""

    text: str
    lossy: bool
    """The text holds undecodable bytes or a spelled-out control token."""


class Renderer:
    """Prompts and suffixes for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, system: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._system = [{"role": "system", "content": system}] if system else []
        self.end_id = tokenizer.eos_token_id
        self._end_text = tokenizer.convert_ids_to_tokens(self.end_id)
        before, after = self._split_suffix()
        self._cut_off_head, self._tail = before, after
        if not before.startswith(self._end_text):
            raise TemplateError(f"the chat template does not end a turn with {self._end_text!r}, the token sampled")
        self._ended_head = before.removeprefix(self._end_text)

    def opening(self, persona: str) -> list[int]:
        """The first prompt: the persona's opening and the start of the policy's turn."""
        rendered = self._render([{"role": "user", "content": PERSONA_MARK}], generation=True)
        head, tail = _split_once(rendered, PERSONA_MARK)
        return self._around(head, persona, tail)

    def suffix(self, persona: str, *, ended: bool) -> list[int]:
        """What follows the policy's turn: its end (if it was not sampled), the persona, the next start."""
        return self._around(self._ended_head if ended else self._cut_off_head, persona, self._tail)

    def spoken(self, ids: list[int]) -> Spoken:
        """The text of a turn, without the end token that closes it."""
        body = ids[:-1] if ids and ids[-1] == self.end_id else ids
        text = self._tokenizer.decode(body, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        lossy = "\ufffd" in text or any(token in text for token in self._tokenizer.all_special_tokens)
        return Spoken(text, lossy)

    def _split_suffix(self) -> tuple[str, str]:
        said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": POLICY_MARK}]
        prompt = self._render(said[:1], generation=True)
        closed = self._render(said, generation=False)
        grown = self._render([*said, {"role": "user", "content": PERSONA_MARK}], generation=True)
        if not closed.startswith(prompt) or not grown.startswith(closed.rstrip()):
            raise TemplateError("the chat template rewrites what was said before; only append-only templates work")
        _, rest = _split_once(grown, POLICY_MARK)
        return _split_once(rest, PERSONA_MARK)

    def _render(self, messages: list[dict[str, str]], *, generation: bool) -> str:
        rendered: str = self._tokenizer.apply_chat_template(
            [*self._system, *messages], tokenize=False, add_generation_prompt=generation
        )
        return rendered

    def _around(self, head: str, persona: str, tail: str) -> list[int]:
        inside = self._tokenizer.encode(persona, add_special_tokens=False, split_special_tokens=True)
        outside = [self._tokenizer.encode(text, add_special_tokens=False) for text in (head, tail)]
        return [*outside[0], *inside, *outside[1]]


def _split_once(text: str, mark: str) -> tuple[str, str]:
    head, found, tail = text.partition(mark)
    if not found or mark in tail:
        raise TemplateError("the chat template drops or repeats a message")
    return head, tail
