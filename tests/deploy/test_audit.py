"""`./labs audit` on a small checkout, with a service on loopback that speaks OSV's API."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PINS = "Some_Package==1.0\nother==2.0; python_version >= '3.11'\n"
ADVISORIES = {
    "GHSA-aaaa": {
        "id": "GHSA-aaaa",
        "aliases": ["CVE-2030-1"],
        "summary": "Reads too much.",
        "affected": [
            {
                "package": {"name": "some-package", "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
            }
        ],
    },
    "PYSEC-1": {"id": "PYSEC-1", "aliases": ["GHSA-aaaa", "CVE-2030-1"], "details": "Reads too much.\nMore words."},
    "PYSEC-2": {"id": "PYSEC-2", "withdrawn": "2030-01-01T00:00:00Z", "summary": "Was none."},
}
FOUND = "some-package 1.0: GHSA-aaaa (CVE-2030-1, PYSEC-1) Reads too much.; fixed in 1.1"
COUNTS = "labs: 1 known vulnerabilities count in 2 pinned packages"


class Osv(ThreadingHTTPServer):
    """Has these advisories of these packages; answers one id a page, or what it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.known: dict[tuple[str, str], list[str]] = {}
        self.asked: list[dict[str, Any]] = []
        self.instead: tuple[int, bytes] | None = None
        self.advisories_fail = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def result(self, query: dict[str, Any]) -> dict[str, Any]:
        assert query["package"]["ecosystem"] == "PyPI"
        ids = self.known.get((query["package"]["name"], query["version"]), [])
        page = int(query.get("page_token", 0))
        further = {"next_page_token": str(page + 1)} if page + 1 < len(ids) else {}
        return {"vulns": [{"id": ids[page]}], **further} if ids else {}


