"""The argument and the options of `labs evaluate`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FORMAT_NAMES = (
    "auto, openai, sharegpt, tau_bench, hh, casino, abcd, mrbench, mathdial, mts_dialog, transcript (a field of "
    "`Speaker: text` lines), answers (input, output_1, output_2)"
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A JSONL, JSON, CSV (also gzipped) or Parquet file, a folder of Parquet files or of a saved data set, "
        "or hf:NAME.",
    ),
]
CollectionOfRows = Annotated[
    str | None, typer.Option(help="Collection of rows that name none; `./labs scenarios list` has them.")
]
ScenarioOfRows = Annotated[str | None, typer.Option(help="Scenario of rows that name none.")]
Rubric = Annotated[
    Path | None,
    typer.Option(
        help="Judge all rows by this rubric without a persona, whatever scenario they name; docs/rubrics.md.",
        exists=True,
        dir_okay=False,
    ),
]
Reward = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Score by a reward instead of a scenario: module:object, or one of trainer_client.rewards; "
        "docs/build-your-own.md.",
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for results and report, or one file: .jsonl or .parquet.")]
FormatName = Annotated[str, typer.Option("--format", help=f"Format of the rows: {FORMAT_NAMES}.")]
AgentRole = Annotated[
    str, typer.Option(help="Who the agent is in `messages`: assistant or user. A row's own agent_role comes first.")
]
AgentSpeaker = Annotated[
    list[str] | None,
    typer.Option(help="What rows call the agent, if they have other roles or names; may be repeated."),
]
PersonaAnswers = Annotated[
    bool,
    typer.Option("--persona-answers", help="Let the scenario's persona answer instead of the recorded party."),
]
Engine = Annotated[str, typer.Option(help="local: this process; ray: workers on Ray (extra `ray`).")]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers on Ray. \\[default: processors]")]
Split = Annotated[str, typer.Option(help="Split of a data set.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Stop after this number of rows.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
Root = Annotated[
    Path | None,
    typer.Option(
        "--dir", help="Folder of collections. \\[default: LABS_SCENARIOS, else the packaged ones]", file_okay=False
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Data folder of the server whose reward model to use; LABS_DATA.", file_okay=False),
]
