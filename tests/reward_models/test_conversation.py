"""Which conversations are known as equal: those that are, and no others."""

from __future__ import annotations

import pytest

from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled
from reward_server.reward_models.known_rows import pack_rows

HELLO, HI = ConversationMessage("agent", "Hello."), ConversationMessage("persona", "Hi.")


def rows_of(conversation: Conversation) -> dict[str, bytes]:
    return pack_rows([Dataset((Labelled(conversation, {OVERALL: 1.0}, "a"),))])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Conversation((ConversationMessage("agent", "Hello.\0persona\1Hi."),)), Conversation((HELLO, HI))),
        (Conversation((ConversationMessage("agent", 'Hello."], ["persona", "Hi.'),)), Conversation((HELLO, HI))),
        (Conversation((HELLO,)), Conversation((ConversationMessage("persona", "Hello."),))),
        (Conversation((HELLO, HI)), Conversation((HI, HELLO))),
        (Conversation((ConversationMessage("agent", "\ud800"),)), Conversation((ConversationMessage("agent", "?"),))),
    ],
    ids=["marks", "quotes", "parties", "order", "surrogates"],
)
def test_what_was_said_in_two_ways_has_two_digests(one: Conversation, other: Conversation) -> None:
    assert one.digest != other.digest
    assert rows_of(one) != rows_of(other)


def test_a_scenario_is_told_from_what_is_said_in_it() -> None:
    assert Conversation((HELLO,), "A visit.\0persona\1Hi.").digest != Conversation((HI, HELLO), "A visit.").digest
    assert Conversation((HELLO,), "A visit.").digest != Conversation((HELLO,)).digest


def test_equal_conversations_have_one_digest_in_every_process() -> None:
    assert Conversation((HELLO, HI), "A visit.").digest == Conversation((HELLO, HI), "A visit.").digest
    assert Conversation((HELLO,)).digest == "3e7fbed2efb2519c66c1f161133e829597b3976c30f1567f0d79f3cc526fff1e"


def test_a_row_is_known_without_its_scenario_in_other_case_and_with_other_gaps() -> None:
    again = Conversation((ConversationMessage("agent", " hELLO.\n"), ConversationMessage("persona", "HI.")))
    assert rows_of(again) == rows_of(Conversation((HELLO, HI), "A visit."))
    assert again.digest != Conversation((HELLO, HI)).digest
