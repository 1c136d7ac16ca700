"""Judge plug-ins: only what is named is loaded, errors are one line, and no evil value becomes a number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from reward_server.errors import ConfigurationError, JudgeFailed
from reward_server.judges.base import Case, Evidence, Finding, Outcome, Verdict, VerdictStatus
from reward_server.judges.estimate import Estimate
from reward_server.judges.panel import Panel
from reward_server.judges.plugins import GROUP, Plugins, load_plugins
from reward_server.judges.reward_plugin import messages_of
from scenarios.schema import Criterion
from tests.scoring.builders import ASK_PLACE, TELL_PLACE, a_case, a_criterion
from trainer_client.rewards import LengthReward

SHORT_TURNS = LengthReward(1, 3)
CASE = a_case(ASK_PLACE, TELL_PLACE)
SEEN = (Evidence(1, "agent", ASK_PLACE),)
CRITERION = a_criterion({"plugin": {"name": "manners", "options": {"least": 2}}})


class Manners:
    """Decides what it is told to decide."""

    version = "3"
    returns: Any = Finding(0.5, SEEN)

    def decide(self, case: Case, criterion: Criterion) -> object:
        if isinstance(self.returns, Exception):
            raise self.returns
        return self.returns

    def check_options(self, options: dict[str, Any]) -> None:
        if options != {"least": 2}:
            raise ValueError("CANARY")


class AskedManners(Manners):
    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> object:  # type: ignore[override]
        await asyncio.sleep(0)
        if isinstance(self.returns, Exception):
            raise self.returns
        return self.returns


class Warmth:
    version = "1"
    reads_record = False

    def estimate(self, cases: Sequence[Case]) -> list[Estimate]:
        return [Estimate(0.5) for _ in cases]


class Both(Manners, Warmth):
    pass


class Neither:
    version = "1"


class Unversioned(Manners):
    version = ""


class Fussy(Manners):
    def __init__(self) -> None:
        raise RuntimeError("no\nlicence  found")


a_judge = Manners()


def make_judge() -> Manners:
    return Manners()


def entry(name: str, what: str, package: str = __name__) -> EntryPoint:
    return EntryPoint(name, f"{package}:{what}", GROUP)


def load(what: str) -> Plugins:
    return load_plugins(["manners"], [entry("manners", what)])


@pytest.mark.parametrize("what", ["Manners", "a_judge", "make_judge"])
def test_a_class_an_object_or_a_factory_is_a_judge(what: str) -> None:
    plugins = load(what)
    (judge,) = plugins.computed
    assert (judge.name, judge.kinds) == ("manners", frozenset({"plugin:manners"}))
    assert judge.version == "unknown/3"
    verdict = judge.decide(CASE, CRITERION)
    assert verdict == Verdict("one", VerdictStatus.PARTIAL, 0.5, SEEN, "manners", "unknown/3")
    assert Panel(plugins.computed).version == "manners=unknown/3"


def test_what_a_judge_can_do_says_where_it_belongs() -> None:
    assert [judge.name for judge in load("AskedManners").asked] == ["manners"]
    assert list(load("Warmth").conversation) == ["manners"]
    assert load_plugins([]) == Plugins()


def test_a_reward_function_judges_whole_conversations() -> None:
    plugins = load_plugins(["words=tests.judges.test_plugins:SHORT_TURNS"], [])
    judge = plugins.conversation["words"]
    assert judge.version == "unknown/1"
    assert [each.value for each in judge.estimate([CASE])] == [SHORT_TURNS(messages_of(CASE))]
    assert [message["role"] for message in messages_of(CASE)][:3] == ["user", "assistant", "user"]


def test_what_is_not_named_is_not_even_imported() -> None:
    offers = [entry("manners", "Manners"), entry("trap", "Trap", package="there.is.no.such.module")]
    assert len(load_plugins(["manners"], offers).computed) == 1


BAD = [
    (["manners"], [], "No installed package offers the judge plug-in `manners` (labs.judges: none)."),
    (["maners"], [entry("manners", "Manners")], "(labs.judges: manners). Did you mean manners?"),
    (["manner"], [entry("manners", "Manners")], "`manner` (labs.judges: manners)"),
    (["manners"], [entry("manners", "Nothing")], "cannot be loaded: AttributeError"),
    (["manners"], [entry("manners", "Manners", "no_such_module")], "cannot be loaded: ModuleNotFoundError"),
    (["manners"], [entry("manners", "Fussy")], "cannot be loaded: RuntimeError: no licence found"),
    (["manners"], [entry("manners", "Neither")], "needs one of the methods `decide`"),
    (["manners"], [entry("manners", "Both")], "needs one of the methods"),
    (["manners"], [entry("manners", "Unversioned")], "needs a `version`"),
    (["manners"], [entry("manners", "Manners"), entry("manners", "a_judge")], "More than one package"),
    (["manners", "manners"], [entry("manners", "Manners")], "is named twice"),
    (["state"], [entry("state", "Manners")], "cannot be called `state`"),
    (["reward_model"], [entry("reward_model", "Warmth")], "cannot be called `reward_model`"),
    (["rubric"], [entry("rubric", "Warmth")], "cannot be called `rubric`"),
    (["No Such"], [], "small letters"),
]


@pytest.mark.parametrize(("names", "installed", "words"), BAD, ids=[words for _, _, words in BAD])
def test_what_cannot_be_used_is_one_line(names: list[str], installed: list[EntryPoint], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_plugins(names, installed)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def a_verdict(**changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "criterion_id": "one",
        "status": VerdictStatus.PARTIAL,
        "value": 0.5,
        "evidence": SEEN,
        "judge": "state",
        "judge_version": "1",
    }
    return Verdict(**(fields | changes))


class Hostile(float):
    def __ge__(self, other: object) -> bool:
        raise RuntimeError("CANARY")


EVIL = [
    True,
    0.5,
    "met",
    Finding(1.5, SEEN),
    Finding(float("nan"), SEEN),
    Finding("1", SEEN),  # type: ignore[arg-type]
    Finding(0.5),
    Finding(0.5, (Evidence(1, "agent", "words that nobody said"),)),
    Finding(0.5, (Evidence(1, "agent", TELL_PLACE),)),
    Finding(0.5, (Evidence(9, "agent", ASK_PLACE),)),
    Finding(0.5, ("here",)),  # type: ignore[arg-type]
    a_verdict(criterion_id="two"),
    a_verdict(value=2.0),
    a_verdict(value="0.5"),
    a_verdict(value=Hostile(0.5)),
    a_verdict(status=VerdictStatus.MET),
    a_verdict(status=VerdictStatus.ABSTAINED),
    a_verdict(spread=float("inf")),
    a_verdict(spread=-0.1),
    a_verdict(evidence=()),
    ZeroDivisionError("CANARY"),
]


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_what_is_no_verdict_is_a_failure(
    evil: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Manners, "returns", evil)
    with pytest.raises(JudgeFailed) as caught:
        Panel(load("Manners").computed).compute(CASE, [CRITERION])
    assert "CANARY" not in caught.value.message + capsys.readouterr().out


@pytest.mark.parametrize("evil", [None, [], [()], [(None, None)], [Finding(0.5, SEEN)], *([(e,)] for e in EVIL[:-1])])
async def test_an_answer_that_is_none_is_a_failure(evil: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AskedManners, "returns", evil)
    assert isinstance(await asked(), JudgeFailed)


async def asked() -> Outcome:
    panel = Panel([], load("AskedManners").asked)
    judged = panel.compute(CASE, [CRITERION])
    (outcome,) = await panel.ask([(CASE, judged.open)])
    return outcome


async def test_one_that_is_asked_may_decide_abstain_or_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AskedManners, "returns", [(Finding(0.5, SEEN),)])
    assert await asked() == (a_verdict(judge="manners", judge_version="unknown/3"),)
    monkeypatch.setattr(AskedManners, "returns", [[None]])
    outcome = await asked()
    assert isinstance(outcome, tuple)
    assert outcome[0].status is VerdictStatus.ABSTAINED
    for failure in (ZeroDivisionError(), JudgeFailed()):
        monkeypatch.setattr(AskedManners, "returns", failure)
        assert isinstance(await asked(), JudgeFailed)


def test_a_verdict_is_in_the_name_of_the_plug_in_whatever_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manners, "returns", a_verdict())
    (verdict,) = Panel(load("Manners").computed).compute(CASE, [CRITERION]).verdicts.values()
    assert (verdict.judge, verdict.judge_version) == ("manners", "unknown/3")


def test_options_are_checked_without_telling_them() -> None:
    panel = Panel(load("Manners").computed)
    assert panel.plugin_problem([CRITERION]) is None
    other = a_criterion({"plugin": {"name": "manners", "options": {"least": "CANARY"}}})
    assert panel.plugin_problem([other]) == "gives the judge `manners` options that it refuses"
    assert Panel([]).plugin_problem([other]) == "needs the judge `manners`, which this server lacks"
