"""The client stands alone: what it imports, and that it builds and installs without the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trainer_client

SOURCE = Path(trainer_client.__file__).parent
HEAVY = {"fastapi", "starlette", "sqlalchemy", "sqlmodel", "torch", "numpy", "transformers", "yaml"}
OURS = {"reward_server", "personas", "scenarios", "learner", "migrations"}
NEEDED = {
    "trainer_client",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "httpx2",
    "httpcore2",
    "h11",
    "idna",
    "certifi",
    "anyio",
    "sniffio",
}
LOADED = "import json, sys, trainer_client; print(json.dumps([sorted(sys.modules), trainer_client.__file__]))"


def loaded(*options: str, path: Path | None = None) -> tuple[set[str], str]:
    code = LOADED if path is None else f"import sys; sys.path.insert(0, {str(path)!r}); {LOADED}"
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    modules, file = json.loads(done.stdout)
    return {name.partition(".")[0] for name in modules}, file


def test_importing_the_client_loads_nothing_heavy() -> None:
    names, _ = loaded()
    assert names & (HEAVY | OURS) == set()


@pytest.mark.slow
def test_the_client_builds_and_installs_on_its_own(tmp_path: Path) -> None:
    # A copy: building writes beside the source.
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    target = tmp_path / "site"
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    names, file = loaded("-I", path=target)
    assert Path(file).is_relative_to(target)
    assert (target / "trainer_client" / "py.typed").exists()
    # Start-up hooks of the environment this test runs in are not the client's.
    started = {name.partition(".")[0] for name in _modules_at_start()}
    foreign = {name for name in names - started - set(sys.stdlib_module_names) if not name.startswith("_sysconfig")}
    assert foreign <= NEEDED
    metadata = next(target.glob("labs_trainer_client-*.dist-info")) / "METADATA"
    requires = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")]
    requires = [line for line in requires if "extra ==" not in line]
    assert sorted(line.split()[1].partition("<")[0].partition(">")[0] for line in requires) == ["httpx2", "pydantic"]


def _modules_at_start() -> list[str]:
    code = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stdout)
    return modules
