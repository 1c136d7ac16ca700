"""The folder of a run: whose it is, and where it goes on."""

from __future__ import annotations

import json
from pathlib import Path

from learner.config import Config, ConfigError
from learner.metric_names import units


def where_it_goes_on(step: int, config: Config, folder: Path) -> str:
    """What to say of a run that is there already."""
    if step < config.run.updates:
        return f"going on from update {step} of {config.run.updates}"
    return (
        f"finished already: {folder} holds a run of {step} updates, and {config.run.updates} are asked for;"
        f" more of them make it go on"
    )


def settle_config(config: Config, folder: Path, *, is_begun: bool) -> None:
    """Write down what was asked for; raises ConfigError where the folder holds a run of another configuration."""
    resolved = config.resolved()
    # Where the server listens and how far to go are not what a policy is made of.
    shape = {
        name: value for name, value in resolved.items() if name not in ("server", "run", "log", "generator", "parallel")
    }
    server = config.server
    shape |= {"stage": [server.collection, server.scenario, *server.scenarios], "seed": config.run.seed}
    if config.optim.schedule != "constant":
        shape["updates"] = config.run.updates
    path = folder / "config.json"
    # Where no checkpoint came of it, nothing hangs on what was asked for: a setting may be mended.
    if is_begun and path.exists() and json.loads(path.read_text()).get("shape") != shape:
        raise ConfigError(f"{folder} holds a run with another configuration; choose another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"resolved": resolved, "shape": shape}, indent=1) + "\n")
    (folder / "units.json").write_text(json.dumps(units(), indent=1) + "\n")
