"""`./labs audit`: whether a pinned dependency has a known vulnerability. Standard library only.

Asks OSV (https://google.github.io/osv.dev/api/), which collects the advisories of PyPI and GitHub, about every line of
`constraints.txt`. A vulnerability fails the audit unless `accepted.toml` names it with a reason and a last day. If OSV
cannot be asked, one line says so and nothing fails, because a build must not depend on somebody else's service; but
nothing is called clean then. pip-audit is not used: it says "No known vulnerabilities found" also when its service has
not heard of any of the packages.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

PINS = Path(__file__).resolve().parent.parent / "constraints"
SERVICE = "https://api.osv.dev"
TIMEOUT_S = 20.0
MOST_PINS = 1000
"""What one question to OSV may hold."""
MOST_PAGES = 20
FORM = '[[accepted]] with id = "…", reason = "…" and until = 2027-01-31'


class Unanswered(Exception):  # noqa: N818
    """OSV cannot be asked, or answers something else: nothing is known."""


class Pin(NamedTuple):
    """A line of `constraints.txt`."""

    name: str
    version: str


class Acceptance(NamedTuple):
    """An entry of `accepted.toml`: `until` is its last day (UTC)."""

    id: str
    reason: str
    until: date


@dataclass
class Finding:
    """A vulnerability of a pinned package. Databases have names of their own for it; all are in `names`."""

    pin: Pin
    id: str
    names: set[str]
    summary: str = ""
    fixed: list[str] = field(default_factory=list)

    def told(self) -> str:
        """One line for a person."""
        others = sorted(self.names - {self.id})
        known_as = f" ({', '.join(others)})" if others else ""
        fixed = f"; fixed in {', '.join(self.fixed)}" if self.fixed else ""
        return f"{self.pin.name} {self.pin.version}: {self.id}{known_as} {self.summary}".rstrip() + fixed


def pins(text: str) -> list[Pin]:
    """Every line of a file of constraints; a line of another form ends the audit, as nobody would look at it."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        wanted = line.partition("#")[0].strip()
        if not wanted:
            continue
        fits = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)(\s*;.*)?", wanted)
        if fits is None:
            fail(f"constraints.txt, line {number}: expected NAME==VERSION")
        found.append(Pin(_normal(fits[1]), fits[2]))
    return found


def acceptances(text: str) -> list[Acceptance]:
    """The entries of `accepted.toml`; an incomplete one ends the audit."""
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fail(f"accepted.toml is not valid TOML: {error}")
    entries = read.pop("accepted", [])
    if read or not isinstance(entries, list):
        fail(f"accepted.toml may hold only entries of the form {FORM}")
    return [_acceptance(number, each) for number, each in enumerate(entries, 1)]


def _acceptance(number: int, entry: object) -> Acceptance:
    match entry:
        case {"id": str(id_), "reason": str(reason), "until": until, **others} if (
            id_ and reason.strip() and type(until) is date and not others
        ):
            return Acceptance(id_, reason.strip(), until)
    fail(f"accepted.toml, entry {number}: expected {FORM}")


def findings(service: str, asked: list[Pin]) -> list[Finding]:
    """Every known vulnerability of these pins; `Unanswered` if that cannot be known."""
    known = [(pin, id_) for pin, ids in _ids(service, asked).items() for id_ in ids]
    found: list[Finding] = []
    for pin, id_ in known:
        finding = _described(service, pin, id_)
        if finding is None:
            continue
        same = next((each for each in found if each.pin == pin and each.names & finding.names), None)
        if same is None:
            found.append(finding)
        else:
            same.names |= finding.names
            same.fixed = same.fixed or finding.fixed
    return found


def _ids(service: str, asked: list[Pin]) -> dict[Pin, list[str]]:
    """The ids of the advisories that name these pins."""
    found: dict[Pin, list[str]] = {}
    queries = [(pin, {"package": {"name": pin.name, "ecosystem": "PyPI"}, "version": pin.version}) for pin in asked]
    for _ in range(MOST_PAGES):
        batch, queries = queries[:MOST_PINS], queries[MOST_PINS:]
        results = _ask(service, "/v1/querybatch", {"queries": [query for _, query in batch]}).get("results")
        if not isinstance(results, list) or len(results) != len(batch):
            raise Unanswered("its answer has not one result for each package")
        for (pin, query), result in zip(batch, results, strict=True):
            found.setdefault(pin, []).extend(_listed(result))
            if token := (result or {}).get("next_page_token"):
                queries.append((pin, {**query, "page_token": token}))
        if not queries:
            return found
    raise Unanswered("its answer does not end")


