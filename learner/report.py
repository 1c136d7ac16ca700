"""`report.html`: plots and dialogues of a run in one file that loads nothing from anywhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learner.metric_names import described
from learner.metrics import plot_curve, read_metrics
from learner.plots import panels

Records = Sequence[Mapping[str, Any]]
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } svg { max-width: 100%; height: auto }
pre { white-space: pre-wrap; background: #f6f6f6; padding: .8rem; border-radius: .3rem }
summary { cursor: pointer }
"""


def write_report(folder: Path) -> Path:
    """Draw `curve.png` and write `report.html` into the folder of a run; returns the path of the report."""
    records = read_metrics(folder / "metrics.jsonl")
    config = _config(folder)
    title = _title(config, folder)
    if _is_from_file(config):  # it was trained on no scenario, so none is shown
        config.pop("server")
    plot_curve({"": records}, folder / "curve.png", title)
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        _table(records),
        "<h2>Curves</h2>",
        panels(records),
        _dialogues(folder / "samples"),
        f"<h2>Configuration</h2><details><summary>all values</summary><pre>{html.escape(json.dumps(config, indent=1))}"
        "</pre></details>",
    ]
    path = folder / "report.html"
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
    return path


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    found: dict[str, Any] = json.loads(path.read_text()).get("resolved", {}) if path.exists() else {}
    return found


def _is_from_file(config: Mapping[str, Any]) -> bool:
    return bool(config) and config["algorithm"]["objective"]["kind"] != "reward"


def _title(config: Mapping[str, Any], folder: Path) -> str:
    if not config:
        return folder.name
    server, algorithm = config["server"], config["algorithm"]
    if _is_from_file(config):
        return f"{algorithm['name']} on {config['data']['file']}"
    scenarios = ", ".join(server["scenarios"]) or f"{server['collection']}/{server['scenario']}"
    return f"{scenarios}, {algorithm['name']}"


def _table(records: Records) -> str:
    """First and last evaluation side by side."""
    found = [record for record in records if record["kind"] == "eval"]
    if not found:
        return "<p>No evaluation yet.</p>"
    first, last = found[0], found[-1]
    names = [name for name, value in last.items() if isinstance(value, int | float) and name not in ("step", "kind")]
    rows = "".join(_row(name, first.get(name), last[name]) for name in names)
    return (
        f"<h2>Held-out evaluation, before and after</h2><table><tr><th>figure</th><th>update {first['step']}</th>"
        f"<th>update {last['step']}</th><th>unit</th></tr>{rows}</table>"
    )


def _row(name: str, before: Any, after: Any) -> str:
    """A figure in words; its name in `metrics.jsonl` appears under the pointer."""
    unit, words = described(name)
    return (
        f'<tr><td title="{html.escape(name)}">{html.escape(words)}</td><td class="number">{_shown(before)}</td>'
        f'<td class="number">{_shown(after)}</td><td>{html.escape(unit)}</td></tr>'
    )


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _dialogues(folder: Path) -> str:
    pages = sorted(folder.glob("update-*.txt")) if folder.exists() else []
    if not pages:
        return ""
    shown = "".join(
        f"<details{' open' if page == pages[-1] else ''}><summary>{html.escape(page.stem)}</summary>"
        f"<pre>{html.escape(page.read_text())}</pre></details>"
        for page in pages
    )
    return f"<h2>Dialogues</h2>{shown}"
