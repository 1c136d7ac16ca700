"""Compiled scenarios survive on disk, and nothing on disk can change what a library holds."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scenarios
from reward_server.server import library_key, library_shelf
from reward_server.server.engine import load_scenarios
from reward_server.server.library_shelf import KEPT, LibraryShelf
from scenarios.library import Library, load_library
from scenarios.lint import COLLECTIONS
from scenarios.template import begin
from scenarios.yamlfile import ScenarioFileError

NAME = "my-collection/my-scenario"
Edit = Callable[[Path], object]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a scenario that passes."""
    begin(NAME, tmp_path / "collections")
    return tmp_path / "collections"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "scenarios"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path | None]:
    """The folders that were compiled, in order."""
    found: list[Path | None] = []

    def load(root: Path | None = None) -> Library:
        found.append(root)
        return load_library(root)

    monkeypatch.setattr(library_shelf, "load_library", load)
    return found


def everything_of(library: Library) -> dict[str, Any]:
    """All that it holds, cases field by field, as they are equal to themselves alone."""
    held: dict[str, Any] = {"": (library.catalog, library.digest, library.warnings, library.vault.names())}
    for name in library.vault.names():
        for sealed in library.vault.variants(*name):
            fields = {each.name: getattr(sealed, each.name) for each in dataclasses.fields(sealed)}
            case = {each.name: getattr(sealed.case, each.name) for each in dataclasses.fields(sealed.case)}
            held[f"{sealed.name}/{sealed.variant}"] = {**fields, "case": case}
    return held


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_second_process_compiles_nothing(root: Path, folder: Path, compiled: list[Path | None]) -> None:
    first = LibraryShelf(folder).load(root)
    again = LibraryShelf(folder).load(root)
    assert compiled == [root]
    assert again is not first
    assert everything_of(again) == everything_of(first)
    assert [oct(each.stat().st_mode & 0o777) for each in (folder, *folder.iterdir())] == ["0o700", "0o600"]


@pytest.mark.slow
def test_the_packaged_scenarios_are_the_same_from_the_shelf(folder: Path, compiled: list[Path | None]) -> None:
    fresh = LibraryShelf(folder).load(COLLECTIONS)
    kept = LibraryShelf(folder).load(COLLECTIONS)
    assert compiled == [COLLECTIONS]
    mine, theirs = everything_of(kept), everything_of(fresh)
    assert mine.keys() == theirs.keys()
    assert len(mine) > 90
    for name in mine:
        assert mine[name] == theirs[name], name
    # The order counts, too: it decides between equals.
    assert list(kept.catalog.collections) == list(fresh.catalog.collections)
    orders = [[list(case.by_id), list(case.background), list(case.asides), list(case.told_in)] for case in cases(kept)]
    assert orders == [
        [list(case.by_id), list(case.background), list(case.asides), list(case.told_in)] for case in cases(fresh)
    ]


def cases(library: Library) -> list[Any]:
    return [each.case for name in library.vault.names() for each in library.vault.variants(*name)]