def _listed(result: object) -> list[str]:
    """The ids of one result; one without any may be `{}` or null."""
    try:
        return [str(each["id"]) for each in (result or {}).get("vulns", [])]  # type: ignore[attr-defined]
    except (AttributeError, KeyError, TypeError):
        raise Unanswered("its answer has an unknown form") from None


def _described(service: str, pin: Pin, id_: str) -> Finding | None:
    """What an advisory says; None if it was withdrawn. It counts also if its text cannot be had."""
    try:
        advisory = _ask(service, f"/v1/vulns/{quote(id_, safe='')}")
    except Unanswered:
        return Finding(pin, id_, {id_})
    if advisory.get("withdrawn"):
        return None
    summary = str(advisory.get("summary") or advisory.get("details") or "").strip().partition("\n")[0]
    names = {id_, *map(str, advisory.get("aliases") or [])}
    try:
        fixed = _fixed(advisory, pin)
    except (AttributeError, KeyError, TypeError):
        fixed = []
    return Finding(pin, id_, names, summary, fixed)


def _normal(name: str) -> str:
    """The name of a package as the pins have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _fixed(advisory: dict[str, Any], pin: Pin) -> list[str]:
    """The versions of this package without it, in the order of the advisory."""
    fixed: dict[str, None] = {}
    for affected in advisory.get("affected") or []:
        if _normal(affected.get("package", {}).get("name", "")) == pin.name:
            kinds = [each for each in affected.get("ranges") or [] if each.get("type") == "ECOSYSTEM"]
            events = [event for each in kinds for event in each.get("events") or []]
            fixed |= {str(event["fixed"]): None for event in events if "fixed" in event}
    return list(fixed)


def _ask(service: str, path: str, body: object = None) -> dict[str, Any]:
    """The JSON object that it answers with."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(service + path, data, {"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        raise Unanswered(f"it answers {error.code}") from None
    except urllib.error.URLError as error:
        raise Unanswered(getattr(error.reason, "strerror", None) or str(error.reason)) from None
    except (OSError, HTTPException) as error:
        raise Unanswered(str(error) or type(error).__name__) from None
    except ValueError:
        raise Unanswered("its answer is not JSON") from None
    if not isinstance(answer, dict):
        raise Unanswered("its answer has an unknown form")
    return answer


def judged(found: list[Finding], accepted: list[Acceptance], today: date) -> tuple[list[str], int]:
    """A line for each finding and each acceptance that has become needless; and how many findings count."""
    lines, counting = [], 0
    for finding in found:
        acceptance = next((each for each in accepted if each.id in finding.names), None)
        if acceptance is None:
            counting += 1
            lines.append(finding.told())
        elif acceptance.until < today:
            counting += 1
            lines.append(f"{finding.told()} [accepted until {acceptance.until}, which has passed]")
        else:
            lines.append(f"{finding.told()} [accepted until {acceptance.until}: {acceptance.reason}]")
    names = {name for finding in found for name in finding.names}
    lines += [f"{each.id}: accepted, but not found; remove the entry" for each in accepted if each.id not in names]
    return lines, counting


def fail(message: str) -> NoReturn:
    """End with one line on standard error."""
    sys.exit(f"labs: {message}")


def main(arguments: list[str]) -> int:
    """The exit code: 1 if a vulnerability counts."""
    parser = argparse.ArgumentParser("./labs audit", description="Look for known vulnerabilities of pinned packages.")
    parser.add_argument("--service", default=SERVICE, metavar="URL", help="a mirror of OSV (default: %(default)s)")
    service = parser.parse_args(arguments).service.rstrip("/")
    if not re.match(r"https?://[^/]", service):
        parser.error("--service must be a URL with http or https")
    asked = pins((PINS / "constraints.txt").read_text())
    accepted = acceptances((PINS / "accepted.toml").read_text())
    try:
        found = findings(service, asked)
    except Unanswered as error:
        print(f"labs: dependencies NOT audited: {service} cannot be asked ({error})")
        return 0
    lines, counting = judged(found, accepted, datetime.now(UTC).date())
    print("\n".join([*lines, f"labs: {counting or 'no'} known vulnerabilities count in {len(asked)} pinned packages"]))
    if counting:
        print(
            "labs: pin a version without it in constraints/constraints.txt, or accept it in constraints/accepted.toml",
            file=sys.stderr,
        )
    return int(counting > 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
