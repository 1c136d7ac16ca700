"""What the docs say in figures is what the files in benchmarks/results say today, and what made them can be run.

A measurement that is written anew turns these red until the docs follow. Figures that stand on one side alone are not
seen here: a figure in the docs belongs into this file, too.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.learning_curve import method
from benchmarks.processes import ROOT
from benchmarks.report import RESULTS
from learner import config
from learner.cli import demo_file
from learner.tiny import build_model, build_tokenizer
from learner.warmup import load_script
from personas.library import load_temperaments
from reward_server.engine import load_scenarios
from reward_server.reward_models.minilm import packaged_folder
from tests.docs.results import bare, number, point, row, rows, tables

PAGES = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
COMMAND = re.compile(r"(?:python -m |`)(benchmarks\.[\w.]+)([^\n`#]*)")
WORDS = {5: "five", 6: "six", 14: "fourteen", 19: "nineteen", 30: "thirty"}


def said(page: str) -> str:
    """A page on one line."""
    return " ".join((ROOT / page).read_text().split())


# --- figures --------------------------------------------------------------------------------------


def encoder_goals() -> Iterator[str]:
    def times(column: str) -> list[float]:
        return [
            number(row(name, "256 conversations", "ours bf16")[column])
            for name in ("encoder_speed", "encoder_speed_without_amx")
        ]

    (fp32, fp32_without), (bf16, bf16_without) = times("times fp32 baseline"), times("times bf16 baseline")
    yield f"{fp32:.1f} ×, {bf16:.1f} × with AMX; {fp32_without:.1f} ×, {bf16_without:.1f} × [without]"


def http_goals() -> Iterator[str]:
    def learned(caption: str, column: str) -> list[float]:
        files = ("scoring_http", "scoring_http_without_amx")
        return [number(row(name, caption, "Labs, learned")[column]) for name in files]

    yield "1/{:.1f} with AMX; 1/{:.1f} [without]".format(*learned("64 at a time", "plain CPU/this"))
    yield f"One conversation at a time is {learned('1 at a time', 'times plain')[0]:.1f} times as fast"


def turn_writes() -> Iterator[str]:
    found = json.loads((RESULTS / "turn-writes.json").read_text())["speed_to_raw"]["grouped"]
    yield f"| 4 × | {found:.1f} × {'' if found >= 4 else '(not met)'}"


def update_speed() -> Iterator[str]:
    small, large = (number(row("learner_update_speed", "Forward", size)["times TRL"]) for size in ("3.4 M", "23 M"))
    yield f"| 2.5 ×, 3 × | {small:.1f} ×, {large:.1f} × {'' if small >= 2.5 and large >= 3 else '(not met)'}"


def failures() -> Iterator[str]:
    kinds = {each["the provider"] for each in rows("judge_failures", "an evaluation")}
    yield f"{WORDS[len(kinds)].capitalize()} ways for a language model to fail"


def eight_bits() -> Iterator[str]:
    def simulated(products: str) -> list[float]:
        found = row("encoder_speed", "8-bit", products)
        return [number(found["Spearman"]), number(found["max abs d(score)"])]

    (every, moved), (first, _) = simulated("qkv, out"), simulated("wide")
    yield f"Spearman of scores falls to {every:.3f} for all products"
    yield f"and {first:.3f} for the first of the feed-forward ones"
    yield f"a score moves by up to {moved:.2f} (target 0.01)"


def forward() -> Iterator[str]:
    def times(way: str) -> float:
        return number(row("forward_ways", "96 conversations", way)["times as fast"])

    yield f"there the forward pass is {times('public products, fused'):.2f} times as fast so as by products"
    both = times("pre-packed products, fused")
    yield f"({both:.2f} times as fast as the plainest way, together with fused attention)"


def hh() -> Iterator[str]:
    def judge(name: str) -> str:
        return row("quality", "hh-rlhf harmless", name)["accuracy [95 %]"]

    head = judge("learned head")
    yield f"that people preferred in {point(head)} of the pairs {bare(head).partition(' ')[2]}"
    yield (
        f"The shorter reply is right in {point(judge('the shorter'))}, the longer one in "
        f"{point(judge('the longer'))}, the one closer to the question in {point(judge('the reply closer'))}."
    )
    errors = [point(row("quality", "hh: calibration", name)["ECE [95 %]"]) for name in ("as fitted", "with a temp")]
    yield "ECE is {} as fitted and {} with the product's temperature".format(*errors)
    margin = row("quality", "hh: accuracy on the pairs", "size of the margin")
    yield f"quarter of the pairs is right in {point(margin['25 %'])}, the surest half in {point(margin['50 %'])}"
    area = row("quality", "hh: accuracy on the pairs", "spread alone")["AURC"]
    chance = re.search(r"at random ([\d.]+)", area)
    assert chance
    yield f"(AURC {point(area)}, worse than chance {bare(chance.group(1))})"


def llmbar() -> Iterator[str]:
    for name, shown in {
        "cosine with the instruction": "cosine with the instruction",
        "seven comparisons, equal weights": "seven comparisons, equal weights, nothing learned",
        **{
            f"{head}, {trained}": f"{head}, {trained}"
            for head in ("head on all features", "head on seven comparisons", "head of two levels")
            for trained in ("other subsets", "own kind, too")
        },
    }.items():
        cells = list(row("quality", "LLMBar: accuracy [95 %] per subset", name).values())[1:]
        yield f"| {shown} | {' | '.join(point(cell) for cell in cells)} |"

    two_levels = [row("quality", "LLMBar: accuracy [95 %] per subset", "head of two levels, other")]
    widths = [width(cell) for cell in list(two_levels[0].values())[1:]]
    low, high = (bare(f"{each:.2f}") for each in (min(widths), max(widths)))
    yield f"the intervals are as wide as {low} to {high}"
    second = {
        name: point(row("quality", "LLMBar: accuracy [95 %] per subset", name)["llmeval2 (200)"])
        for name in (
            "head of two levels, other",
            "cosine",
            "head on seven comparisons, other",
            "head on seven comparisons, own",
        )
    }
    two, cosine, seven, own = second.values()
    yield f"pulls the two levels down to {two}, below the cosine ({cosine})"
    yield f"while the seven comparisons alone reach {seven} and {own}"
    divisions = row("quality", "LLMBar: lowest and highest", "head of two levels")["natural"].split("-")
    yield f"five divisions differ by {bare(f'{float(divisions[1]) - float(divisions[0]):.2f}')} there"


def width(cell: str) -> float:
    """Of an interval."""
    low, high = re.findall(r"-?[\d.]+", cell)[1:]
    return float(high) - float(low)


def sizes() -> Iterator[str]:
    def counts(start: str, form: str) -> list[str]:
        [caption] = [caption for caption in tables("quality") if caption.startswith(start)]
        found = re.search(form, caption)
        assert found
        return list(found.groups())

    pairs = int(counts("hh-rlhf", r"on (\d+) pairs")[0])
    head = list(row("quality", "LLMBar: accuracy [95 %] per subset", "chance"))[1:]
    instructions = sum(int(re.findall(r"\((\d+)\)", each)[0]) for each in head)
    talks = counts("MRBench: AUC", r"in (\d+) conversations")[0]
    yield f"a part of each set: {pairs:,} pairs, {instructions} pairs, {talks} conversations"


def mrbench() -> Iterator[str]:
    found = {each["criterion"]: each for each in rows("quality", "MRBench: AUC")}
    areas = {name: point(each["learned head [95 %]"]) for name, each in found.items()}
    mean = sum(map(float, areas.values())) / len(areas)
    yield f"reach an AUC of {min(areas.values())} to {max(areas.values())}, {bare(f'{mean:.3f}')} on average"
    yield f"mistake location {areas['Mistake_Location']}, actionability {areas['Actionability']}"
    yield f"revealing of the answer {areas['Revealing_of_the_Answer']}, coherence {areas['Coherence']}"
    for name in ("Mistake_Identification", "Providing_Guidance"):
        yield f"{name.replace('_', ' ').lower()} ({areas[name]} after {bare(found[name]['first number'])})"
    surest = [float(each["accuracy, surest half"].split()[0]) for each in rows("quality", "MRBench: are the heads")]
    low, high = (bare(f"{share:.2f}") for share in (min(surest), max(surest)))
    yield f"The surest half is right in {low} (guidance) to {high} (revealing)"


def few_pairs() -> Iterator[str]:
    def gains(head: str) -> list[str]:
        """By set, those with 150 and with 400 pairs."""
        cells = [row("few_pairs", name, head) for name in ("hh harmless", "MRBench")]
        signed = [[re.findall(r"\(([+-][\d.]+)", each[size])[0] for size in ("150", "400")] for each in cells]
        return [bare(" and ".join(each)) for each in signed]

    product = [row("few_pairs", name, "as the product trains") for name in ("hh harmless", "MRBench")]
    shown = [bare(f"{each['150']} and {each['400']}") for each in product]
    yield f"right in {shown[0]} of the pairs of hh and in {shown[1]} of those of MRBench"
    block = gains("as the product trains, with plain comparisons")
    yield f"the block of comparisons changes that by {block[0]} and by {block[1]}"
    both = gains("penalties by evidence, with plain comparisons")
    yield f"by {both[0]} and by {both[1]}"


def mts() -> Iterator[str]:
    def matcher(name: str) -> str:
        return row("quality", "MTS-Dialog", name)["right [95 %]"]

    ranker, gain = matcher("learned ranker"), matcher("its gain")
    yield f"puts the right one first for {point(ranker)} of the questions {bare(ranker).partition(' ')[2]}"
    yield f"question and answer does for {point(matcher('cosine'))}, chance for {point(matcher('chance'))}."
    yield f"The gain on the same questions is {bare(gain)}."


def doubt() -> Iterator[str]:
    def share(method: str, column: str) -> list[str]:
        found = [row("uncertainty_methods", "80 dialogues of four rows", seed, method)[column] for seed in ("0", "1")]
        return [f"{number(each):.0%}".replace("%", " %") for each in found]

    yield (
        "95 % intervals of the posterior held {} and {} of the held-out labels, those of the ensemble {} and {}".format(
            *share("bayesian", "in 95 %"), *share("ensemble", "in 95 %")
        )
    )


def tuning() -> Iterator[str]:
    def reached(judge: str) -> str:
        return row("unfreezing", "Pairs of hh", judge)["in the right order"]

    [caption] = tables("unfreezing")
    held_out, pairs = re.findall(r"\d+", caption)
    frozen, tuned = (point(reached(f"heads on the {name}")) for name in ("frozen", "tuned"))
    yield f"the first {pairs} pairs of hh it did not: {tuned} of {held_out} held-out pairs after {frozen}"
    yield f"a difference of {bare(reached('tuned minus'))}"
    times = re.search(r"took (\d+) times the CPU time", (RESULTS / "unfreezing.md").read_text())
    assert times
    yield f"for {times.group(1)} times the CPU time"


def own_rewards() -> Iterator[str]:
    def reached(caption: str, method: str) -> str:
        return f"{number(row('own_evaluations', caption, method)['Spearman']):.2f}"

    model, length = (
        [reached(caption, method) for caption in ("Held-out scenarios", "Held-out collections")]
        for method in ("reward model", "length")
    )
    yield f"the server's reward was {model[0]} on held-out scenarios and {model[1]} on held-out collections"
    yield f"the best simple baseline, length, reached {length[0]} and {length[1]}"


def _interval(cell: str) -> str:
    """A share with its interval, as prose has it."""
    share, low, high = re.findall(r"\d+", cell)
    return f"{share} % ({low} to {high} %)"


CLAIMS = {
    "encoder": ("docs/benchmarks.md", encoder_goals),
    "http": ("docs/benchmarks.md", http_goals),
    "turn writes": ("docs/benchmarks.md", turn_writes),
    "update": ("docs/benchmarks.md", update_speed),
    "failures": ("docs/benchmarks.md", failures),
    "8 bits": ("docs/decisions/0006-fast-scorer.md", eight_bits),
    "forward pass": ("docs/decisions/0006-fast-scorer.md", forward),
    "hh": ("docs/quality.md", hh),
    "LLMBar": ("docs/quality.md", llmbar),
    "sizes": ("docs/quality.md", sizes),
    "MRBench": ("docs/quality.md", mrbench),
    "few pairs": ("docs/quality.md", few_pairs),
    "MTS-Dialog": ("docs/quality.md", mts),
    "doubt": ("docs/reward-models.md", doubt),
    "fine-tuning": ("docs/reward-models.md", tuning),
    "own rewards": ("docs/reward-models.md", own_rewards),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_page_says_what_the_result_file_says(name: str) -> None:
    page, claimed = CLAIMS[name]
    text = said(page)
    assert [claim for claim in claimed() if claim not in text] == []


# --- counts ---------------------------------------------------------------------------------------


def test_what_comes_with_the_package_is_counted_right() -> None:
    library = load_scenarios(None)
    names = [(collection, slug) for collection, each in library.catalog.collections.items() for slug in each.scenarios]
    tools = sum(bool(library.vault.open(*name).card.tools) for name in names)
    collections = WORDS[len(library.catalog.collections)]
    scenarios = f"{collections} collections, {WORDS[len(names)]} scenarios, tools in {WORDS[tools]} of them"
    assert scenarios.capitalize() in said("CHANGELOG.md")
    assert f"{WORDS[len(load_temperaments())]} temperaments" in said("CHANGELOG.md")
    assert f"{collections.capitalize()} collections with {len(names)} hand-written scenarios" in said("README.md")
    rows_of_scenarios = re.findall(r"^\| ([\w-]+)/([\w-]+) \|", (ROOT / "docs/scenarios.md").read_text(), re.MULTILINE)
    assert sorted(rows_of_scenarios) == sorted(names)
    megabytes = sum(path.stat().st_size for path in packaged_folder().rglob("*.safetensors")) / 1e6
    assert f"a {megabytes:.0f} MB text encoder" in said("README.md")


def test_the_learners_tiny_model_is_as_large_as_said() -> None:
    shape, script = config.load(demo_file(), []).model, load_script("tired-and-dizzy")
    model = build_model(
        build_tokenizer(script.texts()),
        layers=shape.layers,
        width=shape.width,
        heads=shape.heads,
        context=shape.context,
        seed=0,
    )
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"a transformer of {count / 1e6:.1f} million parameters" in said("docs/training.md")


def test_the_learning_curve_is_of_as_many_updates_as_its_command_makes() -> None:
    assert "benchmarks.learning_curve --write" in said("docs/benchmarks.md")
    demo = config.load(demo_file(), [])
    updates = demo.run.updates
    episodes = updates * demo.rollout.groups * demo.rollout.group_size
    assert {number(each["episodes trained on"]) for each in rows("learning_curve", "Mean reward")} == {episodes}
    assert method(updates) in (RESULTS / "learning_curve.md").read_text()
    assert f"on three seeds, {updates} updates each" in said("docs/benchmarks.md")


# --- commands -------------------------------------------------------------------------------------


def commands() -> dict[str, set[str]]:
    """Every benchmark that is named on a page or in a result file, with the options it is named with."""
    found: dict[str, set[str]] = {}
    for path in [*(ROOT / page for page in PAGES), *RESULTS.glob("*.md")]:
        for module, arguments in COMMAND.findall(path.read_text()):
            found.setdefault(module.rstrip("."), set()).update(re.findall(r"--[\w-]+", arguments))
    return found


@pytest.mark.parametrize("module", sorted(commands()))
def test_a_command_that_is_named_explains_itself_and_has_the_options_it_is_named_with(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(os.environ)
    try:
        found = importlib.import_module(module)
        if (Path(*module.split(".")) / "__main__.py").exists():
            found = importlib.import_module(f"{module}.__main__")
    finally:  # some set the number of threads for the process they expect to be
        os.environ.clear()
        os.environ.update(before)
    monkeypatch.setattr("sys.argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        found.main()
    assert ended.value.code == 0
    helped = capsys.readouterr().out
    assert [option for option in commands()[module] if option not in helped] == []


def test_every_command_that_writes_a_result_is_named_in_the_docs() -> None:
    makers = {
        f"benchmarks.{path.stem}"
        for path in (ROOT / "benchmarks").glob("*.py")
        if re.search(r"^def main\(", path.read_text(), re.MULTILINE)
    }
    assert makers - set(commands()) == set()


def test_every_result_is_linked_from_the_docs() -> None:
    linked = " ".join((ROOT / page).read_text() for page in PAGES)
    assert [path.name for path in sorted(RESULTS.glob("*.md")) if f"benchmarks/results/{path.name}" not in linked] == []


def test_no_page_counts_the_attacks_itself() -> None:
    """Their number changes often: it stands in the result file."""
    counted = re.compile(r"\b[\d,]+ attacks\b|\battacks of \w+teen kinds\b", re.IGNORECASE)
    assert [page for page in PAGES if counted.search(said(page))] == []
