"""`evaluate`: the reward of a stored policy, or of any OpenAI-compatible endpoint, on held-out seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from learner.cli.options import Url, Which

if TYPE_CHECKING:
    from learner.evaluation import EvaluationResult


def _turns(text: str) -> int:
    from learner.evaluation import AS_SCENARIO

    if text == "none":
        return AS_SCENARIO
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter("must be a number above 0, or none")
    return int(text)


def _split(text: str) -> str:
    if text not in ("train", "eval", "none"):
        raise typer.BadParameter("must be train, eval or none")
    return text


Agent = Annotated[
    str, typer.Argument(metavar="AGENT", help="Folder of a run or of a model, or the address of an endpoint.")
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLLECTION/SCENARIO",
        help="Scenario, or collection for all of its scenarios; may be repeated.",
        show_default="the run's, held-out ones first; else clinical-intake/tired-and-dizzy",
    ),
]
Episodes = Annotated[int, typer.Option(min=2, help="Number of episodes, spread over the scenarios.")]
MaxTurns = Annotated[
    int | None,
    typer.Option(
        parser=_turns,
        metavar="N|none",
        help="Maximum number of turns per episode; none: as many as the scenario allows.",
        show_default="the run's; else none",
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum length of a turn, in tokens.", show_default="the run's; else 256"),
]
Temperature = Annotated[
    float | None, typer.Option(min=0.0, help="Sampling temperature.", show_default="the run's; else 1.0")
]
System = Annotated[
    str | None,
    typer.Option(
        metavar="card|none|TEXT",
        help="System prompt: the scenario's public description, none, or a text.",
        show_default="the run's; else card",
    ),
]
Variants = Annotated[
    str | None,
    typer.Option(
        "--split",
        parser=_split,
        metavar="train|eval|none",
        help="Variants of a scenario that has some; none: all of them.",
        show_default="the run's held-out ones; else eval",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="Where a policy of this machine samples, such as cuda.", show_default="the run's; else cpu"),
]


def evaluate(
    agent: Agent,
    scenario: Scenarios = None,
    episodes: Episodes = 64,
    max_turns: MaxTurns = None,
    max_tokens: MaxTokens = None,
    model: Annotated[str, typer.Option(help="Name of the model at the endpoint.")] = "default",
    temperature: Temperature = None,
    system: System = None,
    split: Variants = None,
    device: Device = None,
    which: Which = "best",
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the transcripts there, one JSON line per episode.")
    ] = None,
    passes_at: Annotated[
        float, typer.Option(min=0, max=1, help="Reward with which an episode passes, of pass^k.")
    ] = 0.7,
    url: Url = None,
) -> int:
    """Play held-out seeds with a policy and print the mean reward with its standard error, and pass^k.

    A run is played with its own settings, unless you change them. The key of an endpoint is read from OPENAI_API_KEY.
    """
    from learner.evaluation import EvaluationOptions, measure_endpoint, measure_stored
    from learner.transcripts import write

    asked = EvaluationOptions(
        scenarios=tuple(scenario or ()),
        episodes=episodes,
        temperature=temperature,
        max_turns=max_turns,
        max_tokens=max_tokens,
        url=url,
        system=system,
        split=split,
        device=device,
        passes_at=passes_at,
        transcripts=save is not None,
    )
    is_endpoint = agent.startswith(("http://", "https://"))
    found = measure_endpoint(agent, model, asked) if is_endpoint else measure_stored(agent, which, asked)
    if save is not None:
        write(found.transcripts, save)
    _say(found)
    if save is not None:
        typer.echo(f"transcripts: {save}")
    return 0


def _say(found: EvaluationResult) -> None:
    for line in found.played:
        typer.echo(line)
    if not found.rewards:
        raise ValueError(f"none of {found.errored} episodes has a reward; most often: {found.common_error}")
    typer.echo(f"reward {found.mean:.3f} ± {found.standard_error:.3f} ({len(found.rewards)} episodes)")
    if found.pass_k:
        passes = ", ".join(f"pass^{k} {share:.2f}" for k, share in found.pass_k.items())
        typer.echo(f"  {passes}")
    for name, value in found.scores.items():
        typer.echo(f"  {name:32} {value:.3f}")
    if found.errored:
        typer.echo(f"  errored: {found.errored}, most often {found.common_error}")
