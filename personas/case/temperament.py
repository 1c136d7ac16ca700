"""The schema of a temperament: how a persona behaves, independent of what it knows.

A temperament can make a case harder to open than its gates say (`reserve`), never easier. That is
what lets scoring judge any transcript with the gates alone: what a persona said in an episode was
always earned under them.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from personas.case.schema import Line, Slug


class Phrases(BaseModel):
    """Wordings of the conversational moves; one is chosen by a hash of seed and turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lead_in: tuple[Line, ...] = ()
    """Optional small words before a disclosed fact ("Well,"); empty means none."""
    again: tuple[Line, ...] = Field(min_length=2)
    """Before a fact that was told and is asked for in the same words ("Like I said,")."""
    again_tired: tuple[Line, ...] = Field(min_length=2)
    """Instead of the fact, from the third time on."""
    no_more: tuple[Line, ...] = Field(min_length=2)
    """To a question near a fact that was told, and instead of a fact that was told in all its wordings."""
    comes_back: tuple[Line, ...] = Field(min_length=2)
    """Before a fact that it was asked for earlier, and held back until now ("What you asked before:")."""
    withheld: tuple[Line, ...] = Field(min_length=3)
    """A gate is closed and the fact has no `partial`."""
    too_many: tuple[Line, ...] = Field(min_length=2)
    """The agent asked many things at once."""
    hurt: tuple[Line, ...] = Field(min_length=2)
    """The agent was rude."""
    warmed: tuple[Line, ...] = Field(min_length=2)
    """The agent showed empathy and nothing else calls for an answer."""
    following: tuple[Line, ...] = Field(min_length=2)
    """The agent explains or states something."""
    asks_back: tuple[Line, ...] = Field(min_length=2)
    """It is not clear what the agent asks about; said once in a talk."""
    all_told: tuple[Line, ...] = Field(min_length=2)
    """The agent invites the persona to tell, and nothing is left to tell."""
    agrees: tuple[Line, ...] = Field(min_length=2)
    """The agent proposes or promises something the case has no answer to."""
    hesitates: tuple[Line, ...] = Field(min_length=2)
    """The agent names a figure that the case has no answer to."""
    takes: tuple[Line, ...] = Field(min_length=2)
    """The agent names a figure that is enough; `{amount}` stands for it, here and in what follows."""
    counters: tuple[Line, ...] = Field(min_length=2)
    """It is not enough: the persona's own figure."""
    settled: tuple[Line, ...] = Field(min_length=2)
    """The figure was agreed before, and the agent asks or says it again."""
    corrects: tuple[Line, ...] = Field(min_length=2)
    """Another figure was agreed than the one that the agent names now."""
    either: tuple[Line, ...] = Field(min_length=2)
    """The agent leaves a choice to the persona that the case says nothing about."""
    consents: tuple[Line, ...] = Field(min_length=2)
    """The agent asks for leave, or checks whether it is all right."""
    confirms: tuple[Line, ...] = Field(min_length=2)
    """The agent repeats what the persona said."""
    no_rush: tuple[Line, ...] = Field(min_length=2)
    """The agent talks about the talk itself: a moment's wait, notes, who it is."""
    greets: tuple[Line, ...] = Field(min_length=2)
    """The agent says hello."""
    chats: tuple[Line, ...] = Field(min_length=2)
    """The agent makes small talk: a friendly word, and back to the matter."""
    welcomes: tuple[Line, ...] = Field(min_length=2)
    """The agent thanks or praises."""
    not_understood: tuple[Line, ...] = Field(min_length=2)
    """Empty, garbled, foreign-language or machine-like input."""
    wait: tuple[Line, ...] = Field(min_length=2)
    """The agent says goodbye before the persona got what it came for."""
    leaving: tuple[Line, ...] = Field(min_length=2)
    """Patience is used up; the persona ends the talk."""
    parting: tuple[Line, ...] = ()
    """The agent insists on ending with nothing settled; default: `leaving`."""
    goodbye: tuple[Line, ...] = Field(min_length=2)
    """A friendly end."""

    def of(self, name: str) -> tuple[Line, ...]:
        """The wordings of a move by its name."""
        lines: tuple[Line, ...] = getattr(self, name)
        return lines


class Temperament(BaseModel):
    """One way of behaving. Public: the slug is what `config.persona_slug` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slug: Slug
    name: Line
    description: Line
    reserve: float = Field(default=0.0, ge=0.0, le=2.0)
    """Extra rapport needed for every `rapport` fact."""
    patience: int = Field(ge=3, le=20)
    """How much annoyance it takes before the persona leaves."""
    facts_per_turn: int = Field(default=2, ge=1, le=2)
    phrases: Phrases
