"""The learner stands alone: it builds and installs beside the client, without the server, for any recent torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import learner
import trainer_client

pytestmark = pytest.mark.slow

SOURCES = tuple(Path(str(package.__file__)).parent for package in (learner, trainer_client))
GPU_IMAGE_TORCH = "2.11.0"
SERVER = {"reward_server", "personas", "scenarios", "migrations"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Copies: building writes beside the source.
    folder = tmp_path_factory.mktemp("alone")
    sources = [folder / source.name for source in SOURCES]
    for original, source in zip(SOURCES, sources, strict=True):
        shutil.copytree(original, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site"), *map(str, sources)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def alone(site: Path, code: str) -> str:
    """What a program says that finds the installed learner, and nothing of the repository."""
    refuse = f"sys.modules.update(dict.fromkeys({sorted(SERVER)!r}))"
    program = f"import sys; sys.path.insert(0, {str(site)!r}); {refuse}; {code}"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_and_every_file_of_it_is_installed(site: Path) -> None:
    for source in SOURCES[:1]:
        wanted = {path.relative_to(source) for path in source.rglob("*") if path.suffix in (".py", ".toml", ".json")}
        wanted = {path for path in wanted if path.name != "pyproject.toml" and "build" not in path.parts}
        found = {path.relative_to(site / source.name) for path in (site / source.name).rglob("*")}
        assert wanted <= found


def test_its_commands_run_without_the_server(site: Path) -> None:
    assert str(site) in alone(site, "import learner; print(learner.__file__)")
    assert "dapo" in alone(site, "from learner.cli import main; main(['presets'])")
    said = alone(
        site, "from learner.cli import main; main(['train', 'demo', '--dry-run', '--url', 'http://127.0.0.1:9'])"
    )
    assert "about" in said
    assert "does not answer" in said


def test_it_takes_the_torch_that_images_for_gpus_have() -> None:
    project = tomllib.loads((SOURCES[0] / "pyproject.toml").read_text())["project"]
    needed = {Requirement(line).name: Requirement(line) for line in project["dependencies"]}
    assert GPU_IMAGE_TORCH in needed["torch"].specifier
    assert "labs-reward-server" not in needed


def test_what_it_needs_is_what_the_whole_needs() -> None:
    """One range for one library, but for torch, which the server pins: its rewards depend on it."""
    whole = tomllib.loads((SOURCES[0].parent / "pyproject.toml").read_text())["project"]
    extras = [line for lines in whole["optional-dependencies"].values() for line in lines]
    ranges = {Requirement(line).name: Requirement(line).specifier for line in [*whole["dependencies"], *extras]}
    project = tomllib.loads((SOURCES[0] / "pyproject.toml").read_text())["project"]
    more = [line for lines in project["optional-dependencies"].values() for line in lines]
    for line in [*project["dependencies"], *more]:
        requirement = Requirement(line)
        if requirement.name not in ("labs-trainer-client", "torch"):
            assert requirement.specifier == ranges[requirement.name], line
