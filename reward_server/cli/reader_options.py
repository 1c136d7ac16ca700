"""The arguments and options of `labs reader`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILES",
        help="Labelled turns, JSONL named <collection>__<scenario>.jsonl. \\[default: the packaged held-out turns]",
    ),
]
Scenarios = Annotated[
    Path | None, typer.Option("--scenarios", help="Folder of collections. \\[default: the packaged]", file_okay=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the samples and initial weights.")]
NewArtefact = Annotated[Path, typer.Option(help="Where to write the artefact.", dir_okay=False)]

# evaluate
Predictions = Annotated[Path | None, typer.Option(help="Write one row per turn to this JSONL file.")]
Artefact = Annotated[
    Path | None, typer.Option(help="Measure this artefact instead of the packaged one.", dir_okay=False)
]
ReaderName = Annotated[
    str | None,
    typer.Option("--reader", help="local, or an adapter: systemone, openai, chat. \\[default: what LABS_READER says]"),
]
Most = Annotated[int | None, typer.Option("--most", min=1, help="Read so many turns, spread evenly.")]
AfterOpening = Annotated[
    bool, typer.Option("--after-opening", help="Read turns without a `before` after the persona's opening.")
]
PracticeAlone = Annotated[
    bool, typer.Option("--practice", help="Measure on the practice cases of the domains that are kept aside.")
]

# train
WholeArtefact = Annotated[
    Path | None,
    typer.Option(
        help="Where to write a whole artefact. Without it, the collections of --scenarios are calibrated.",
        dir_okay=False,
    ),
]
Force = Annotated[bool, typer.Option(help="Write a calibration that is no better than chance, too.")]
LeftOut = Annotated[
    list[str] | None,
    typer.Option(
        help="Train without this collection and measure on it, as on a scenario of your own; may be repeated."
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        min=0, help="Passes over the turns; 0 fits the heads alone. \\[default: those of the packaged reader]"
    ),
]
StartFrom = Annotated[
    Path | None,
    typer.Option("--from", help="Train the encoder of this artefact further (3 passes are enough).", dir_okay=False),
]
WithPractice = Annotated[
    bool, typer.Option(help="Learn from the practice cases too, but for the domains that are kept aside.")
]

# second
Turns = Annotated[int, typer.Option(min=1, help="So many turns of the scenarios are drawn.")]
SecondPasses = Annotated[int | None, typer.Option(min=1, help="Passes. \\[default: those of the packaged one]")]

# fluency
OwnText = Annotated[
    list[Path] | None,
    typer.Option(
        help="Whole sentences that people wrote, one a line; may be repeated. They are learned from besides the "
        "packaged turns.",
        dir_okay=False,
    ),
]
Steps = Annotated[int | None, typer.Option(min=2, help="\\[default: those of the packaged model]")]
