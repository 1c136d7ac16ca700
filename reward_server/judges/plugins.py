"""Judges that somebody else wrote: found by entry point, loaded only where the operator named them, and not trusted.

An installed package offers a judge in the group `labs.judges`; the name of the entry point is what scenarios and
composites call it. It is an object, or a class or function without arguments that makes one, with a `version` and

- `decide(case, criterion)`: decides checks `plugin: {name: …}`, in the scoring threads; or, where it is a coroutine
  function, `decide(cases)`, asked as `judges.base.RemoteJudge` is; or
- `estimate(cases)`: puts a number on whole conversations, as `judges.estimate.ConversationJudge`; or
- `score_many(conversations)`: the same as a reward function of `trainer_client.rewards`.

An operator may also name an object that no package offers, as `name=module:object`.

One that decides may have `check_options(options)`, which raises on options of a scenario that it cannot use.

A judge that raises, or returns anything but a sound verdict or estimate, has failed; that never becomes a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction
from typing import Any

import structlog

from reward_server.errors import ConfigurationError, JudgeFailed, LabsError
from reward_server.judges.base import (
    Case,
    ComputedJudge,
    Finding,
    Outcome,
    RemoteJudge,
    Verdict,
    VerdictStatus,
    verdict,
)
from reward_server.judges.estimate import ConversationJudge, Estimate
from reward_server.judges.reward_plugin import RewardEstimates
from reward_server.judges.soundness import is_sound
from scenarios.schema import Criterion
from scenarios.spelling import meant

GROUP = "labs.judges"
METHODS = ("decide", "estimate", "score_many")
"""A judge has one of them."""
BUILT_IN = frozenset(
    {"state", "rule", "local", "llm", "learned", "judge", "none", "rubric", "reward_model", "classifier"}
)
"""Names that mean something already."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_REASON = 200

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Plugins:
    """The judges that were loaded, by what they do."""

    computed: tuple[ComputedJudge, ...] = ()
    asked: tuple[RemoteJudge, ...] = ()
    conversation: Mapping[str, ConversationJudge] = field(default_factory=dict)


NO_PLUGINS = Plugins()


def load_plugins(names: Sequence[str], installed: Iterable[EntryPoint] | None = None) -> Plugins:
    """The judges of these names; nothing else that is installed is imported.

    Raises:
        ConfigurationError: one line about what is missing, clashes, cannot be loaded or is no judge.
    """
    offers = list(entry_points(group=GROUP) if installed is None else installed) if names else []
    pairs = [tuple(map(str.strip, name.partition("=")[::2])) for name in names]
    offers += [EntryPoint(name, value, GROUP) for name, value in pairs if value]
    names = [name for name, _ in pairs]
    computed: list[ComputedJudge] = []
    remote: list[RemoteJudge] = []
    conversation: dict[str, ConversationJudge] = {}
    for name in names:
        _require_free(name, names)
        entry = _offered(name, offers)
        judge, version = _loaded(name, entry)
        if hasattr(judge, "estimate"):
            conversation[name] = ConversationPlugin(name, version, judge)
        elif iscoroutinefunction(judge.decide):
            remote.append(AskedPlugin(name, version, judge))
        else:
            computed.append(ComputedPlugin(name, version, judge))
    return Plugins(tuple(computed), tuple(remote), conversation)


def _require_free(name: str, names: Sequence[str]) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"A judge plug-in's name is small letters, digits and `_`; `{name[:64]}` is not.")
    if name in BUILT_IN:
        raise ConfigurationError(f"A judge plug-in cannot be called `{name}`: the server has a judge of that name.")
    if names.count(name) > 1:
        raise ConfigurationError(f"The judge plug-in `{name}` is named twice.")


def _offered(name: str, offers: Sequence[EntryPoint]) -> EntryPoint:
    # The same package may be found on the path more than once.
    entries = {(_package(entry), entry.value): entry for entry in offers if entry.name == name}
    if not entries:
        known = sorted({entry.name for entry in offers})
        message = f"No installed package offers the judge plug-in `{name}` ({GROUP}: {', '.join(known) or 'none'})."
        raise ConfigurationError(message + meant(name, known))
    if len(entries) > 1:
        packages = " and ".join(sorted(package for package, _ in entries))
        raise ConfigurationError(f"More than one package offers the judge plug-in `{name}`: {packages}.")
    return next(iter(entries.values()))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name}=={entry.dist.version}" if entry.dist else "unknown"