class Handler(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        assert self.path == "/v1/querybatch"
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.server.asked += queries
        self._answer(*self.server.instead or (200, json.dumps({"results": list(map(self.server.result, queries))})))

    def do_GET(self) -> None:
        told = ADVISORIES[self.path.removeprefix("/v1/vulns/")]
        self._answer(500 if self.server.advisories_fail else 200, json.dumps(told))

    def _answer(self, status: int, body: str | bytes) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def osv() -> Iterator[Osv]:
    with Osv() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Audited(NamedTuple):
    code: int
    lines: list[str]
    error: str


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("labs", "deploy/bootstrap.py", "deploy/audit.py", "constraints/accepted.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "constraints" / "constraints.txt").write_text(PINS)
    (tmp_path / "constraints" / "accepted.toml").write_text("")
    return tmp_path


def audit(checkout: Path, url: str) -> Audited:
    command = [str(checkout / "labs"), "audit", "--service", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Audited(done.returncode, done.stdout.splitlines(), done.stderr)


def accept(checkout: Path, id_: str, until: str) -> None:
    entry = f'[[accepted]]\nid = "{id_}"\nreason = "Labs never calls it."\nuntil = {until}\n'
    (checkout / "constraints" / "accepted.toml").write_text(entry)


def test_pins_without_a_known_vulnerability_pass(checkout: Path, osv: Osv) -> None:
    assert audit(checkout, osv.url) == (0, ["labs: no known vulnerabilities count in 2 pinned packages"], "")
    asked = [(each["package"]["name"], each["version"]) for each in osv.asked]
    assert asked == [("some-package", "1.0"), ("other", "2.0")]


def test_a_vulnerability_fails_and_is_told_once_with_all_its_names(checkout: Path, osv: Osv) -> None:
    osv.known["some-package", "1.0"] = ["GHSA-aaaa", "PYSEC-1", "PYSEC-2"]
    done = audit(checkout, osv.url)
    assert (done.code, done.lines) == (1, [FOUND, COUNTS])
    assert "constraints/accepted.toml" in done.error


@pytest.mark.parametrize("name", ["GHSA-aaaa", "PYSEC-1", "CVE-2030-1"])
def test_an_accepted_one_passes_by_any_of_its_names(name: str, checkout: Path, osv: Osv) -> None:
    osv.known["some-package", "1.0"] = ["GHSA-aaaa", "PYSEC-1"]
    accept(checkout, name, "2999-12-31")
    done = audit(checkout, osv.url)
    assert done.code == 0
    assert done.lines[0] == f"{FOUND} [accepted until 2999-12-31: Labs never calls it.]"


def test_an_acceptance_ends(checkout: Path, osv: Osv) -> None:
    osv.known["some-package", "1.0"] = ["GHSA-aaaa", "PYSEC-1"]
    accept(checkout, "GHSA-aaaa", "2020-01-01")
    done = audit(checkout, osv.url)
    assert (done.code, done.lines) == (1, [f"{FOUND} [accepted until 2020-01-01, which has passed]", COUNTS])


def test_an_acceptance_that_is_not_needed_any_more_is_named(checkout: Path, osv: Osv) -> None:
    accept(checkout, "GHSA-aaaa", "2999-12-31")
    done = audit(checkout, osv.url)
    assert done.code == 0
    assert done.lines[0] == "GHSA-aaaa: accepted, but not found; remove the entry"


def test_a_vulnerability_whose_text_cannot_be_had_still_fails(checkout: Path, osv: Osv) -> None:
    osv.known["other", "2.0"] = ["PYSEC-1"]
    osv.advisories_fail = True
    done = audit(checkout, osv.url)
    assert (done.code, done.lines) == (1, ["other 2.0: PYSEC-1", COUNTS])


@pytest.mark.parametrize(
    ("instead", "why"),
    [
        ((503, b"{}"), "it answers 503"),
        ((200, b"<html>Please log in</html>"), "its answer is not JSON"),
        ((200, b"[]"), "its answer has an unknown form"),
        ((200, b'{"results": [{}]}'), "its answer has not one result for each package"),
        ((200, b'{"results": [{}, {"vulns": [{}]}]}'), "its answer has an unknown form"),
        ((200, b'{"results": [{}, {"next_page_token": "again"}]}'), "its answer has not one result for each package"),
    ],
)
def test_without_a_usable_answer_nothing_fails_and_nothing_is_called_clean(
    instead: tuple[int, bytes], why: str, checkout: Path, osv: Osv
) -> None:
    osv.instead = instead
    told = f"labs: dependencies NOT audited: {osv.url} cannot be asked ({why})"
    assert audit(checkout, osv.url) == (0, [told], "")


def test_a_service_that_is_not_there_fails_nothing(checkout: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: refuses, and no other process gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        lines = audit(checkout, url).lines
    assert lines == [f"labs: dependencies NOT audited: {url} cannot be asked (Connection refused)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[accepted]]\nid = "GHSA-aaaa"\nreason = "x"', "entry 1: expected"),
        ('[[accepted]]\nid = "GHSA-aaaa"\nreason = " "\nuntil = 2999-01-01', "entry 1: expected"),
        ('[[accepted]]\nid = "GHSA-aaaa"\nreason = "x"\nuntil = "2999-01-01"', "entry 1: expected"),
        ('[[excepted]]\nid = "GHSA-aaaa"', "may hold only entries"),
        ("[[accepted", "not valid TOML"),
    ],
)
def test_an_incomplete_acceptance_is_one_line(text: str, why: str, checkout: Path, osv: Osv) -> None:
    (checkout / "constraints" / "accepted.toml").write_text(text)
    done = audit(checkout, osv.url)
    assert (done.code, done.lines) == (1, [])
    assert done.error.startswith("labs: accepted.toml")
    assert why in done.error
    assert done.error.count("\n") == 1


def test_a_pin_that_nobody_could_look_up_is_refused(checkout: Path, osv: Osv) -> None:
    (checkout / "constraints" / "constraints.txt").write_text("fine==1\nloose>=2\n")
    assert audit(checkout, osv.url) == (1, [], "labs: constraints.txt, line 2: expected NAME==VERSION\n")


def test_every_pin_of_this_checkout_is_asked_about(osv: Osv) -> None:
    assert audit(ROOT, osv.url).code == 0
    assert {each["package"]["name"] for each in osv.asked} >= {"torch", "fastapi", "anyio"}
    assert len(osv.asked) > 100


def test_ci_audits() -> None:
    assert "./labs audit" in (ROOT / ".ci" / "run").read_text().splitlines()
