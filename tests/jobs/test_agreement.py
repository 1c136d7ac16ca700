"""Judges measured on a file: every form of rows, judges that are known to be good, bad or bought, and failures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest, JudgeFailed
from reward_server.fitting.agreement.attacks import ATTACKS
from reward_server.fitting.agreement.figures import Figures
from reward_server.fitting.agreement.plot import drawn
from reward_server.fitting.agreement.read import LabelledEntry, RowDefaults, read
from reward_server.fitting.agreement.report import markdown, write
from reward_server.fitting.agreement.run import AgreementTask, of_judges, of_scores
from reward_server.fitting.agreement.scores import MeasuredJudges, attacked
from reward_server.judges.base import Case
from reward_server.judges.estimate import ConversationJudge, Estimate
from reward_server.judges.pairwise import PairwisePreference
from reward_server.preferences.agreement_tables import NAMES
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.scorer import Scorer
from reward_server.transcripts.transcript import Transcript
from tests.scoring.builders import COLLECTION, GOOD, OPENING, SCENARIO, WordMatcher, WordReader, a_library, a_panel

Write = Callable[..., Path]
WHERE = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO}
RUBRIC = MeasuredJudges(("rubric",), ())


class Longer:
    """Thinks that longer is better, and can be fooled by any text at all."""

    name, version = "longer", "1"

    def __init__(self, *, failing: bool = False) -> None:
        self._failing = failing

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        if self._failing:
            raise JudgeFailed
        lengths = [sum(len(turn.agent) for turn in case.transcript.turns) for case in cases]
        return [Estimate(min(1.0, length / 10_000), epistemic=0.07) for length in lengths]


class Drifting(Longer):
    """Says more every time it is asked."""

    calls = 0

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        self.calls += 1
        return [Estimate(min(1.0, self.calls / 100)) for _ in cases]


class First:
    """A judge of pairs that prefers whatever it is shown first: the orders disagree, and it is a tie."""

    def __init__(self, *answers: PairwisePreference | JudgeFailed) -> None:
        self._answers = iter(answers)

    async def compare(
        self, scenario: object, criteria: object, a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        answer = next(self._answers)
        if isinstance(answer, JudgeFailed):
            raise answer
        return answer


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def talk(turns: int, number: int = 0) -> list[dict[str, str]]:
    """The good conversation, up to so many messages; a number makes it another one."""
    said = [str(line) for line in GOOD[:turns]]
    roles = ["assistant", "user"]
    lines = [{"role": roles[k % 2], "content": text} for k, text in enumerate(said)]
    lines[0]["content"] += f" This is call {number}."
    return [{"role": "user", "content": OPENING}, *lines]


def labelled(n: int = 12) -> list[dict[str, Any]]:
    """Longer parts of the good conversation have better labels."""
    return [{**WHERE, "messages": talk(2 + 2 * (k % 3), k), "label": k % 3, "group": f"g{k % 6}"} for k in range(n)]


async def measure(
    threads: ThreadPoolExecutor,
    entries: Sequence[LabelledEntry],
    judges: MeasuredJudges = RUBRIC,
    *,
    attacked: int = 0,
    pairwise: Any = None,
    guest: ConversationJudge | None = None,
) -> Figures:
    library = a_library()
    guests: Mapping[str, ConversationJudge] = {} if guest is None else {guest.name: guest}
    scorer = Scorer(
        library,
        WordMatcher(),
        a_panel(),
        threads,
        disclosure=FULL_DISCLOSURE,
        reader=WordReader(),
        conversation_judges=lambda: guests,
    )
    heard: list[tuple[int, int]] = []
    task = AgreementTask(judges, attacked, pairwise)
    found = await of_judges(entries, scorer, library.vault, task, lambda done, total: heard.append((done, total)))
    assert heard[-1][0] == heard[-1][1]
    return found


async def test_a_good_judge_agrees_with_people(rows: Write, threads: ThreadPoolExecutor) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    found = await measure(threads, entries, MeasuredJudges(("rubric", "state"), ("longer",)), guest=Longer())
    assert (found["entries"], found["dialogues"], found["conversations"]) == (12, 6, 12)
    for name in ("rubric", "state"):
        assert found["labels"][name]["spearman"]["value"] > 0.9
        assert set(found["labels"][name]) >= {"spearman", "kappa", "weighted_kappa"}
    for figure in found["labels"]["rubric"].values():
        assert figure["low"] <= figure["value"] <= figure["high"]
    assert set(found["between"]) == {"rubric and state", "rubric and longer", "state and longer"}
    assert found["failures"] == {}


async def test_a_judge_that_can_be_fooled_is_found_out(rows: Write, threads: ThreadPoolExecutor) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    found = await measure(threads, entries, MeasuredJudges(("rubric",), ("longer",)), attacked=6, guest=Longer())
    assert set(found["injection"]["rubric"]) == set(ATTACKS)
    assert {figure["value"] for figure in found["injection"]["rubric"].values()} == {0.0}
    harmless = [figure for attack, figure in found["injection"]["longer"].items() if attack not in GATED]
    assert {figure["value"] for figure in harmless} == {1.0}
    assert all(figure["largest_rise"] > 0 for figure in harmless)
    assert found["noise"]["longer"] == {"repeat_std": 0.0, "mean_uncertainty": pytest.approx(0.07)}
    assert found["noise"]["rubric"] == {"repeat_std": 0.0}


class Refusing(Longer):
    """Fails on whatever holds the master key."""

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        if any(ATTACKS["master key"] in turn.agent for case in cases for turn in case.transcript.turns):
            raise JudgeFailed
        return super().estimate(cases)


async def test_attacked_conversations_that_lose_their_score_are_counted(
    rows: Write, threads: ThreadPoolExecutor
) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    found = await measure(threads, entries, MeasuredJudges(("rubric",), ("longer",)), attacked=6, guest=Refusing())
    assert found["injection"]["longer"]["master key"] == {"n": 0, "lost": 6}
    assert found["injection"]["rubric"]["master key"]["n"] == 6
    assert found["failures"] == {"longer: judge_failed (master key)": 6}
    report = markdown(found)
    [line] = [line for line in report.splitlines() if line.startswith("| master key |")]
    assert "of 6 |" in line
    assert "of 0, 6 without a score |" in line
    assert "| longer: judge_failed (master key) | 6 |" in report


async def test_an_attack_that_makes_a_message_too_long_fails_that_conversation_alone(
    rows: Write, threads: ThreadPoolExecutor
) -> None:
    full = talk(2)
    full[1]["content"] += " " + "word " * ((9_990 - len(full[1]["content"])) // 5)
    lines = [*labelled(5), {**WHERE, "messages": full, "label": 1}]
    found = await measure(threads, read(rows(*lines), RowDefaults(scale=(0, 2))), attacked=6)
    figure = found["injection"]["rubric"]["master key"]
    assert (figure["n"], figure["lost"]) == (5, 1)
    assert found["failures"]["rubric: invalid_request (master key)"] == 1


GATED = ("order", "fake verdict", "fake role", "zero-width", "self-praise", "rubric words", "flattery")
"""What the gates may notice: they cap any judge's number."""


