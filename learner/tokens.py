"""From chat messages to token ids without ever encoding the policy's own text again, where that can be.

The first prompt is rendered by the model's chat template. After that the next prompt is the ids so
far plus a suffix: what the template puts between the policy's last token and its next one. The
suffix is the difference of two renderings of dummy text, so any append-only template works. One
that rewrites history (it drops old thinking, say) forks: the next prompt is rendered whole, and begins
a row of its own. What ends a turn is what the template puts after one, not what the tokenizer calls
`eos`. What the persona says is encoded as plain text: control tokens spelled out in it stay letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jinja2

from learner.tools import in_words, says, tagged

POLICY_MARK = "\u2063policy\u2063"
LATER_MARK = "\u2063policy again\u2063"
PERSONA_MARK = "\u2063persona\u2063"
LAST_MARK = "\u2063persona again\u2063"
THOUGHT = "<think>\nhm\n</think>\n\n"
_END_OF_THOUGHT = "</think>"


class Tokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    eos_token_id: int
    all_special_tokens: list[str]
    added_tokens_decoder: dict[int, Any]

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> Any:
        """Render messages."""
        ...

    def encode(self, text: str, **options: Any) -> list[int]:
        """Text to ids."""
        ...

    def decode(self, token_ids: list[int], **options: Any) -> str:
        """Ids to text."""
        ...

    def convert_tokens_to_ids(self, tokens: str) -> int:
        """The id of one spelling."""
        ...


class TemplateError(ValueError):
    """The chat template cannot be used."""


@dataclass(frozen=True)
class Spoken:
    """What the policy's tokens say."""

    text: str
    lossy: bool
    """The text holds undecodable bytes or a spelled-out control token."""


