"""Turns rows of well-known dialogue data sets into conversations of an agent and a persona.

One small function per format. A row may hold several conversations (two answers to one prompt); each
has a `part`. Agent messages come out with role `assistant`, the persona's with `user`, whatever the
source called them. Nothing here scores, and nothing here knows a scenario.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from reward_server.transcripts.transcript import IGNORED_ROLES
from trainer_client.wire import ToolCall

Message = dict[str, Any]


class BadRow(Exception):  # noqa: N818  (the outcome of a row, not an accident)
    """A row that holds no conversation of the format; the message says why and quotes nothing."""


class NoAgent(BadRow):
    """Nobody in the row is known to be the agent, or a role is unknown; the message names the roles found."""


@dataclass(frozen=True)
class RowConversation:
    """One conversation of a row."""

    part: str
    messages: tuple[Message, ...]
    speakers: tuple[str, ...] = ()
    """The roles or names that the row has for those who speak, each once, in the order of their first words."""


@dataclass(frozen=True)
class Speakers:
    """The name of the agent, where a data set names its speakers; empty: the format's own default."""

    agent: tuple[str, ...] = ()

    def role(self, speaker: str, default: Sequence[str]) -> str:
        """`assistant` for the agent, `user` for anyone else; a number after the name does not matter."""
        name = re.sub(r"[\W_]*\d*$", "", speaker.strip().lower())
        names = [re.sub(r"[\W_]*\d*$", "", n.strip().lower()) for n in self.agent or default]
        exact = speaker.strip().lower() in [n.strip().lower() for n in self.agent or default]
        return "assistant" if exact or (name in names and not _numbered(self.agent or default)) else "user"


def _numbered(names: Iterable[str]) -> bool:
    return any(name.strip()[-1:].isdigit() for name in names)


ANYONE = Speakers()
Reader = Callable[[Mapping[str, Any], Speakers], Iterable[RowConversation]]


def convert(row: Any, name: str, speakers: Speakers = ANYONE) -> Iterator[RowConversation]:
    """The conversations of one row; `name` is a format, or `auto`."""
    if not isinstance(row, Mapping):
        raise BadRow("a row must be an object")
    chosen = detect(row) if name == "auto" else name
    if chosen is None:
        raise BadRow(f"no known format{_held(row)}: give --format")
    try:
        conversations = list(FORMATS[chosen].read(row, speakers))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise BadRow(f"not a row of format {chosen}: {_safe(error)}") from None
    for conversation in conversations:
        if not any(message["role"] == "assistant" for message in conversation.messages):
            raise NoAgent(f"no message by the agent, only by {_named(conversation.speakers) or 'nobody'}")
        yield conversation


def detect(row: Mapping[str, Any]) -> str | None:
    """The format of a row by the fields it has, and by what they hold."""
    return next((name for name, known in FORMATS.items() if known.fields <= set(row) and known.fits(row)), None)


def _safe(error: Exception) -> str:
    missing = isinstance(error, KeyError) and len(str(error)) < 40
    return f"there is no `{error.args[0]}`" if missing else "its structure is another one"


def _held(row: Mapping[str, Any]) -> str:
    """The field of a known name that holds something else."""
    known = {name for each in FORMATS.values() for name in each.fields}
    found = [name for name in row if name in known]
    return f": `{found[0]}` holds no conversation of a known form" if found else ""


def _named(speakers: Sequence[str]) -> str:
    """A few names in quotes: enough to see what the row calls its speakers, and no more of it."""
    return ", ".join(f"`{name[:_NAME]}`" for name in speakers[:_NAMES]) + (", …" if len(speakers) > _NAMES else "")


_NAME, _NAMES = 30, 5


# --- chat messages --------------------------------------------------------------------------------

_CHAT_ROLES = ("assistant", "user")
_SILENT_ROLES = IGNORED_ROLES | {"function"}
"""Of neither party; `function` is the old name of `tool` in OpenAI's messages."""


