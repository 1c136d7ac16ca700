"""`labs doctor`: look at everything a server needs, and say what to do about what is missing.

Each check looks and changes nothing; the database is only opened if it exists. What stops a start is found by the
start's own code. The provider of LLM judges is asked only with `--ask`: a question costs money.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reward_server import __version__
from reward_server.cli.against_local import read_against_local
from reward_server.cli.data_checks import data, database, keys, security
from reward_server.cli.finding import CheckFinding
from reward_server.cli.remedies import MENDS, NEEDS
from reward_server.cli.running import labs_at
from reward_server.cli.salvage import UsableSettings, salvaged
from reward_server.errors import ConfigurationError, LabsError
from reward_server.program import as_called
from reward_server.removed_settings import REMOVED, gone
from reward_server.settings import PREFIX, Settings
from scenarios.spelling import counted, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reward_server.judges.base import Judge
    from reward_server.judges.estimate import ConversationJudge

Data = Annotated[Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)]
ELSEWHERE = frozenset({"LABS_HOME", "LABS_PYTHON", "LABS_URL", "LABS_API_KEY"})
"""Variables of the start of the command, and of trainers."""


def doctor(
    folder: Data = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the provider of LLM judges one tiny question.")] = False,
) -> None:
    """Check the set-up: settings, encoder, scenarios, judges, data folder, keys, port, LLM provider.

    The exit code is 1 if `serve` would not start, or would start with something broken.
    """
    from reward_server.logs.logger import configure_logging

    known_settings = salvaged({"data": folder})
    # What is logged on the way is said in a finding.
    configure_logging("error", stream=io.StringIO())
    findings: list[CheckFinding] = []
    for name, check in (CHECKS | {"llm": _asked_llm, "decisions": _asked_decisions} if ask else CHECKS).items():
        for finding in _looked_at(name, check, known_settings):
            known = finding.mend is not None and finding.mend in (each.mend for each in findings)
            findings.append(finding)
            typer.echo(f"{finding.mark} {name:<12} {finding.detail}{', see above' if known else ''}")
            if finding.mend and not known:
                typer.echo(f"    {as_called(finding.mend)}")
    if any(finding.mend and not finding.is_warning for finding in findings):
        raise typer.Exit(1)


def _looked_at(name: str, check: Callable[[Settings], CheckFinding], found: UsableSettings) -> Iterator[CheckFinding]:
    """The finding of one check; of settings a wrong one hides no misspelt one."""
    unchecked = _unchecked(name, found)
    if unchecked is not None:
        yield unchecked
    if unchecked is None or name == "settings":
        outcome = _outcome(name, check, found.settings)
        if unchecked is None or outcome.mend is not None:
            yield outcome


def _unchecked(name: str, found: UsableSettings) -> CheckFinding | None:
    """Of settings what is wrong with them; of a check that needs what is wrong that it was not made."""
    if found.problem is None:
        return None
    if name == "settings":
        return CheckFinding(name, "not usable", found.problem)
    if any(each.upper().startswith(NEEDS.get(name, ())) for each in found.left_out):
        return CheckFinding(name, "not checked", found.problem)
    return None


def _outcome(name: str, check: Callable[[Settings], CheckFinding], settings: Settings) -> CheckFinding:
    try:
        return check(settings)
    except LabsError as error:
        return CheckFinding(name, "not usable", error.message)


def _python(settings: Settings) -> CheckFinding:
    return CheckFinding("python", f"{sys.version.split()[0]}, labs {__version__}")


def _settings(settings: Settings) -> CheckFinding:
    """A misspelt setting is none, and nothing else would tell."""
    read = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | ELSEWHERE
    removed = gone(os.environ)
    strange = sorted(
        name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in read | REMOVED.keys()
    )
    if not (strange or removed):
        return CheckFinding("settings", "every LABS_… variable is one")
    # What all names begin with would make any two of them alike.
    bare = [name.removeprefix(PREFIX) for name in read]
    close = [(name, nearest(name.upper().removeprefix(PREFIX), bare)) for name in strange]
    named = ", ".join(f"{name} (did you mean {PREFIX}{found}?)" if found else name for name, found in close)
    told = [f"nothing reads {named}; docs/reference.md lists the settings"] if strange else []
    count = len(strange) + len(removed)
    return CheckFinding("settings", f"{count} without effect", "; ".join([*told, *removed]), is_warning=True)


def _encoder(settings: Settings) -> CheckFinding:
    from reward_server.encoders.loading import load_encoder

    return CheckFinding("encoder", load_encoder(settings.encoder).version)


def _scenarios(settings: Settings) -> CheckFinding:
    from reward_server.server.engine import load_scenarios

    library = load_scenarios(settings.scenarios)
    collections = library.catalog.collections
    count = sum(len(collection.scenarios) for collection in collections.values())
    return CheckFinding("scenarios", f"{count} in {counted(len(collections), 'collection')}")


def _plugins(settings: Settings) -> CheckFinding:
    from reward_server.judges.plugins import load_plugins

    found = load_plugins(settings.plugin_names)
    judges: list[Judge | ConversationJudge] = [*found.computed, *found.asked, *found.conversation.values()]
    named = ", ".join(f"{judge.name} ({judge.version})" for judge in judges)
    return CheckFinding("plug-ins", named or "none")


def _classifier(settings: Settings) -> CheckFinding:
    from reward_server.classifier.build import classifier_judge

    judge = classifier_judge(settings)
    return CheckFinding("classifier", "none is set" if judge is None else judge.classifier.version)


def _reward_model(settings: Settings) -> CheckFinding:
    """Check the model that is active for all labs, and those of labs that have one of their own."""
    from reward_server.reward_models.registry import Registry
    from reward_server.server.engine import reward_model_service

    shared, service = Registry(settings.reward_models), reward_model_service(settings)
    owned = {lab_id: model_id for lab_id, own in shared.of_labs().items() if (model_id := own.active_id())}
    serving = [(shared.active_id(), service.active, " for all other labs" if owned else "")]
    serving += [(owned[lab_id], own, f" for lab {lab_id}") for lab_id in owned if (own := service.own_of(lab_id))]
    for model_id, active, whom in serving:
        try:
            _ = model_id and active.read(model_id)
        except LabsError as error:
            mend = f"{error.message.rstrip('.')}: activate another with ./labs reward-model activate, or train again"
            return CheckFinding("reward model", f"{model_id} is active{whom}, and cannot be used", mend)
    return CheckFinding(
        "reward model", ", ".join(f"{model_id or 'none'} is active{whom}" for model_id, _, whom in serving)
    )


def _scoring(settings: Settings) -> CheckFinding:
    """Everything that scores, built as a start builds it: no scenario lacks a judge."""
    from reward_server.server.engine import present_version

    return CheckFinding("scoring", asyncio.run(present_version(settings)))


def _calibrations(settings: Settings) -> CheckFinding:
    """Of those that can be read, how many the server would use as things stand."""
    from reward_server.cli.fitting import refused
    from reward_server.reward_models.calibration import CalibrationShelf

    there = {path.stem for path in settings.calibrations.glob("cal_*.json")}
    usable = {calibration.id: calibration for calibration in CalibrationShelf(settings.calibrations).all()}
    if damaged := ", ".join(sorted(there - usable.keys())):
        mend = f"damaged: {damaged}; ./labs calibrate --remove takes one away"
        return CheckFinding("calibrations", f"{len(usable)} of {len(there)} can be read", mend)
    strangers = sorted(refused(usable.values(), settings)) if usable else []
    named = f"; for other versions or models: {', '.join(strangers)}" if strangers else ""
    fitting = f", {len(usable) - len(strangers)} for the current rewards{named}" if usable else ""
    return CheckFinding("calibrations", f"{len(usable)}{fitting}")


def _redis(settings: Settings) -> CheckFinding:
    from reward_server.shared_state.redis_link import RedisLink, RedisLost

    if settings.redis_url is None:
        return CheckFinding("redis", "none is set")
    url = settings.redis_url.get_secret_value()

    async def asked() -> CheckFinding:
        link = RedisLink(url)
        try:
            await link.ping()
        except RedisLost:
            mend = "start it, or correct LABS_REDIS_URL; a server without it starts, and counts its limits alone"
            return CheckFinding("redis", "does not answer in time", mend)
        finally:
            await link.close()
        return CheckFinding("redis", "answers")

    return asyncio.run(asked())


def _port(settings: Settings) -> CheckFinding:
    """Bound for a moment, as a start does; a Labs that runs there already is no trouble."""
    from reward_server.cli.serve import bind

    try:
        bind(settings.host, settings.port).close()
    except ConfigurationError as error:
        if url := labs_at(settings.host, settings.port):
            return CheckFinding("port", f"Labs is running at {url}")
        return CheckFinding("port", f"{settings.host}:{settings.port}", error.message)
    return CheckFinding("port", f"{settings.port} is free" if settings.port else "any free port")


def _llm(settings: Settings) -> CheckFinding:
    """Check the language model, and that everything for it is there; the key shows nowhere."""
    from reward_server.llm.build import language_model

    model = language_model(settings)
    if model is None:
        return CheckFinding("llm", "none; criteria for an LLM judge abstain")
    about = model.describe()
    return CheckFinding("llm", f"{model.name} at {about['endpoint']}; not asked (--ask asks)")


def _voice(settings: Settings) -> CheckFinding:
    """Check who words what personas say, and that everything for it is there."""
    from reward_server.voice.build import own_voice_model

    if settings.persona_voice == "local":
        return CheckFinding("voice", "the engine's own lines")
    model = own_voice_model(settings)
    if model is None:
        return CheckFinding("voice", "the model of llm, under the guard")
    return CheckFinding("voice", f"{model.name} at {model.describe()['endpoint']}, under the guard; not asked")


def _nothing_alike(texts: Sequence[str], others: Sequence[str]) -> NDArray[Any]:
    raise ConfigurationError("the text encoder is not asked here")


NO_ENCODER = _nothing_alike, ""
"""Of models behind a server, which need none."""


def _decisions(settings: Settings) -> CheckFinding:
    """Check the decision model, and that everything for it is there; `local` needs nothing."""
    from reward_server.decisions.build import decision_model

    uses: list[str] = []
    uses += ["reader"] if settings.reader != "local" else []
    uses += ["judges"] if settings.judges == "decisions" else []
    if settings.decisions == "none" or not uses:
        unused = "" if settings.decisions == "none" else f"; {settings.decisions} is set, and nothing asks it"
        return CheckFinding("decisions", f"none{unused}")
    if settings.decisions == "local":
        return CheckFinding("decisions", f"the text encoder, for {' and '.join(uses)}")
    model = decision_model(settings, NO_ENCODER)
    assert model is not None, "an adapter is set"
    named = f"{model.name} at {model.describe()['endpoint']} for the {' and the '.join(uses)}"
    return CheckFinding("decisions", f"{named}; not asked (--ask asks)")


def _asked_decisions(settings: Settings) -> CheckFinding:
    """One tiny question, and a few turns to a model that reads: one that does worse than without it is said."""
    from reward_server.decisions.build import decision_model, ping
    from reward_server.llm.base import LlmFailed

    known, name = _decisions(settings), settings.asked_decision_model
    if settings.decisions in ("none", "local") or name is None:
        return known

    async def asked() -> float:
        model = decision_model(settings, NO_ENCODER)
        try:
            return 0.0 if model is None else await ping(model)
        finally:
            if model is not None:
                await model.close()

    try:
        sure = asyncio.run(asked())
    except LlmFailed as failed:
        mend = "check LABS_DECISIONS_URL, LABS_DECISIONS_MODEL and LABS_DECISIONS_API_KEY"
        return CheckFinding("decisions", f"{name} did not answer: {failed.kind}", mend)
    if sure < 0.5:
        mend = "it gets a plain truth wrong: measure it with ./labs reader evaluate before you use it"
        return CheckFinding("decisions", f"{name} answered with p = {sure:.2f}", mend, is_warning=True)
    told = f"{name} answered, p = {sure:.2f}"
    if settings.reader == "local":
        return CheckFinding("decisions", told)
    reading = read_against_local(settings)
    worse = "set LABS_READER=local, or measure more with ./labs reader evaluate" if reading.is_worse else None
    return CheckFinding("decisions", f"{told}; {reading.told}", worse, is_warning=True)


def _asked_llm(settings: Settings) -> CheckFinding:
    from reward_server.llm.base import LlmFailed
    from reward_server.llm.build import ping

    named = f"{settings.llm_provider}/{settings.llm_model}"
    try:
        answered = asyncio.run(ping(settings))
    except LlmFailed as failed:
        return CheckFinding("llm", f"{named} did not answer: {failed.kind}", MENDS.get(failed.kind, "try again later"))
    if answered is None:
        mend = "set the provider and the model with LABS_LLM_PROVIDER and LABS_LLM_MODEL; see docs/providers.md"
        return CheckFinding("llm", "none to ask", mend, is_warning=True)
    return CheckFinding("llm", f"{named} answered as {answered}")


CHECKS: dict[str, Callable[[Settings], CheckFinding]] = {
    "python": _python,
    "settings": _settings,
    "encoder": _encoder,
    "scenarios": _scenarios,
    "plug-ins": _plugins,
    "classifier": _classifier,
    "reward model": _reward_model,
    "scoring": _scoring,
    "calibrations": _calibrations,
    "data": data,
    "database": database,
    "keys": keys,
    "security": security,
    "redis": _redis,
    "port": _port,
    "llm": _llm,
    "voice": _voice,
    "decisions": _decisions,
}
