"""Rows of public human-judged data sets whose form is their own, as labelled conversations and pairs.

answers     {"input", "output_1", "output_2", "label": 1 | 2}           LLMBar; the label names the better output
annotated   {"conversation_history", "anno_llm_responses": {who: {"response", "annotation": {dimension: word}}}}
            MRBench; each reply is one labelled conversation, with a score for each dimension that has a known word
transcripts {"chosen", "rejected": "\\n\\nHuman: …\\n\\nAssistant: …"}  hh-rlhf; a reply may be empty
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reward_server.offline.formats import BadRow, convert

WORDS: Mapping[str, float] = {
    "yes": 1.0,
    "to some extent": 0.5,
    "no": 0.0,
    "encouraging": 1.0,
    "neutral": 0.5,
    "offensive": 0.0,
    "yes (and the answer is correct)": 1.0,
    "yes (and the revealed answer is correct)": 1.0,
    "yes (but the answer is incorrect)": 1.0,
    "yes (but the revealed answer is incorrect)": 1.0,
}
"""The annotators' words as labels: how far the dimension is there. `Revealing_of_the_Answer` is so when it is bad."""

Messages = list[dict[str, Any]]
ANSWERS = frozenset({"input", "output_1", "output_2", "label"})
ANNOTATED = frozenset({"conversation_history", "anno_llm_responses"})


def better_and_worse(row: Mapping[str, Any]) -> tuple[Messages, Messages]:
    """The two conversations of an `answers` row, the preferred one first."""
    if row["label"] not in (1, 2) or isinstance(row["label"], bool):
        raise BadRow("`label` must be 1 or 2, the number of the better output")
    first, second = (list(conversation.messages) for conversation in convert(row, "answers"))
    return (first, second) if row["label"] == 1 else (second, first)


def annotated_replies(row: Mapping[str, Any]) -> Iterator[tuple[str, Messages, dict[str, float]]]:
    """Each reply of an `annotated` row: who wrote it, the messages, its labels."""
    for conversation in convert(row, "mrbench"):
        annotation = row["anno_llm_responses"][conversation.part].get("annotation")
        if not isinstance(annotation, Mapping):
            raise BadRow("a reply has no `annotation`")
        scores = {
            str(dimension): WORDS[word.strip().lower()]
            for dimension, word in annotation.items()
            if isinstance(word, str) and word.strip().lower() in WORDS
        }
        if scores:
            yield conversation.part, list(conversation.messages), scores


def chosen_and_rejected(row: Mapping[str, Any]) -> tuple[Messages, Messages]:
    """The two conversations of a `transcripts` row; an empty reply at the end is a silent turn."""
    sides = []
    for side in ("chosen", "rejected"):
        text = str(row[side])
        spoken = text.rstrip()
        silent = spoken.endswith("\n\nAssistant:")
        whole = f"{spoken} (silence)" if silent else text
        [chosen] = [
            conversation
            for conversation in convert({"chosen": whole, "rejected": whole}, "hh")
            if conversation.part == side
        ]
        messages = list(chosen.messages)
        if silent:
            messages[-1] = {**messages[-1], "content": ""}
        sides.append(messages)
    return sides[0], sides[1]