def _openai(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    own = row.get("agent_role")
    if own is not None and own not in _CHAT_ROLES:
        raise BadRow("`agent_role` must be assistant or user")
    yield _chat(row["messages"], Speakers((own,)) if own else speakers, keep_tools=True)


def _chat(messages: Any, speakers: Speakers, keep_tools: bool) -> RowConversation:
    if not isinstance(messages, list):
        raise BadRow("`messages` must be a list")
    found: list[Message] = []
    roles: dict[str, None] = {}
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise BadRow("a message needs a role")
        if message["role"] in _SILENT_ROLES:
            continue
        roles[message["role"]] = None
        role = speakers.role(message["role"], ("assistant",))
        calls = _calls(message) if keep_tools else []
        text = _text(message.get("content"))
        if text or calls or keep_tools:
            found.append({"role": role, "content": text} | ({"tool_calls": calls} if calls else {}))
    unknown = [role for role in roles if role not in _CHAT_ROLES]
    if unknown and not speakers.agent:
        raise NoAgent(f"neither assistant nor user: role {_named(unknown)}")
    return RowConversation("", tuple(found), tuple(roles))


def _text(content: Any) -> str:
    """Text of a message: a string, or the text parts of a list."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping) and p.get("type") == "text")
    raise BadRow("`content` must be text")


def _call(call: Any) -> dict[str, Any]:
    """A tool call in our shape, from ours or from the chat-completions shape."""
    if not isinstance(call, Mapping):
        raise BadRow("a tool call must be an object")
    if "function" not in call and "arguments" in call:  # tau2-bench, and the older form of OpenAI
        call = {"function": call}
    known = {key: call[key] for key in ("name", "type", "input", "function") if key in call}
    try:
        return ToolCall.model_validate(known).model_dump(exclude_none=True)
    except ValidationError:
        raise BadRow("a tool call needs a name and an input that is an object") from None


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message, in the newer and the older form of OpenAI."""
    older = message.get("function_call")
    return [_call(call) for call in message.get("tool_calls") or ([{"function": older}] if older else ())]


_CALLS = frozenset({"function_call", "tool_call"})
_RESULTS = frozenset({"observation", "tool", "function_response", "tool_response"})


def _sharegpt(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    messages: list[Message] = []
    names: dict[str, None] = {}
    for each in row["conversations"]:
        who, text = str(each["from"]), _text(each["value"]).strip()
        if who in _CALLS:
            call = text if text.startswith("<tool_call>") else f"<tool_call>{text}</tool_call>"
            messages.append({"role": "assistant", "content": call})
        elif text and who != "system" and who not in _RESULTS:
            names[who] = None
            messages.append({"role": speakers.role(who, ("gpt", "assistant", "model")), "content": text})
    yield RowConversation("", tuple(messages), tuple(names))


def _column(name: str) -> Reader:
    """Chat messages in a column of this name."""

    def read(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
        yield _chat(row[name], speakers, keep_tools=True)

    return read


def _lists(name: str, key: str) -> Callable[[Mapping[str, Any]], bool]:
    """The test that a column is a list of objects that have this key."""

    def fits(row: Mapping[str, Any]) -> bool:
        found = row[name]
        return isinstance(found, list) and all(isinstance(each, Mapping) and key in each for each in found)

    return fits


def _tau_bench(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    del speakers
    yield _chat(row["traj"], ANYONE, keep_tools=False)


# --- named speakers -------------------------------------------------------------------------------


def _spoken(part: str, pairs: Iterable[tuple[str, str]], speakers: Speakers, default: Sequence[str]) -> RowConversation:
    spoken = [(speaker, text.strip()) for speaker, text in pairs if text.strip()]
    messages = [{"role": speakers.role(speaker, default), "content": text} for speaker, text in spoken]
    return RowConversation(part, tuple(messages), tuple(dict.fromkeys(speaker for speaker, _ in spoken)))


_HH_TURN = re.compile(r"\n\n(Human|Assistant): ?")


def _hh(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    for part in ("chosen", "rejected"):
        if isinstance(row[part], list):
            talk = _chat(_whole(row.get("prompt"), row[part]), speakers, keep_tools=True)
            yield RowConversation(part, talk.messages, talk.speakers)
            continue
        pieces = _HH_TURN.split("\n\n" + str(row[part]).lstrip("\n"))
        if len(pieces) < 3:
            raise BadRow(f"`{part}` has no Human:/Assistant: turns")
        yield _spoken(part, zip(pieces[1::2], pieces[2::2], strict=True), speakers, ("assistant",))


def _whole(prompt: Any, answer: list[Any]) -> list[Any]:
    """A conversation that TRL keeps in two columns; some repeat the prompt in front of the answer."""
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt or ())
    return answer if before and answer[: len(before)] == before else [*before, *answer]


_LINE = re.compile(r"^\s*([A-Za-z][\w .'-]{0,30}?)\s*:\s*(.*)$")


def _lines(text: str) -> list[tuple[str, str]]:
    """`Speaker: text` lines; a line without a speaker goes on with the one before."""
    pairs: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            pairs.append((found[1], found[2]))
        elif pairs and line.strip():
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}\n{line.strip()}")
    if not pairs:
        raise BadRow("no `Speaker: text` lines")
    return pairs


_AGENTS = ("doctor", "guest_clinician", "tutor", "teacher", "agent", "assistant", "seller", "advisor")


def _mts_dialog(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    yield _spoken("", _lines(row["dialogue"]), speakers, _AGENTS)


def _mathdial(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    pairs = [p for piece in row["conversation"].split("|EOM|") if piece.strip() for p in _lines(piece)]
    plain = [(speaker, re.sub(r"^\((?:generic|focus|probing|telling)\)\s*", "", text)) for speaker, text in pairs]
    yield _spoken("", plain, speakers, ("teacher",))


def _casino(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    deals = ("Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away")
    pairs = [(str(log["id"]), str(log["text"])) for log in row["chat_logs"] if log["text"] not in deals]
    yield _spoken("", pairs, speakers, ("mturk_agent_1",))


def _abcd(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    pairs = [(str(speaker), str(text)) for speaker, text in row["original"] if speaker != "action"]
    yield _spoken("", pairs, speakers, ("agent",))


def _transcript(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    yield _spoken("", _lines(row["transcript"]), speakers, _AGENTS)


def _mrbench(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    pairs = _lines(row["conversation_history"].replace("\xa0", "\n"))
    for name, answer in sorted(row["anno_llm_responses"].items()):
        yield _spoken(name, [*pairs, ("Tutor", str(answer["response"]))], speakers, ("tutor",))


def _answers(row: Mapping[str, Any], speakers: Speakers) -> Iterator[RowConversation]:
    del speakers
    for part in ("output_1", "output_2"):
        prompt, answer = _text(row["input"]), _text(row[part])
        yield RowConversation(part, ({"role": "user", "content": prompt}, {"role": "assistant", "content": answer}))


@dataclass(frozen=True)
class RowFormat:
    """One known format: the fields that give it away, and its reader."""

    fields: frozenset[str]
    read: Reader
    fits: Callable[[Mapping[str, Any]], bool] = lambda _row: True
    """Whether the fields hold what they hold in this format."""


FORMATS: dict[str, RowFormat] = {
    "openai": RowFormat(frozenset({"messages"}), _openai),
    "sharegpt": RowFormat(frozenset({"conversations"}), _sharegpt, _lists("conversations", "from")),
    "conversations": RowFormat(frozenset({"conversations"}), _column("conversations"), _lists("conversations", "role")),
    "conversation": RowFormat(frozenset({"conversation"}), _column("conversation"), _lists("conversation", "role")),
    "tau_bench": RowFormat(frozenset({"traj"}), _tau_bench),
    "hh": RowFormat(frozenset({"chosen", "rejected"}), _hh),
    "casino": RowFormat(frozenset({"chat_logs"}), _casino),
    "abcd": RowFormat(frozenset({"original"}), _abcd),
    "mrbench": RowFormat(frozenset({"conversation_history", "anno_llm_responses"}), _mrbench),
    "mathdial": RowFormat(frozenset({"conversation"}), _mathdial, lambda row: isinstance(row["conversation"], str)),
    "mts_dialog": RowFormat(frozenset({"dialogue"}), _mts_dialog),
    "transcript": RowFormat(frozenset({"transcript"}), _transcript),
    "answers": RowFormat(frozenset({"input", "output_1", "output_2"}), _answers),
}
"""In the order in which `auto` tries them."""
