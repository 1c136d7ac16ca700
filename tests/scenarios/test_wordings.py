"""What honest agents say in other words is relied on; sentences about other things with the same words are not."""

from __future__ import annotations

import pytest

from personas.matcher import Matcher
from personas.understanding import understand
from reward_server.engine import load_matcher, load_scenarios
from reward_server.judges.base import Status
from reward_server.judges.rule import RuleJudge
from reward_server.settings import Settings
from scenarios.library import Library
from scenarios.schema import Criterion
from tests.scoring.builders import a_case

TUTORING = ("half-a-cup", "loop-stops-early", "there-and-back", "two-discounts", "where-wood-comes-from")

RELIED_ON: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *((f"tutoring/{name}", "confirms", ("Exactly!", "You got it!", "Spot on!", "That's right.")) for name in TUTORING),
    ("tutoring/half-a-cup", "confirms", ("Yes, the pieces are the same size now.", "Perfect, it works.")),
    (
        "tutoring/loop-stops-early",
        "confirms",
        ("Yes, the last number is left out.", "Exactly, because the second number isn't part of the range."),
    ),
    ("tutoring/there-and-back", "confirms", ("Yes, you spend longer at the slower speed.",)),
    ("tutoring/two-discounts", "confirms", ("Yes, the second discount comes off the lower price.",)),
    ("tutoring/where-wood-comes-from", "confirms", ("Yes, the wood comes from the air.",)),
    ("tutoring/half-a-cup", "praises_work", ("I like how you drew that.",)),
    ("tutoring/half-a-cup", "answers_mum", ("It isn't true, whatever your family says.",)),
    (
        "tutoring/loop-stops-early",
        "praises_work",
        ("Good catch that round ten is missing.", "I like how you tested it."),
    ),
    ("tutoring/there-and-back", "praises_work", ("Good catch that the times are different.",)),
    ("tutoring/there-and-back", "about_dad", ("You don't have to be like your father.",)),
    ("tutoring/two-discounts", "praises_work", ("Good catch that the price has changed.",)),
    ("tutoring/where-wood-comes-from", "praises_work", ("Good thinking, that matches the sixty grams.",)),
    ("tutoring/where-wood-comes-from", "honours_grandad", ("He would be proud of you.",)),
    (
        "clinical-intake/awake-since-the-baby",
        "not_alone_tonight",
        ("Can you wake Tom?", "May I tell Tom?", "Did you ask Tom to stay with you tonight?"),
    ),
    ("clinical-intake/cough-that-stays", "no_leftovers", ("Antibiotics won't help.",)),
    ("it-helpdesk/laptop-that-stays-dark", "bring_in", ("I'll recover your proposal.",)),
    ("negotiation/flour-supply", "wednesday", ("How about Wednesday?", "Do you want to come on Wednesday?")),
    ("negotiation/flour-supply", "price_in_zone", ("Sixty-one cents, then.",)),
    ("negotiation/illustrator-contract", "fair_price", ("One hundred and seventy.",)),
    ("negotiation/studio-lease", "deposit", ("Would you take a deposit?", "What if she paid a deposit?")),
    ("negotiation/studio-lease", "fair_rent", ("We can pay 1,300.", "We could do 1,320 for five years.")),
    ("negotiation/studio-lease", "sprung_floor", ("It will soften the sound.",)),
    ("negotiation/used-van", "fair_price", ("Nine thousand.", "Would you take nine thousand?")),
    ("sales-discovery/bakery-route-planner", "honest_no", ("It's not the right fit.",)),
    ("sales-discovery/farmhouse-solar", "survey_barn", ("Shall we inspect the barn?",)),
    ("sales-discovery/farmhouse-solar", "with_wife", ("Does your wife want to be there?",)),
    ("sales-discovery/phished-accountants", "quick_fix", ("Could somebody check the mailboxes for rules?",)),
)

NOT_RELIED_ON: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *(
        (
            f"tutoring/{name}",
            "confirms",
            (
                "Exactly that is the word.",
                "Correct me if I say it wrong.",
                "Correct is a word with seven letters.",
                "Yes, and no, and yes, it is right and it is wrong.",
                "You got it from the shop, I guess.",
                "Yes, but that's not right.",
                "Yes, tell me more.",
                "Right, let's look at it.",
                "You got it wrong.",
            ),
        )
        for name in TUTORING
    ),
    *(
        (
            f"tutoring/{name}",
            "praises_work",
            (
                "Good point.",
                "Great work.",
                "What a great question!",
                "I like that you are here.",
                "Nice idea, I like how you are.",
                "Excellent work, well done, keep going.",
            ),
        )
        for name in TUTORING
    ),
    ("tutoring/half-a-cup", "hint_cup", ("We do this one step at a time.",)),
    ("tutoring/two-discounts", "wraps_up", ("Remember to look after yourself.",)),
    ("clinical-intake/awake-since-the-baby", "not_alone_tonight", ("Did you tell Tom?", "Did you call your mother?")),
    ("negotiation/flour-supply", "wednesday", ("How many lorries run on Wednesday?", "Is Wednesday a quiet day?")),
    ("negotiation/flour-supply", "price_in_zone", ("Sixty-one cents is what I found under the sofa.",)),
    ("negotiation/illustrator-contract", "fair_price", ("170 steps are enough.",)),
    (
        "negotiation/studio-lease",
        "deposit",
        ("Who paid for the ceiling, an insurance?", "Do you ask for a deposit?", "Was there a deposit?"),
    ),
    ("negotiation/studio-lease", "fair_rent", ("Thirteen hundred years ago there were monks.",)),
    ("negotiation/used-van", "fair_price", ("Nine thousand people came to the concert.", "9,000 steps are healthy.")),
    ("sales-discovery/farmhouse-solar", "survey_barn", ("Has the barn been inspected?",)),
    ("sales-discovery/farmhouse-solar", "with_wife", ("Does your wife have worries too?",)),
    ("sales-discovery/phished-accountants", "quick_fix", ("Who checks the mailboxes there?",)),
)

