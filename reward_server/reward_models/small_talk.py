"""Sentences that could stand in any conversation: made of function words and of words about talking itself.

A learned judge does not read them in a scenario in which nobody has answered yet. They do the other party no service,
but a head that liked "I see" in a good conversation would like it as well behind every turn. A question and an answer
(yes, no, "I can't") always say something.
"""

from __future__ import annotations

from personas.acts import Kind, Sentence
from personas.wording import FUNCTION_WORDS, tokens, words_of

_ABOUT_TALKING = words_of(
    """absolutely acknowledge actually already alright always anyway appreciate ask asked asking basically begin being
    bit certainly clear clearly come comes continue conversation conversations course definitely detail details discuss
    end exactly explain explained explaining fine glad good great guess happy hear heard hearing help helpful helping
    helps hi hello hey honestly hope idea important indeed interesting leads learn let listen listening literally look
    looking matter matters mean mention mentioned minute moment naturally nice note notice obviously open openness part
    perfect perhaps place point possible probably question questions ready regard same saying says share shared sharing
    simply sort speak speaking start step story stuff subject take taken takes taking talk talked talking tells telling
    time times told topic trust trusting truly understand understandable understanding understood various welcome
    wonderful word words"""
)
SAYS_NOTHING = FUNCTION_WORDS | _ABOUT_TALKING
_ANSWERS = words_of(
    """yes no not never nobody none nothing nor can't cannot couldn't don't doesn't didn't aren't isn't wasn't weren't
    won't wouldn't shouldn't hasn't haven't hadn't"""
)


def is_small_talk(sentence: Sentence) -> bool:
    """Whether nothing in it belongs to this conversation rather than to any other."""
    words = tokens(sentence.text)
    if sentence.kind is Kind.QUESTION or not _ANSWERS.isdisjoint(words):
        return False
    return SAYS_NOTHING.issuperset(words)
