"""Begins a new scenario: copies the commented example under its own name, with the files that lie beside it.

The example is a working scenario, so an author starts from something that passes and changes it piece by piece.
Existing files are never overwritten.
"""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

_NAME = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*)/([a-z0-9]+(?:-[a-z0-9]+)*)")


def begin(name: str, root: Path | None = None) -> list[Path]:
    """Write `COLLECTION/SLUG` below `root` (default: the packaged collections); the files written."""
    found = _NAME.fullmatch(name)
    if not found or max(map(len, found.groups())) > 64:
        raise ValueError("the name must be COLLECTION/SLUG in lower-case words joined by `-`")
    collection, scenario = found.groups()
    folder = root or Path(str(files("scenarios"))) / "collections"
    target = folder / collection / f"{scenario}.yaml"
    if target.exists():
        raise ValueError(f"{target} exists already: choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    card = target.parent / "collection.yaml"
    if not card.exists():
        card.write_text(_template("collection.yaml", collection, scenario), encoding="utf-8")
        written.append(card)
    text = _own_topics(_template("scenario.yaml", collection, scenario), card)
    if root is not None:
        command = f"scenarios check {name}"
        text = text.replace(command, f"{command} --dir {shlex.quote(str(root))}", 1)
    target.write_text(text, encoding="utf-8")
    written.append(target)
    for beside in ("rubric.yaml", "agents.yaml", "background.yaml", "turns.jsonl"):
        path = target.with_suffix(f".{beside}")
        path.write_text(_template(beside, collection, scenario), encoding="utf-8")
        written.append(path)
    return written


def begin_rubric(name: str, root: Path | None = None) -> list[Path]:
    """Write a rubric without a persona: `COLLECTION/SLUG` below `root`, or `SLUG` alone into this folder."""
    collection, slash, slug = name.rpartition("/")
    if not _NAME.fullmatch(name if slash else f"alone/{name}") or len(name) > 128:
        raise ValueError("the name must be SLUG or COLLECTION/SLUG in lower-case words joined by `-`")
    folder = Path() if not slash else (root or Path(str(files("scenarios"))) / "collections") / collection
    target = folder / f"{slug}.yaml"
    if target.exists():
        raise ValueError(f"{target} exists already: choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(target, "rubric_only.yaml"), (target.with_suffix(".logs.jsonl"), "rubric_only.logs.jsonl")]
    if slash and not (folder / "collection.yaml").exists():
        parts.insert(0, (folder / "collection.yaml", "rubric_collection.yaml"))
    for path, template in parts:
        path.write_text(_template(template, collection, slug), encoding="utf-8")
    return [path for path, _ in parts]


def _template(file: str, collection: str, scenario: str) -> str:
    text = (files("scenarios.template") / file).read_text(encoding="utf-8")
    title = collection.replace("-", " ").capitalize()
    return text.replace("my-collection", collection).replace("My collection", title).replace("my-scenario", scenario)


def _own_topics(text: str, card: Path) -> str:
    """The example with its shared topic written out, if the collection does not have that topic."""
    if re.search(r"^  since_when:", card.read_text(encoding="utf-8"), re.MULTILINE):
        return text
    shared = (files("scenarios.template") / "collection.yaml").read_text(encoding="utf-8")
    block = shared.split("  since_when:\n", 1)[1].split("\n\n", 1)[0]
    own = "\n".join(f"    {line}" for line in block.splitlines())
    line = next(line for line in text.splitlines() if "topic: since_when" in line)
    return text.replace(line, own)