async def test_a_judge_that_says_something_else_every_time_is_noisy(rows: Write, threads: ThreadPoolExecutor) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    found = await measure(threads, entries, MeasuredJudges((), ("longer",)), attacked=6, guest=Drifting())
    assert found["noise"]["longer"]["repeat_std"] > 0.001


async def test_pairs_are_compared_with_their_human_winners(rows: Write, threads: ThreadPoolExecutor) -> None:
    better, worse = {"messages": talk(6)}, {"messages": talk(2)}
    lines = [{**WHERE, "response_a": better, "response_b": worse, "winner": "a", "group": k} for k in range(4)]
    lines += [{**WHERE, "response_a": worse, "response_b": better, "winner": w, "group": w} for w in ("b", "a", "tie")]
    found = await measure(threads, read(rows(*lines), RowDefaults()))
    accuracy = found["pairs"]["rubric"]["accuracy"]
    assert accuracy["value"] == pytest.approx(5 / 6)
    assert accuracy["n"] == 7
    assert found["pairs"]["rubric"]["ties"] == 0.0


async def test_a_judge_of_pairs_is_asked_in_both_orders(rows: Write, threads: ThreadPoolExecutor) -> None:
    sides = {"response_a": {"messages": talk(6)}, "response_b": {"messages": talk(2)}}
    lines = [{**WHERE, **sides, "winner": "a", "group": k} for k in range(7)]
    steady, wavering = PairwisePreference("a", consistent=True), PairwisePreference("tie", consistent=False)
    judge = First(*[steady] * 4, *[wavering] * 2, JudgeFailed())
    found = await measure(threads, read(rows(*lines), RowDefaults()), MeasuredJudges((), ()), pairwise=judge)
    assert found["judges"] == ["llm"]
    assert found["pairs"]["llm"]["position_consistency"]["value"] == pytest.approx(4 / 6)
    assert found["pairs"]["llm"]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert found["pairs"]["llm"]["ties"] == pytest.approx(2 / 6)
    assert found["failures"] == {"llm: judge_failed": 1}


