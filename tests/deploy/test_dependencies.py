"""The audit of what we depend on, as far as it can be made without a network.

Every package that ours and its extras need is there in the version that `constraints.txt` names, fits what asks for it,
and has a licence under which the whole may be passed on. Known vulnerabilities are the business of `./labs audit`,
which asks a service on the internet.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = canonicalize_name(PROJECT["name"])
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", (ROOT / "constraints" / "constraints.txt").read_text(), re.M))
PINNED = {canonicalize_name(name): version for name, version in PINS.items()}
OF_THE_ENVIRONMENT = {"setuptools"}
"""What comes with Python's own tools."""
NOT_INSTALLED = {"learner-gpu"}
"""Extras that `dev` leaves out: a clone has none of what they need, so it cannot be looked at."""
PERMISSIVE = re.compile(
    r"(?:\d-Clause )?(?:MIT|Apache|BSD|0BSD|ISC|MPL|Mozilla|PSF|Python Software Foundation|CNRI-Python|BSL-1|Zlib|CC0"
    r"|Academic Free)"
)


def licences_of(package: Distribution) -> list[str]:
    """The parts of its licence, however it is said."""
    told = package.metadata.get("License-Expression")
    if told is None:
        classes = [each for each in package.metadata.get_all("Classifier") or [] if each.startswith("License")]
        told = " AND ".join(each.rpartition("::")[2].strip() for each in classes if "DFSG" not in each)
        told = told or str(package.metadata.get("License", "")).splitlines()[0]
    return [part.strip("() ") for part in re.split(r" AND | OR | WITH \S+", told) if part.strip("() ")]


def needed() -> dict[str, tuple[Distribution, list[Requirement]]]:
    """Every package that anything of ours leads to, with what asks for it."""
    found: dict[str, tuple[Distribution, list[Requirement]]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    extras = [asked for extra, asked in PROJECT["optional-dependencies"].items() if extra not in NOT_INSTALLED]
    waiting = deque(Requirement(each) for group in (PROJECT["dependencies"], *extras) for each in group)
    while waiting:
        asked = waiting.popleft()
        name = canonicalize_name(asked.name)
        if name == OURS:
            continue
        package, askers = found.setdefault(name, (distribution(name), []))
        askers.append(asked)
        if (name, frozenset(asked.extras)) not in seen:
            seen.add((name, frozenset(asked.extras)))
            further = map(Requirement, package.requires or [])
            waiting += [each for each in further if _applies(each, asked.extras | {""})]
    return found


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


NEEDED = needed()


def test_all_of_it_is_looked_at() -> None:
    assert len(NEEDED) > 100
    assert {"torch", "pydantic", "greenlet", "transformers", "pytest"} <= set(NEEDED)


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_package_is_the_one_that_was_pinned_fits_and_may_be_passed_on(name: str) -> None:
    package, askers = NEEDED[name]
    if name not in OF_THE_ENVIRONMENT:
        assert package.version.partition("+")[0] == PINNED.get(name)
    for asked in askers:
        assert asked.specifier.contains(package.version, prereleases=True), asked
    licences = licences_of(package)
    assert licences
    assert [each for each in licences if not PERMISSIVE.match(each)] == []