class Renderer:
    """Prompts and suffixes for one tokenizer and one system prompt."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        system: str | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        stops: Iterable[int] = (),
    ) -> None:
        if getattr(tokenizer, "chat_template", "") is None:
            raise TemplateError(
                "the model has no chat template; use a model that was trained for chat, or put a chat_template.jinja"
                " into its folder"
            )
        self._tokenizer = tokenizer
        self._system = system
        self._options: dict[str, Any] = {**(options or {}), **({"tools": [*tools]} if tools else {})}
        self._merges_system = bool(system) and not self._takes_system()
        self._special = special_tokens(tokenizer)
        self._stops = frozenset(stops)
        self._given = (dict(options or {}), self._stops)
        between, self._tail = self._split_suffix()
        found = self._end_of(between)
        if found is None:
            raise TemplateError(
                "the chat template does not end a turn with a control token, so the policy's turns would never end;"
                " use another template"
            )
        self._end_text, place = found
        self.end_id = self._special[self._end_text]
        self._cut_off_head, self._ended_head = between, between[place + len(self._end_text) :]
        self.forks = not self._appends("")
        self._drops_thoughts = not self.forks and not self._appends(THOUGHT)

    def within(self, system: str | None, tools: Sequence[Mapping[str, Any]] = ()) -> Renderer:
        """The same tokenizer in another scenario. Tools go where the template has a place for them."""
        options, stops = self._given
        if tools and not self._takes_tools(tools):
            system = "\n\n".join(part for part in (system, in_words(tools)) if part)
            tools = ()
        return Renderer(self._tokenizer, system, tools=tools, options=options, stops=stops)

    def opening(self, persona: str) -> list[int]:
        """The first prompt: the persona's opening and the start of the policy's turn."""
        return self.prompt([persona], [])

    def suffix(self, persona: str, *, ended: bool) -> list[int]:
        """What follows the policy's turn: its end (if it was not sampled), the persona, the next start."""
        return self._encode([self._ended_head if ended else self._cut_off_head, self._tail], [persona])

    def prompt(self, persona: Sequence[str], policy: Sequence[str]) -> list[int]:
        """A whole conversation that the persona spoke last in, rendered anew, up to the start of the policy's turn."""
        heard = [f"\u2063heard {number}\u2063" for number in range(len(persona))]
        said = [
            f"\u2063said {number}\u2063" if any(token in text for token in self._special) else text
            for number, text in enumerate(policy)
        ]
        messages = []
        for number, mark in enumerate(heard):
            messages.append({"role": "user", "content": mark})
            if number < len(said):
                messages.append({"role": "assistant", "content": said[number]})
        marked = {**dict(zip(heard, persona, strict=True)), **dict(zip(said, policy, strict=True))}
        return self._fill(self._render(messages, generation=True), marked)

    def with_calls(self, text: str, calls: Sequence[Mapping[str, Any]]) -> str:
        """What the policy writes to say this and make these calls (name, arguments), as its template writes calls.

        Control tokens are left out, since none is sampled. If the template has no place for calls, or they could not be
        read from what is left, they are written as `in_words` asks for.
        """
        if not calls:
            return text
        written = self._calls_of_template(text, calls)
        for token in self._special:
            written = written.replace(token, "")
        if not says(written, text, calls):
            written = "\n".join(part for part in (text, *map(tagged, calls)) if part)
        return written

    def _calls_of_template(self, text: str, calls: Sequence[Mapping[str, Any]]) -> str:
        """The turn between the start and the end that the template gives it; empty where the template fails."""
        functions = [{"type": "function", "id": f"call{n:05}", "function": {**call}} for n, call in enumerate(calls)]
        asked = [{"role": "user", "content": "hello"}]
        try:
            before = self._apply(asked, generation=True)
            whole = self._apply(
                [*asked, {"role": "assistant", "content": text, "tool_calls": functions}], generation=False
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError):
            return ""
        body = whole.removeprefix(before)
        return "" if body == whole else body.partition(self._end_text)[0].strip()

    def control_in(self, ids: Iterable[int]) -> str | None:
        """A control token that is among these and is not the end of a turn: one that no policy samples."""
        spelled = {number: text for text, number in self._special.items() if number != self.end_id}
        return next((spelled[number] for number in ids if number in spelled), None)

    def rewrites(self, said: str) -> bool:
        """Whether the next prompt is not the ids so far with something after them, now that this was said."""
        return self.forks or (self._drops_thoughts and _END_OF_THOUGHT in said)

    def spoken(self, ids: list[int]) -> Spoken:
        """The text of a turn, without the end token that closes it."""
        body = ids[:-1] if ids and ids[-1] == self.end_id else ids
        text = self._tokenizer.decode(body, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        lossy = "\ufffd" in text or "\0" in text or any(token in text for token in self._special)
        # No server takes a NUL, and nobody sees one.
        return Spoken(text.replace("\0", "\ufffd"), lossy)

    # --- what the template does ---------------------------------------------------------------------

    def _takes_system(self) -> bool:
        """Whether there is a place for a system prompt; some templates refuse one, some leave it out."""
        system = {"role": "system", "content": POLICY_MARK}
        try:
            return POLICY_MARK in self._apply([system, {"role": "user", "content": "hello"}], generation=True)
        except (jinja2.TemplateError, TypeError, ValueError):
            return False

    def _takes_tools(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        messages = [{"role": "user", "content": "hello"}]
        try:
            with_tools = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._options, tools=[*tools]
            )
        except (jinja2.TemplateError, TypeError, ValueError):
            return False
        return all(tool["function"]["name"] in with_tools for tool in tools)

    def _split_suffix(self) -> tuple[str, str]:
        _, rest = _split_once(self._grown([POLICY_MARK], ["hello", PERSONA_MARK]), POLICY_MARK)
        return _split_once(rest, PERSONA_MARK)

    def _appends(self, thought: str) -> bool:
        """Whether each prompt begins with the one before it and what the policy said then."""
        policy = [f"{thought}{POLICY_MARK}", f"{thought}{LATER_MARK}"]
        persona = ["hello", PERSONA_MARK, LAST_MARK]
        first, second, third = (self._grown(policy[:turn], persona[: turn + 1]) for turn in range(3))
        return (
            second.startswith(first + policy[0])
            and third.startswith(second + policy[1])
            and second.removeprefix(first + policy[0]).replace(PERSONA_MARK, "")
            == third.removeprefix(second + policy[1]).replace(LAST_MARK, "")
        )

    def _grown(self, policy: Sequence[str], persona: Sequence[str]) -> str:
        messages = []
        for number, text in enumerate(persona):
            messages.append({"role": "user", "content": text})
            if number < len(policy):
                messages.append({"role": "assistant", "content": policy[number]})
        return self._render(messages, generation=True)

    def _end_of(self, between: str) -> tuple[str, int] | None:
        """The control token that closes a turn, and where it is: one the model stops at before any other."""
        found = [(place, -len(text), text) for text in self._special if text and (place := between.find(text)) >= 0]
        stops = [each for each in found if self._special[each[2]] in self._stops]
        if not found:
            return None
        place, _, text = min(stops or found)
        return text, place

    def _render(self, messages: list[dict[str, str]], *, generation: bool) -> str:
        try:
            return self._apply(self._with_system(messages), generation=generation)
        except (jinja2.TemplateError, TypeError) as error:
            raise TemplateError(f"the chat template fails: {error}") from None

    def _with_system(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        if not self._system:
            return messages
        if not self._merges_system:
            return [{"role": "system", "content": self._system}, *messages]
        return [{"role": "user", "content": f"{self._system}\n\n{messages[0]['content']}"}, *messages[1:]]

    def _apply(self, messages: list[dict[str, Any]], *, generation: bool) -> str:
        rendered: str = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=generation, **self._options
        )
        return rendered

    # --- text to ids --------------------------------------------------------------------------------

    def _fill(self, rendered: str, marked: Mapping[str, str]) -> list[int]:
        outside, inside = [], []
        rest = rendered
        for mark, text in sorted(marked.items(), key=lambda each: rendered.find(each[0])):
            if mark.startswith("\u2063"):
                head, rest = _split_once(rest, mark)
                outside.append(head)
                inside.append(text)
        return self._encode([*outside, rest], inside)

    def _encode(self, outside: Sequence[str], inside: Sequence[str]) -> list[int]:
        """The template's pieces with what was said between them."""
        if not any(token in text for text in inside for token in self._special):
            # As one text, so that tokens at the seams are those the model knows.
            whole = "".join(part for pair in zip(outside, [*inside, ""], strict=True) for part in pair)
            return self._tokenizer.encode(whole, add_special_tokens=False, verbose=False)
        ids: list[int] = []
        for head, text in zip(outside, [*inside, ""], strict=True):
            ids += self._tokenizer.encode(head, add_special_tokens=False, verbose=False)
            ids += self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return ids


def special_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """Control tokens and their ids: those the tokenizer uses, and all it marks as special."""
    found = {text: tokenizer.convert_tokens_to_ids(text) for text in tokenizer.all_special_tokens}
    return found | {str(token): number for number, token in tokenizer.added_tokens_decoder.items() if token.special}


def _split_once(text: str, mark: str) -> tuple[str, str]:
    head, found, tail = text.partition(mark)
    if not found or mark in tail:
        raise TemplateError("the chat template drops or repeats a message")
    return head, tail