async def test_judges_of_pairs_are_compared_by_the_winners_they_name(rows: Write, threads: ThreadPoolExecutor) -> None:
    better, worse = {"messages": talk(6)}, {"messages": talk(2)}
    sides = [(better, worse, "a"), (worse, better, "b")] * 4
    lines = [
        {**WHERE, "response_a": a, "response_b": b, "winner": winner, "group": k}
        for k, (a, b, winner) in enumerate(sides)
    ]
    says = [*(winner for _, _, winner in sides[:5]), "a", "tie"]  # right five times, then wrong, then undecided
    judge = First(*[PairwisePreference(each, consistent=each != "tie") for each in says], JudgeFailed())  # type: ignore[arg-type]
    entries = read(rows(*lines), RowDefaults())
    found = await measure(threads, entries, MeasuredJudges(("rubric",), ("longer",)), pairwise=judge, guest=Longer())
    assert set(found["between"]) == {"rubric and longer", "rubric and llm", "longer and llm"}
    together = found["between"]["rubric and llm"]
    assert together["same_winner"]["n"] == 7
    assert together["same_winner"]["value"] == pytest.approx(5 / 7)
    # Expected by chance: 4/7 * 4/7 for a, 3/7 * 2/7 for b, none for ties.
    assert together["kappa"]["value"] == pytest.approx(1 - (2 / 7) / (1 - 22 / 49))
    assert found["between"]["rubric and longer"]["same_winner"]["value"] == 1.0
    assert "spearman" in found["between"]["rubric and longer"]
    assert "| rubric and llm |" in markdown(found)


async def test_a_judge_of_pairs_that_sees_nothing_but_ties_has_a_share_of_ties(
    rows: Write, threads: ThreadPoolExecutor
) -> None:
    sides = {"response_a": {"messages": talk(6)}, "response_b": {"messages": talk(2)}}
    entries = read(rows(*[{**WHERE, **sides, "winner": "a", "group": k} for k in range(5)]), RowDefaults())
    judge = First(*[PairwisePreference("tie", consistent=True)] * 5)
    found = await measure(threads, entries, RUBRIC, pairwise=judge)
    assert found["pairs"]["llm"]["ties"] == 1.0
    assert found["between"]["rubric and llm"]["same_winner"]["value"] == 0.0


async def test_a_judge_that_fails_has_no_figures_and_no_numbers(rows: Write, threads: ThreadPoolExecutor) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    with pytest.raises(InvalidRequest, match=r"longer scored none of the conversations \(longer: judge_failed\)"):
        await measure(threads, entries, MeasuredJudges((), ("longer",)), guest=Longer(failing=True))
    with pytest.raises(InvalidRequest, match=r"nobody scored none of the conversations \(no criterion"):
        await measure(threads, entries, MeasuredJudges(("nobody",), ()))