EDITS: dict[str, Edit] = {
    "scenario": lambda root: rewrite(root / f"{NAME}.yaml", "Robin Hale", "Robin Vale"),
    "rubric": lambda root: rewrite(root / f"{NAME}.rubric.yaml", "points: 4", "points: 5"),
    "labelled turns": lambda root: (root / f"{NAME}.turns.jsonl").write_text(""),
    "collection": lambda root: rewrite(root / "my-collection/collection.yaml", "Do you like jazz?", "Is it cold?"),
    "comment": lambda root: rewrite(root / f"{NAME}.yaml", "\n", "\n# A remark.\n"),
    "another scenario": lambda root: begin("my-collection/second", root),
    "another collection": lambda root: begin("other/third", root),
    "a file that goes": lambda root: (root / f"{NAME}.background.yaml").unlink(),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_is_seen_at_once(edit: Edit, root: Path, folder: Path, compiled: list[Path | None]) -> None:
    LibraryShelf(folder).load(root)
    edit(root)
    seen = LibraryShelf(folder).load(root)
    assert compiled == [root, root]
    assert everything_of(seen) == everything_of(load_library(root))


def test_what_is_taken_back_is_known(root: Path, folder: Path, compiled: list[Path | None]) -> None:
    path = root / f"{NAME}.yaml"
    text = path.read_text()
    first = LibraryShelf(folder).load(root)
    rewrite(path, "Robin Hale", "Robin Vale")
    LibraryShelf(folder).load(root)
    path.write_text(text)
    assert LibraryShelf(folder).load(root).digest == first.digest
    assert compiled == [root, root]


def test_other_code_another_python_and_another_library_compile_anew(
    root: Path, folder: Path, compiled: list[Path | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    LibraryShelf(folder).load(root)
    code = tmp_path / "code"
    (code / "case").mkdir(parents=True)
    (code / "case" / "compiled.py").write_text("first = 1\n")
    changes: list[Callable[[], object]] = [
        lambda: monkeypatch.setattr(scenarios, "__file__", str(code / "__init__.py")),
        lambda: (code / "case" / "compiled.py").write_text("second = 2\n"),
        lambda: (code / "background.yaml").write_text("background: []\n"),
        lambda: monkeypatch.setattr(library_key, "version", lambda name: f"{name} of tomorrow"),
        lambda: monkeypatch.setattr(sys, "version_info", (4, 0)),
    ]
    for number, change in enumerate(changes, 2):
        change()
        library_key._code.cache_clear()
        LibraryShelf(folder).load(root)
        LibraryShelf(folder).load(root)
        assert len(compiled) == number
    library_key._code.cache_clear()


class Harm:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def signed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def queued(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def foldered(path: Path) -> None:
    path.unlink()
    path.mkdir()


def elsewhere(path: Path) -> None:
    path.rename(path.parent.parent / "moved")
    path.symlink_to(path.parent.parent / "moved")


DAMAGES: dict[str, Edit] = {
    "empty": lambda path: path.write_bytes(b""),
    "no library": lambda path: path.write_bytes(b"garbage" * 1000),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "one bit": flipped,
    "another object": lambda path: path.write_bytes(signed(pickle.dumps((1, 2)))),
    "no pickle": lambda path: path.write_bytes(signed(b"garbage")),
    "a pickle that does harm": lambda path: path.write_bytes(signed(pickle.dumps(Harm(path.parent / "harm")))),
    "writable for the group": lambda path: path.chmod(0o620),
    "writable for all": lambda path: path.chmod(0o602),
    "in a folder that others write to": lambda path: path.parent.chmod(0o777),
    "a link": elsewhere,
    "a queue": queued,
    "a folder": foldered,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_cannot_be_trusted_is_made_anew(
    damage: Edit, root: Path, folder: Path, compiled: list[Path | None]
) -> None:
    good = everything_of(LibraryShelf(folder).load(root))
    (file,) = folder.iterdir()
    damage(file)
    assert everything_of(LibraryShelf(folder).load(root)) == good
    assert compiled == [root, root]
    assert not (folder / "harm").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_not_read(
    what: str, root: Path, folder: Path, compiled: list[Path | None]
) -> None:
    LibraryShelf(folder).load(root)
    (file,) = folder.iterdir()
    os.chown(file if what == "file" else folder, 12345, 12345)
    LibraryShelf(folder).load(root)
    assert compiled == [root, root]


def test_a_damaged_file_is_replaced(root: Path, folder: Path, compiled: list[Path | None]) -> None:
    LibraryShelf(folder).load(root)
    (file,) = folder.iterdir()
    flipped(file)
    LibraryShelf(folder).load(root)
    LibraryShelf(folder).load(root)
    assert compiled == [root, root]
    assert list(folder.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_is_no_trouble(root: Path, compiled: list[Path | None]) -> None:
    for _ in range(2):
        assert LibraryShelf(Path("/proc/nowhere")).load(root).vault.names()
    assert compiled == [root, root]


def test_a_file_where_the_folder_should_be_is_no_trouble(root: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert LibraryShelf(tmp_path / "cache" / "scenarios").load(root).vault.names()


def test_errors_come_out_as_without_it_and_are_not_kept(root: Path, folder: Path) -> None:
    rewrite(root / f"{NAME}.rubric.yaml", "given: [pads_age]", "given: [nothing_such]")
    with pytest.raises(ScenarioFileError) as without:
        load_library(root)
    for _ in range(2):
        with pytest.raises(ScenarioFileError) as found:
            LibraryShelf(folder).load(root)
        assert found.value.findings == without.value.findings
    assert not folder.exists()
    with pytest.raises(ScenarioFileError, match="no collections"):
        LibraryShelf(folder).load(root / "absent")


def test_warnings_are_kept(root: Path, folder: Path, compiled: list[Path | None]) -> None:
    for points, changed in (("3", "20"), ("6", "1"), ("5", "1")):
        rewrite(root / f"{NAME}.rubric.yaml", f"points: {points}\n", f"points: {changed}\n")
    first, second = (LibraryShelf(folder).load(root) for _ in range(2))
    assert first.warnings
    assert second.warnings == first.warnings
    assert compiled == [root]


def test_an_edit_while_it_was_compiled_is_not_kept(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(root: Path) -> Library:
        library = load_library(root)
        rewrite(root / f"{NAME}.yaml", "Robin Hale", "Robin Vale")
        return library

    monkeypatch.setattr(library_shelf, "load_library", slow)
    LibraryShelf(folder).load(root)
    assert not folder.exists()


def test_old_files_go(root: Path, folder: Path) -> None:
    for number in range(KEPT + 3):
        (root / f"{NAME}.turns.jsonl").write_text("\n" * number)
        LibraryShelf(folder).load(root)
    assert len(list(folder.iterdir())) == KEPT


def test_two_processes_at_once_leave_one_whole_file(root: Path, folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from reward_server.server.library_shelf import LibraryShelf;"
        "print(LibraryShelf(Path(sys.argv[1])).load(Path(sys.argv[2])).digest)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), str(root)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {each.communicate(timeout=120)[0].strip() for each in started}
    assert said == {load_library(root).digest}
    assert len(list(folder.iterdir())) == 1


def test_the_server_and_commands_keep_theirs(root: Path, folder: Path, compiled: list[Path | None]) -> None:
    first, second = (load_scenarios(root, folder) for _ in range(2))
    assert compiled == [root]
    assert everything_of(first) == everything_of(second)
    shutil.rmtree(folder)
    assert load_scenarios(root).digest == first.digest
    assert not folder.exists()
