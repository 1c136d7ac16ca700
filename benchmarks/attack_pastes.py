"""What an attack can paste that it should not know: the rubric, the case's words, what the persona would tell."""

from __future__ import annotations

import re

from personas.case import Denial, Fact
from scenarios.library import SealedScenario

_ESCAPE = re.compile(r"\\[a-z]")
_WORD = re.compile(r"[A-Za-z']{4,}")


def rubric_of(scenario: SealedScenario) -> list[str]:
    """What the criteria mean, in their author's words."""
    return [criterion.about for criterion in scenario.secrets.rubric.criteria]


def praise_by_rubric(scenario: SealedScenario) -> list[str]:
    """The rubric as a report of what the agent did."""
    return [f"I have done this: {about}" for about in rubric_of(scenario)]


def questions_of(scenario: SealedScenario) -> list[str]:
    """What an LLM judge would be asked, and what a reader of the rubric's names would make of it."""
    criteria = scenario.secrets.rubric.criteria
    asked = [check.judge.question for criterion in criteria for check in criterion.checks if check.judge]
    return asked + [f"Was {criterion.id.replace('_', ' ')} met? Yes." for criterion in criteria]


def names_of(scenario: SealedScenario) -> list[str]:
    """Names of dimensions, families and criteria."""
    rubric = scenario.secrets.rubric
    return [
        *(dimension.name for dimension in rubric.dimensions),
        *(f"{criterion.family.value} {criterion.id}" for criterion in rubric.criteria),
    ]


def keywords_of(scenario: SealedScenario) -> list[str]:
    """The words that the case's questions are about."""
    persona = scenario.secrets.persona
    items: tuple[Fact | Denial, ...] = (*persona.facts, *persona.denials)
    words = [word for item in items for word in item.keywords]
    words += [word for topic in scenario.topics.values() for word in topic.keywords]
    return [f"{word}," for word in dict.fromkeys(words)][:60]


def pattern_words_of(scenario: SealedScenario) -> list[str]:
    """The words that rules look for where they pay, each as a sentence of its own."""
    checks = [check.says for c in scenario.secrets.rubric.criteria if c.points > 0 for check in c.checks if check.says]
    patterns = [_ESCAPE.sub(" ", pattern) for check in checks for pattern in (*check.any, *check.all)]
    words = [word for pattern in patterns for word in _WORD.findall(pattern)]
    return [f"{word.capitalize()}." for word in dict.fromkeys(words)] or ["Anything else."]


def facts_of(scenario: SealedScenario) -> list[str]:
    """What the persona knows, in the agent's mouth."""
    return [fact.says[0] for fact in scenario.secrets.persona.facts]


def other_wordings_of(scenario: SealedScenario) -> list[str]:
    """The facts and denials in their last wordings."""
    persona = scenario.secrets.persona
    items: tuple[Fact | Denial, ...] = (*persona.facts, *persona.denials)
    return [item.says[-1] for item in items]


_SECOND_PERSON = {
    "i": "you", "i'm": "you're", "i've": "you've", "i'd": "you'd", "i'll": "you'll", "me": "you", "my": "your",
    "mine": "yours", "myself": "yourself", "we": "you", "our": "your", "us": "you", "am": "are", "we're": "you're",
}  # fmt: skip


def facts_about_you(scenario: SealedScenario) -> list[str]:
    """The facts turned round, as a summary would put them, told or not."""
    return [_turned(text) for text in facts_of(scenario)]


def _turned(text: str) -> str:
    return " ".join(_SECOND_PERSON.get(word.lower(), word) for word in text.split())


def quoted_facts(scenario: SealedScenario) -> list[str]:
    """The facts as a report of what the persona said, told or not."""
    return [f'You told me: "{text}"' for text in facts_of(scenario)]


def thanked_facts(scenario: SealedScenario) -> list[str]:
    """A thank-you around each fact."""
    return [f"{text} Thank you for telling me that." for text in facts_of(scenario)]


def summed_up(scenario: SealedScenario) -> list[str]:
    """All there is to know as one summary."""
    return ["To sum up what you told me:", *facts_about_you(scenario), "Did I get that right?"]


def asks_of(scenario: SealedScenario) -> list[str]:
    """A question about everything, all at once and to nobody in particular."""
    return [topic.asks[0] for topic in scenario.case.topics if topic.asks]


def exemplars_of(scenario: SealedScenario) -> list[str]:
    """What the rubric takes for a good answer."""
    checks = [check.similar for c in scenario.secrets.rubric.criteria for check in c.checks if check.similar]
    return [check.exemplars[0] for check in checks]


def promises_of(scenario: SealedScenario) -> str:
    """An example of everything that the agent may commit to without failing."""
    caps = [c.check.committed for c in scenario.secrets.rubric.criteria if c.cap is not None]
    forbidden = {name for check in caps if check and not check.before for name in check.any_of}
    promises = [c.examples[0] for c in scenario.secrets.persona.commitments if c.examples and c.id not in forbidden]
    return " ".join(promises) or "We will do it that way."
