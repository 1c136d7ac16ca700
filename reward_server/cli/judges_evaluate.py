"""`labs judges evaluate`: how far the configured judge of `judge` criteria agrees with people, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_server.cli.progress import shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from reward_server.fitting.verdicts.measure import JudgedTalks
    from reward_server.fitting.verdicts.read import LabelledTalk
    from reward_server.settings import Settings

JUDGES = ("llm", "systemone", "openai", "chat", "local")


def evaluate(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="Labelled verdicts, or MRBench: a file, or a folder of them. \\[default: the packaged 88]",
        ),
    ] = None,
    who: Annotated[
        str | None,
        typer.Option(
            "--judge", help="llm, or an adapter: systemone, openai, chat, local. \\[default: what LABS_JUDGES says]"
        ),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most", min=1, help="Judge so many conversations, spread evenly.")
    ] = None,
) -> None:
    """Print how far the judge of `judge` criteria agrees with people, with 95 % intervals, tokens and calls.

    Rows of JSON: {"situation": "...", "messages": [...], "verdicts": {"Does the agent ...?": true}}.
    """
    from reward_server.fitting.verdicts.measure import by_part, table
    from reward_server.fitting.verdicts.read import read
    from reward_server.settings import load_settings

    talks = read(source)
    talks = talks if most is None else talks[:: max(1, -(-len(talks) // most))]
    found, used = asyncio.run(_judged(load_settings(chosen_judge(who)), talks))
    for each in found:
        failed = ", ".join(f"{count} {kind}" for kind, count in each.failures.most_common())
        if each.decided:
            typer.echo(table(by_part(each.decided)))
        typer.echo(
            f"judged by {each.judge}; {each.failures.total()} without a verdict{f' ({failed})' if failed else ''}"
        )
    typer.echo(used)
    if not any(each.decided for each in found):
        raise typer.Exit(1)


def chosen_judge(who: str | None) -> dict[str, str]:
    """The settings that `--judge` stands for."""
    if who is None:
        return {}
    if who not in JUDGES:
        raise InvalidRequest(f"--judge is one of {', '.join(JUDGES)}")
    return {"judges": "llm"} if who == "llm" else {"judges": "decisions", "decisions": who}


async def _judged(settings: Settings, talks: Sequence[LabelledTalk]) -> tuple[list[JudgedTalks], str]:
    """What each judge of `judge` criteria says, and what was used for it."""
    from reward_server.fitting.verdicts.measure import judged
    from reward_server.judges.plugins import load_plugins
    from reward_server.judges.verdict_cache import VerdictCache
    from reward_server.llm.build import language_model
    from reward_server.llm.counting import CountingMeter
    from reward_server.server.engine import asked_judges, deciders_of, load_matcher, load_reader

    meter, verdicts = CountingMeter(), VerdictCache()
    model = language_model(settings, meter=meter) if settings.judges == "llm" else None
    deciders = deciders_of(settings, load_matcher(settings), verdicts, meter=meter)
    try:
        plugins = [each for each in load_plugins(settings.plugin_names).asked if "judge" in each.kinds]
        judges = [*asked_judges(model, settings, verdicts, load_reader(settings), deciders.judges), *plugins]
        if not judges:
            raise InvalidRequest(
                "There is no judge to measure: set LABS_JUDGES=decisions with LABS_DECISIONS, or LABS_LLM_PROVIDER and "
                "LABS_LLM_MODEL; or give --judge local"
            )
        found = []
        with shown(wide_console(stderr=True)) as report:
            for judge in judges:
                found.append(await judged(judge, talks, lambda done: report("conversations", done, len(talks))))
    finally:
        await deciders.close()
        if model is not None:
            await model.close()
    return found, meter.used(len(talks), "conversation")