def _loaded(name: str, entry: EntryPoint) -> tuple[Any, str]:
    """The judge and its version, which names the package's version, too."""
    what = f"The judge plug-in `{name}` ({_package(entry)})"
    try:
        judge = entry.load()
        if isinstance(judge, type) or not any(hasattr(judge, method) for method in METHODS):
            judge = judge()
    except Exception as error:  # noqa: BLE001 (a provider boundary: anybody's program)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_REASON]
        raise ConfigurationError(f"{what} cannot be loaded: {reason}") from None
    methods = [method for method in METHODS if callable(getattr(judge, method, None))]
    if len(methods) != 1:
        raise ConfigurationError(f"{what} needs one of the methods {', '.join(f'`{name}`' for name in METHODS)}.")
    version = getattr(judge, "version", None)
    if not isinstance(version, str) or not version:
        raise ConfigurationError(f"{what} needs a `version`, a text that changes whenever its judgements may.")
    return (RewardEstimates(judge) if methods == ["score_many"] else judge), f"{_package(entry)}/{version}"


@dataclass(frozen=True, repr=False)
class _PluginJudge:
    """A judge that is not the server's own, with what the server knows of it."""

    name: str
    version: str
    judge: Any

    @property
    def kinds(self) -> frozenset[str]:
        """The checks that name it."""
        return frozenset({f"plugin:{self.name}"})

    def refuses(self, options: Mapping[str, Any]) -> bool:
        """True if it cannot use the options that a scenario gives it."""
        check = getattr(self.judge, "check_options", None)
        try:
            if check is not None:
                check(options)
        except Exception:  # noqa: BLE001 (a provider boundary: anybody's program)
            return True
        return False

    def accepted(self, case: Case, criterion: Criterion, given: object) -> Verdict:
        """Its finding as a verdict in its own name; `JudgeFailed` if it is none."""
        accepted_verdict = given
        if given is None:
            accepted_verdict = Verdict(criterion.id, VerdictStatus.ABSTAINED, None, (), self.name, self.version)
        elif isinstance(given, Finding) and _is_share(given.value):
            accepted_verdict = verdict(self, criterion, given)
        if not isinstance(accepted_verdict, Verdict) or not _is_well_formed(case, criterion, accepted_verdict):
            raise self.failed("NoVerdict")
        return replace(accepted_verdict, judge=self.name, judge_version=self.version)

    def failed(self, reason: str) -> JudgeFailed:
        """The failure, told to the operator by kind alone: a message may quote the conversation."""
        log.error("judge_failed", judge=self.name, error=reason)
        return JudgeFailed(kind="plugin")


class ComputedPlugin(_PluginJudge):
    """A plug-in that decides by computing; it may return a `Finding`, a `Verdict`, or None to abstain."""

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion; `JudgeFailed` whatever goes wrong."""
        try:
            returned = self.judge.decide(case, criterion)
        except LabsError:
            raise
        except Exception as error:  # noqa: BLE001 (a provider boundary: anybody's program)
            raise self.failed(type(error).__name__) from None
        return self.accepted(case, criterion, returned)


class AskedPlugin(_PluginJudge):
    """A plug-in that asks somebody else, a batch of cases at a time."""

    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
        """Per case its verdicts, or the failure."""
        try:
            answers = list(await self.judge.decide(cases))
        except JudgeFailed:
            raise
        except Exception as error:  # noqa: BLE001 (a provider boundary: anybody's program)
            raise self.failed(type(error).__name__) from None
        if len(answers) != len(cases):
            raise self.failed("WrongCount")
        return [self._outcome(case, criteria, answer) for (case, criteria), answer in zip(cases, answers, strict=True)]

    def _outcome(self, case: Case, criteria: Sequence[Criterion], answer: object) -> Outcome:
        if isinstance(answer, JudgeFailed):
            return answer
        if not isinstance(answer, list | tuple) or len(answer) != len(criteria):
            return self.failed("WrongCount")
        try:
            return tuple(self.accepted(case, c, item) for c, item in zip(criteria, answer, strict=True))
        except JudgeFailed as failure:
            return failure


class ConversationPlugin(_PluginJudge):
    """A plug-in that puts a number on whole conversations; who hears it looks at the numbers."""

    @property
    def reads_record(self) -> bool:
        """True if it looks at `Case.record`; one that does not may say so and save a replay."""
        return bool(getattr(self.judge, "reads_record", True))

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        """One estimate per case."""
        return list(self.judge.estimate(cases))


def _is_share(value: object) -> bool:
    return isinstance(value, float | int) and 0.0 <= value <= 1.0


def _is_well_formed(case: Case, criterion: Criterion, given: Verdict) -> bool:
    """As `is_sound`, for values that may be anything: evil ones must not escape as another error."""
    try:
        return is_sound(case, criterion, given)
    except Exception:  # noqa: BLE001 (a provider boundary: its values may be of any type)
        return False