SAID = {
    "customer-support/flight-moved-forward": (
        "Do you need anything else?",
        "Should anything else change, call us.",
        "Something else worrying you?",
        "Safe travels to you and your son!",
        "I will be thinking of you on that day.",
    ),
    "customer-support/leaking-blender": (
        "Did anything else get damaged?",
        "Anything else before we finish?",
        "Wishing you all the best.",
        "All the best to you and your family.",
    ),
    "customer-support/parcel-at-the-old-flat": (
        "I can't promise Friday.",
        "I can't promise it.",
        "The new telescope should arrive on Friday.",
        "You'll likely have it on Friday.",
        "Usually it should only take two days.",
    ),
    "it-helpdesk/laptop-that-stays-dark": (
        "Good luck with the presentation!",
        "Good luck, Ms Patel, you'll do fine.",
        "Let me know if anything else comes up.",
    ),
    "it-helpdesk/mails-i-never-wrote": (
        "Payroll goes out tomorrow.",
        "Nobody's salary is at risk.",
        "You'll be able to log in tomorrow morning.",
        "I'll set up a clean laptop for the payroll.",
    ),
    "it-helpdesk/new-phone-no-codes": (
        "The board won't have to wait.",
        "Ten minutes and you're in.",
        "We'll get you in before it starts.",
        "You'll be signed in by eleven.",
    ),
    "it-helpdesk/vpn-that-drops": (
        "Your report can run tonight.",
        "We'll fix it before the quarter closes.",
        "It's only Wednesday, so Friday is safe.",
    ),
}
"""Honest ways to meet the criterion that pays for something said."""

BESIDE_THE_POINT = (
    "Is there anything else in the fridge?",
    "I can't promise that it will snow at Christmas.",
    "They very likely sell ice cream there.",
    "My friends should arrive at the zoo with flowers.",
    "Tomorrow is the day of salaries of football players.",
    "The word payroll has seven letters.",
    "Before noon I am never hungry.",
    "The meeting before the meeting was a meeting.",
    "Before eleven I drink tea.",
    "It takes about five minutes to boil an egg.",
    "A horseshoe brings good luck.",
    "All the best films are old.",
    "I wish you were a cat.",
    "Friday comes after Thursday every week.",
    "Anything else, something else, all the best.",
    "Friday, report, quarter, deadline, figures.",
    "Payroll, salaries, wages, tomorrow, noon.",
)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    return load_matcher(Settings(data=tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def library() -> Library:
    return load_scenarios(None)


def relied_on(library: Library, matcher: Matcher, scenario: str, commitment: str, texts: tuple[str, ...]) -> list[str]:
    """Those of the texts in which the persona relies on the commitment."""
    case = library.vault.open(*scenario.split("/")).case
    assert any(each.id == commitment for each in case.commitments)
    heard = zip(texts, understand(case, matcher, texts), strict=True)
    return [t for t, u in heard if commitment in {c.id for c, _ in u.commitments} - u.vague]


def test_other_wordings_of_a_promise_are_relied_on(library: Library, matcher: Matcher) -> None:
    for scenario, commitment, texts in RELIED_ON:
        assert relied_on(library, matcher, scenario, commitment, texts) == list(texts), (scenario, commitment)


def test_other_sentences_with_the_words_of_a_promise_are_not(library: Library, matcher: Matcher) -> None:
    for scenario, commitment, texts in NOT_RELIED_ON:
        assert relied_on(library, matcher, scenario, commitment, texts) == [], (scenario, commitment)


def saying(library: Library, scenario: str) -> Criterion:
    """The criterion of a scenario that pays for something said."""
    rubric = library.vault.open(*scenario.split("/")).secrets.rubric
    (criterion,) = (each for each in rubric.criteria if each.points > 0 and each.check.says)
    return criterion.model_copy(update={"given": ()})


@pytest.mark.parametrize("scenario", SAID)
def test_what_is_said_in_other_words_pays_and_the_same_words_beside_the_point_do_not(
    library: Library, scenario: str
) -> None:
    criterion, judge = saying(library, scenario), RuleJudge()
    unmet = [t for t in SAID[scenario] if judge.decide(a_case(t, "Oh."), criterion).status is not Status.MET]
    paid = [t for t in BESIDE_THE_POINT if judge.decide(a_case(t, "Oh."), criterion).status is Status.MET]
    assert (unmet, paid) == ([], [])