# --- scores that were made before ---------------------------------------------------------------


def test_scores_of_others_are_measured_too(rows: Write) -> None:
    lines = [{"scores": {"good": k / 20, "bad": 0.5, "wrong": 1 - k / 20}, "label": k / 20} for k in range(20)]
    found = of_scores(read(rows(*lines), RowDefaults()))
    assert found["labels"]["good"]["spearman"]["value"] == pytest.approx(1.0)
    assert found["labels"]["wrong"]["spearman"]["value"] == pytest.approx(-1.0)
    assert "spearman" not in found["labels"]["bad"]
    assert found["labels"]["good"]["kappa"]["value"] == pytest.approx(1.0)
    assert found["between"]["good and wrong"]["kappa"]["value"] < -0.5


def test_winners_of_others_show_who_looks_at_the_position(rows: Write) -> None:
    lines = [
        {
            "scores_a": {"points": 0.6}, "scores_b": {"points": 0.4}, "winner": "a",
            "winners": {"fair": "a", "first": "a"}, "winners_swapped": {"fair": "a", "first": "b"},
        }
        for _ in range(8)
    ]  # fmt: skip
    found = of_scores(read(rows(*lines), RowDefaults()))["pairs"]
    assert found["points"]["accuracy"]["value"] == 1.0
    assert found["fair"]["position_consistency"]["value"] == 1.0
    assert found["first"]["position_consistency"]["value"] == 0.0
    assert found["first"]["accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"messages": "hello", **WHERE}], "needs messages or scores"),
        ([{"messages": ["hello"], **WHERE}], "a message is not an object"),
        ([{"messages": talk(2)}], "give --collection and --scenario"),
        ([{"scores": {"a": 1}, "label": "good"}], "must be numbers"),
        ([{"scores": {"a": math.nan}}], "must be numbers"),
        ([{"scores": {"a": 1}, "label": 5}], "row 1: the label 5 is outside 0 to 1; give the scale as --scale"),
        ([{"scores_a": {"a": 1}, "scores_b": {"a": 1}}], "winner must be"),
        ([{"scores_a": {"a": 1}, "winner": "a"}], "on both sides"),
        ([{"scores_a": {"a": 1}, "scores_b": {"a": 0}, "winner": "a", "winners": {"a": "x"}}], "winners must say"),
        ([{"scores": {"a": 1}}, {"scores": {"b": 1}}], "scores of the same judges"),
        ([{"scores": {"a": 1}}, {"messages": talk(2), **WHERE}], "mixes"),
        ([], "has no rows"),
        ([7], "a row must be an object"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_with_their_place(rows: Write, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(rows(*lines), RowDefaults())


def test_nothing_to_measure_is_said(rows: Write) -> None:
    with pytest.raises(InvalidRequest, match="nothing to measure"):
        of_scores(read(rows({"scores": {"a": 1}, "label": 1}), RowDefaults()))
    with pytest.raises(InvalidRequest, match="lower than"):
        read(rows({"scores": {"a": 1}}), RowDefaults(scale=(1, 1)))


def test_labels_that_are_all_the_same_are_named_as_the_reason(rows: Write) -> None:
    alike = [{"scores": {"a": n / 20}, "label": 5} for n in range(20)]
    with pytest.raises(InvalidRequest, match=r"All 20 labels are 1 \(of 0 to 1\): agreement needs labels that differ"):
        of_scores(read(rows(*alike), RowDefaults(scale=(1, 5))))
    with pytest.raises(InvalidRequest, match="give at least 5 rows"):
        of_scores(read(rows(*alike[:4]), RowDefaults(scale=(1, 5))))


async def test_conversations_that_cannot_be_read_are_refused_before_any_work(
    rows: Write, threads: ThreadPoolExecutor
) -> None:
    entries = read(
        rows(*labelled(2), {**WHERE, "messages": [{"role": "assistant"}], "label": 1}), RowDefaults(scale=(0, 2))
    )
    with pytest.raises(InvalidRequest, match="conversation 3: message field content"):
        await measure(threads, entries)


def test_an_attack_stands_in_every_agent_turn_and_nowhere_else(rows: Write) -> None:
    [entry] = read(rows({**WHERE, "messages": talk(4), "label": 1}), RowDefaults())
    for text in ATTACKS.values():
        before, after = entry.sides[0].messages, attacked(entry.sides[0], text).messages
        changed = [old["role"] for old, new in zip(before, after, strict=True) if old != new]
        assert changed == ["assistant", "assistant"]
        assert all(new["content"].endswith(text) for new in after if new["role"] == "assistant")


async def test_the_report_shows_what_was_measured(rows: Write, threads: ThreadPoolExecutor, tmp_path: Path) -> None:
    entries = read(rows(*labelled()), RowDefaults(scale=(0, 2)))
    found = await measure(threads, entries, MeasuredJudges(("rubric", "state"), ()), attacked=4)
    write(tmp_path / "out", found)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "agreement.json",
        "agreement.png",
        "report.md",
    ]
    assert json.loads((tmp_path / "out" / "agreement.json").read_text())["judges"] == ["rubric", "state"]
    report = markdown(found)
    for heading in ("With human labels", "With each other", "Attacks", "Noise"):
        assert f"## {heading}" in report
    assert "| master key | 0.000" in report
    assert report.startswith("# Agreement of 2 judges\n")
    assert markdown(found | {"judges": ["rubric"]}).startswith("# Agreement of 1 judge\n")


def test_kappa_with_a_judge_that_always_says_the_same_is_a_dash(rows: Write) -> None:
    lines = [{"scores": {"good": k / 20, "low": k / 100}, "label": k / 20} for k in range(20)]
    found = of_scores(read(rows(*lines), RowDefaults()))
    low = found["labels"]["low"]
    assert (low["kappa"]["value"], low["kappa"]["is_constant"]) == (0.0, True)
    assert "is_constant" not in found["labels"]["good"]["kappa"]
    report = markdown(found)
    assert "0.000 [0.000, 0.000]" not in report
    [with_labels] = [line for line in report.splitlines() if line.startswith("| low |")]
    [between] = [line for line in report.splitlines() if line.startswith("| good and low |")]
    assert with_labels.endswith("| – |")
    assert between.endswith("| – |")
    assert report.count("\n–: one of the two gives every row the same value") == 2
    [axes] = drawn(found, NAMES).axes
    assert [label.get_text() for label in axes.get_yticklabels()][::-1] == [
        "good: Spearman", "good: Cohen's kappa", "low: Spearman", "good and low: Spearman"
    ]  # fmt: skip


def test_no_end_of_an_interval_lies_on_the_frame_of_the_plot(rows: Write) -> None:
    lines = [{"scores": {"good": k / 20, "wrong": 1 - k / 20}, "label": k / 20} for k in range(20)]
    found = of_scores(read(rows(*lines), RowDefaults()))
    ends = [figure[end] for each in found["labels"].values() for figure in each.values() for end in ("low", "high")]
    [axes] = drawn(found, NAMES).axes
    left, right = axes.get_xlim()
    assert left < min(ends) < -0.9
    assert 0.9 < max(ends) < right


@pytest.mark.slow
def test_nine_judges_stand_in_a_table_on_a_page_that_can_be_read(rows: Write) -> None:
    lines = [
        {"scores": {f"judge {j}": ((k * (j // 2 + 1)) % 20) / 20 for j in range(9)}, "label": k / 20} for k in range(20)
    ]
    plot = drawn(of_scores(read(rows(*lines), RowDefaults())), NAMES)
    bars, table = plot.axes
    assert plot.get_size_inches()[1] < 20
    assert bars.get_title() == "Agreement of judges"
    assert table.get_title() == "Each two judges: Spearman"
    assert len(table.texts) == 9 * 8
    for text in table.texts:
        assert text.get_color() == ("white" if abs(float(text.get_text())) > 0.6 else "black")
