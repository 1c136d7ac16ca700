"""From chat messages to token ids without ever encoding the policy's own text again, where that can be.

The first prompt is rendered by the model's chat template. After that the next prompt is the ids so
far plus a suffix: what the template puts between the policy's last token and its next one. The
suffix is the difference of two renderings of dummy text, so any append-only template works. One
that rewrites history (it drops old thinking, say) forks: the next prompt is rendered whole, and begins
a row of its own. What ends a turn is what the template puts after one, not what the tokenizer calls
`eos`. What the persona says is encoded as plain text: control tokens spelled out in it stay letters. After a turn
with tool calls, their results come first, where the template has a place for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jinja2

from trainer_client.chat import thoughts
from trainer_client.chat.tools import Result, in_words, says, tagged

POLICY_MARK = "\u2063policy\u2063"
LATER_MARK = "\u2063policy again\u2063"
PERSONA_MARK = "\u2063persona\u2063"
LAST_MARK = "\u2063persona again\u2063"
_NO_RESULTS = "the chat template has no place for `tool` messages, so the assistant cannot go on after one"
THOUGHT = thoughts.thinking("hm")


class Tokenizer(Protocol):
    """The part of a transformers tokenizer that is used."""

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
class SpokenTokens:
    """Text and calls of the policy's tokens."""

    text: str
    lossy: bool
    """The text holds undecodable bytes or a spelled-out control token."""
    aloud: str = ""
    """The text without thoughts: what the persona hears."""
    thought: str = ""


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
        self.end_text, place = found
        self.end_id = self._special[self.end_text]
        self._cut_off_head, self._ended_head = between, between[place + len(self.end_text) :]
        self.forks = not self._appends("")
        self._drops_thoughts = not self.forks and not self._appends(THOUGHT)
        opening = self._render([{"role": "user", "content": "hello"}], generation=True)
        self.opens_thought = opening.rstrip().endswith(thoughts.OPEN)
        self._opened = opening[opening.rfind(thoughts.OPEN) :] if self.opens_thought else ""
        self._answered: dict[tuple[tuple[str, ...], bool], list[str] | None] = {}

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

    def suffix(self, persona: str | None, *, ended: bool, results: Sequence[Result] = ()) -> list[int]:
        """The tokens after the policy's turn: its end (if not sampled), the results of its calls, the persona (None:
        nothing was said), the next start."""
        pieces = self._pieces(tuple(result.name for result in results), spoken=persona is not None) if results else None
        if pieces is None:
            if persona is None:
                raise TemplateError(_NO_RESULTS)
            return self._encode([self._ended_head if ended else self._cut_off_head, self._tail], [persona])
        head = pieces[0]
        if ended:
            head = head[head.find(self.end_text) + len(self.end_text) :]
        said = [result.text for result in results] + ([] if persona is None else [persona])
        return self._encode([head, *pieces[1:]], said)

    def prompt(
        self, persona: Sequence[str | None], policy: Sequence[str], results: Sequence[Sequence[Result]] = ()
    ) -> list[int]:
        """A whole conversation, rendered anew, up to the start of the policy's turn; `results` are those of the calls
        in each of its turns."""
        marked: dict[str, str] = {}

        def marks(kind: str, number: str, text: str) -> str:
            mark = f"\u2063{kind} {number}\u2063"
            marked[mark] = text
            return mark

        messages: list[dict[str, Any]] = []
        for number, heard in enumerate(persona):
            if heard is None and not self.takes_results:
                raise TemplateError(_NO_RESULTS)
            if heard is not None:
                messages.append({"role": "user", "content": marks("heard", str(number), heard)})
            if number >= len(policy):
                continue
            said = policy[number]
            if any(token in said for token in self._special):
                said = marks("said", str(number), said)
            messages.append({"role": "assistant", "content": said})
            answers = results[number] if number < len(results) else ()
            for place, result in enumerate(answers if self.takes_results else ()):
                shown = marks("result", f"{number} {place}", result.text)
                messages.append(_tool_message(place, result.name, shown))
        return self._fill(self._render(messages, generation=True), marked)

    @property
    def takes_results(self) -> bool:
        """True if the template has a place for the results of tool calls."""
        return self._pieces(("tool",), spoken=True) is not None

    def written(self, text: str, calls: Sequence[Mapping[str, Any]] = (), thought: str = "") -> str:
        """A turn as the policy writes it: what it thinks, says and calls, as its template writes the last turn."""
        said = self.with_calls(text, calls)
        if not thought and not self.opens_thought:
            return said
        begun = self._thought_of_template(thought)
        if begun is None:
            begun = thoughts.thinking(thought).removeprefix(self._opened)
        return begun + said

    def _thought_of_template(self, thought: str) -> str | None:
        """The text that the template writes between the start of a turn and what is said, if that is a thought."""
        asked = [{"role": "user", "content": "hello"}]
        turn = {"role": "assistant", "content": f"{thoughts.thinking(thought)}{POLICY_MARK}"}
        try:
            before, whole = self._apply(asked, generation=True), self._apply([*asked, turn], generation=False)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError):
            return None
        head, found, _ = whole.partition(POLICY_MARK)
        if not found or not head.startswith(before) or thought not in head or thoughts.CLOSE not in head:
            return None
        return head.removeprefix(before)

    def with_calls(self, text: str, calls: Sequence[Mapping[str, Any]]) -> str:
        """The text of a turn that says this and makes these calls (name, arguments), as its template writes calls.

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
            before = self._apply(asked, generation=True).removesuffix(self._opened)
            whole = self._apply(
                [*asked, {"role": "assistant", "content": text, "tool_calls": functions}], generation=False
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError):
            return ""
        body = whole.removeprefix(before)
        said = "" if body == whole else body.partition(self.end_text)[0]
        return said.rpartition(thoughts.CLOSE)[2].lstrip()

    def text(self, ids: Sequence[int]) -> str:
        """As it is written, control tokens included; for a trainer that takes texts."""
        return self._tokenizer.decode([*ids], skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def control_in(self, ids: Iterable[int]) -> str | None:
        """A control token that is among these and is not the end of a turn: one that no policy samples."""
        spelled = {number: text for text, number in self._special.items() if number != self.end_id}
        return next((spelled[number] for number in ids if number in spelled), None)

    def rewrites(self, said: str) -> bool:
        """True if the next prompt is not the ids so far with something after them, now that this was said."""
        return self.forks or (self._drops_thoughts and thoughts.CLOSE in said)

    def spoken(self, ids: list[int]) -> SpokenTokens:
        """The text of a turn, without the end token that closes it."""
        body = ids[:-1] if ids and ids[-1] == self.end_id else ids
        text = self._tokenizer.decode(body, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        lossy = "\ufffd" in text or "\0" in text or any(token in text for token in self._special)
        text = text.replace("\0", "\ufffd")  # no server takes a NUL, and nobody sees one
        thought = thoughts.first(text, opened=self.opens_thought)
        return SpokenTokens(text, lossy, thoughts.aloud(text, opened=self.opens_thought), thought)

    # --- what the template does ---------------------------------------------------------------------

    def _takes_system(self) -> bool:
        """True if there is a place for a system prompt; some templates refuse one, some leave it out."""
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

    def _pieces(self, names: tuple[str, ...], *, spoken: bool) -> list[str] | None:
        """The text around the results of calls of these tools, and around the persona's line after them if one
        is `spoken`; None if it does not write them."""
        if (names, spoken) not in self._answered:
            self._answered[names, spoken] = self._pieces_around(names, spoken=spoken)
        return self._answered[names, spoken]

    def _pieces_around(self, names: tuple[str, ...], *, spoken: bool) -> list[str] | None:
        marks = [f"\u2063result {place}\u2063" for place in range(len(names))]
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": POLICY_MARK},
            *(_tool_message(place, name, marks[place]) for place, name in enumerate(names)),
        ]
        if spoken:
            messages.append({"role": "user", "content": PERSONA_MARK})
            marks.append(PERSONA_MARK)
        try:
            _, rest = _split_once(self._render(messages, generation=True), POLICY_MARK)
            pieces = []
            for mark in marks:
                head, rest = _split_once(rest, mark)
                pieces.append(head)
        except (TemplateError, ValueError, KeyError):
            return None
        return [*pieces, rest] if self.end_text in pieces[0] else None

    def _appends(self, thought: str) -> bool:
        """True if each prompt begins with the one before it and what the policy said then."""
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

    def _render(self, messages: list[dict[str, Any]], *, generation: bool) -> str:
        try:
            return self._apply(self._with_system(messages), generation=generation)
        except (jinja2.TemplateError, TypeError) as error:
            raise TemplateError(f"the chat template fails: {error}") from None

    def _with_system(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def _tool_message(place: int, name: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call{place:05}", "name": name, "content": text}


def _split_once(text: str, mark: str) -> tuple[str, str]:
    head, found, tail = text.partition(mark)
    if not found or mark in tail:
        raise TemplateError("the chat template drops or repeats a message")
    return head, tail
