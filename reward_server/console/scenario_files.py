"""Scenario files on disk, as whoever runs a server without keys edits them: those below the folder that is served.

Only files that are there already are written, but for those of labelled turns, and never the packaged ones.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reward_server.console.drafts import FILE
from reward_server.console.visit import Visit
from reward_server.errors import CollectionNotFound, Conflict, InvalidRequest, NotFound
from scenarios.library import load_sound
from scenarios.lint import COLLECTIONS
from scenarios.own import SLUG
from scenarios.yamlfile import FileFinding

CHANGED = "The file on disk is another one by now. Your text is below: compare it with the file, then save again."


@dataclass(frozen=True, slots=True)
class ScenarioFolder:
    """A folder of collections that may be written."""

    root: Path

    async def collections(self) -> list[str]:
        """Its collections by name."""
        return await asyncio.to_thread(self._collections)

    async def files(self, collection: str) -> dict[str, str]:
        """The files of a collection.

        Raises:
            CollectionNotFound: there is none of that name.
        """
        return await asyncio.to_thread(self._files, collection)

    async def findings(self, collection: str, files: dict[str, str]) -> list[FileFinding]:
        """What is wrong with files as they would be."""
        return await asyncio.to_thread(_findings, collection, files)

    async def save(self, collection: str, name: str, text: str, *, was: str) -> None:
        """Write a file; all of it or nothing.

        Raises:
            NotFound: there is no such file.
            Conflict: it does not hold any more what it did when it was opened.
        """
        await asyncio.to_thread(self._save, collection, name, text, was)

    async def append(self, collection: str, name: str, line: str) -> None:
        """Put a line at the end of a file of the collection, which begins with it if it is not there."""
        await asyncio.to_thread(self._append, collection, name, line)

    def _collections(self) -> list[str]:
        return [each.name for each in sorted(self.root.iterdir()) if self._place(each.name) is not None]

    def _files(self, collection: str) -> dict[str, str]:
        place = self._place(collection)
        if place is None:
            raise CollectionNotFound
        return {
            each.name: _read(each) for each in sorted(place.iterdir()) if FILE.fullmatch(each.name) and _is_plain(each)
        }

    def _save(self, collection: str, name: str, text: str, was: str) -> None:
        files = self._files(collection)
        if name not in files:
            raise NotFound("There is no such file. Files that are there already can be written, no new ones.")
        if files[name] != was:
            raise Conflict(CHANGED)
        write(self.root / collection / name, text)

    def _append(self, collection: str, name: str, line: str) -> None:
        files, path = self._files(collection), self.root / collection / name
        if name not in files and os.path.lexists(path):
            raise NotFound("A link is in the place of the file, and links are not followed.")
        text = files.get(name, "")
        with path.open("a", encoding="utf-8") as stream:
            stream.write(("" if not text or text.endswith("\n") else "\n") + line + "\n")

    def _place(self, collection: str) -> Path | None:
        """The folder of a collection; a link leads elsewhere, and counts for nothing."""
        place = self.root / collection
        is_one = SLUG.fullmatch(collection) and not place.is_symlink() and place.is_dir() and any(place.glob("*.y*ml"))
        return place if is_one else None


def folder_of(visit: Visit) -> ScenarioFolder | None:
    """The folder that this visitor may write; None for whoever has a key, and where the packaged one is served."""
    root = visit.services.settings.scenarios
    if not visit.is_open or root is None:
        return None
    real = root.resolve()
    return None if real.is_relative_to(COLLECTIONS.resolve()) else ScenarioFolder(real)


def write(path: Path, text: str) -> None:
    """Put a text in the place of a file, at once."""
    mode = path.stat().st_mode
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", dir=path.parent, delete=False) as new:
        new.write(text)
        new.flush()
        os.fsync(new.fileno())
    Path(new.name).chmod(mode)
    Path(new.name).replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path.name} is not UTF-8: save it as UTF-8 with another editor first.") from None


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _findings(collection: str, files: dict[str, str]) -> list[FileFinding]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / collection
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return load_sound(Path(place), [collection])[1]
