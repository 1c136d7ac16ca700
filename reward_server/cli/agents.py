"""`labs agents` and `labs leaderboard`: policies behind endpoints, evaluated by a server and compared."""

from __future__ import annotations

from typing import Annotated

import typer

from reward_server.cli.jobs import Url, connected, follow
from reward_server.errors import InvalidRequest

app = typer.Typer(help="Evaluate policies behind OpenAI-compatible endpoints.", no_args_is_help=True)

AgentArgument = Annotated[str, typer.Argument(help="The agent's id.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the agent on the leaderboard.")],
    base_url: Annotated[str, typer.Argument(help="URL of the endpoint, without /chat/completions.")],
    model: Annotated[str, typer.Argument(help="Name of the model at the endpoint.")],
    api_key: Annotated[
        str | None, typer.Option(envvar="LABS_AGENT_API_KEY", help="Key of the endpoint.", show_envvar=False)
    ] = None,
    system_prompt: Annotated[
        str | None, typer.Option(help="System prompt instead of the scenario's name and description; empty for none.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Temperature, sent with every request.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Maximum number of tokens for a turn.")] = None,
    url: Url = None,
) -> None:
    """Add an agent; prints its id. Its key is read from LABS_AGENT_API_KEY."""
    with connected(url) as client:
        agent = client.agents.add(
            name,
            base_url,
            model,
            api_key=api_key,
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
        )
        typer.echo(agent.agent_id)


@app.command("list")
def list_agents(url: Url = None) -> None:
    """List the agents, one per line, newest first."""
    with connected(url) as client:
        for agent in client.agents.list(limit=100):
            typer.echo(f"{agent.agent_id}  {agent.kind}  {agent.name}")


@app.command()
def evaluate(
    agent_id: AgentArgument,
    collection: Annotated[str, typer.Argument(help="Collection to play.")],
    scenario: Annotated[str | None, typer.Option(help="Only this scenario of the collection.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=256, help="Number of seeds, starting at 0.")] = 8,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    url: Url = None,
) -> None:
    """Play an agent against every scenario with every seed; prints the id of the job."""
    with connected(url) as client:
        job = client.agents.evaluate(agent_id, collection, scenario, seeds=range(seeds))
        typer.echo(job.job_id)
        if wait:
            follow(client, job.job_id)


@app.command()
def change(
    agent_id: AgentArgument,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Another endpoint; its key is removed unless one is given.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model of the endpoint.")] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="LABS_AGENT_API_KEY", help="Another key.", show_envvar=False)
    ] = None,
    url: Url = None,
) -> None:
    """Change an agent; what it played before stays on the leaderboard."""
    named = {"name": name, "base_url": base_url, "model": model, "api_key": api_key}
    changes = {field: value for field, value in named.items() if value is not None}
    if not changes:
        raise InvalidRequest("say what to change, such as --model")
    with connected(url) as client:
        client.agents.change(agent_id, changes)


@app.command()
def delete(agent_id: AgentArgument, url: Url = None) -> None:
    """Delete an agent with its key and its row on the leaderboard."""
    with connected(url) as client:
        client.agents.delete(agent_id)


def leaderboard(
    collection: Annotated[str, typer.Argument(help="Collection.")],
    scenario: Annotated[str | None, typer.Option(help="Only this scenario of the collection.")] = None,
    version: Annotated[
        str | None, typer.Option(help="Scoring version, sv_…  \\[default: the present one]", show_default=False)
    ] = None,
    passes_at: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Reward with which a seed passes.  \\[default: 0.7]", show_default=False),
    ] = None,
    url: Url = None,
) -> None:
    """Show the lab's agents by mean reward, with 95 % intervals and pass^k, under one scoring version."""
    with connected(url) as client:
        board = client.agents.leaderboard(collection, scenario, scoring_version=version, passes_at=passes_at)
    typer.echo(f"{board.collection_slug}, {len(board.scenarios)} scenarios, {board.scoring_version}")
    for row in board.data:
        place = "-" if row.rank is None else str(row.rank)
        interval = "no interval" if row.interval is None else f"{row.interval.low:.3f} to {row.interval.high:.3f}"
        played = f"{len(row.scenarios)} scenarios, {row.episodes} episodes"
        passes = ", ".join(f"pass^{k} {share:.2f}" for k, share in row.pass_k.items())
        typer.echo(f"{place:>3}  {row.mean:.3f}  {interval}  {row.name}  ({row.agent_id}; {played}; {passes})")
    if not board.data:
        typer.echo("no agent has episodes under this scoring version; ./labs agents evaluate plays some")
    for other, episodes in (board.other_versions or {}).items():
        typer.echo(f"{episodes} episodes under {other}: ./labs leaderboard {collection} --version {other}")
