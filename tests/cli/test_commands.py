"""The `labs` command as a user calls it: a process of its own, one line for what is wrong, no traceback."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from benchmarks.processes import ROOT, labs_server
from benchmarks.scripted_provider import NO_LOGPROBS, Say, ScriptedProvider
from tests.cli.warm import IN_A_CHECKOUT, Labs, anew

IN_A_CONTAINER = (str(ROOT / "deploy" / "labs"),)
"""What the image has as /usr/local/bin/labs."""


@pytest.mark.parametrize(
    "command", [[], ["serve"], ["doctor"], ["evaluate"], ["keys"], ["scenarios"], ["keys", "create"]]
)
@pytest.mark.slow
def test_help_is_everywhere(labs: Labs, command: list[str]) -> None:
    done = labs(*command, "--help")
    assert done.returncode == 0
    assert "Usage: ./labs" in done.stdout


def test_version(labs: Labs) -> None:
    assert anew("version").stdout.startswith("labs 0.")
    assert labs("--version").stdout == labs("version").stdout


@pytest.mark.slow
def test_the_commands_of_a_checkout_are_listed_there_alone(labs: Labs) -> None:
    for name in ("learner", "test"):
        assert re.search(rf"│ {name} ", labs("--help").stdout)
        assert not re.search(rf"│ {name} ", anew("--help", program=IN_A_CONTAINER).stdout)


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (["serve", "--prt", "1"], {}, 2, "No such option"),
        (["nonsense"], {}, 2, "No such command"),
        (["serve", "--prt", "1"], {}, 2, "(see ./labs serve --help)"),
        (["serve"], {"LABS_PORT": "many"}, 1, "LABS_PORT"),
        (["serve", "--host", "not an address"], {}, 1, "is not an address"),
        (["keys", "create", "x", "--lab", "a", "--collection", "nope"], {}, 2, "there is no collection"),
        (
            ["keys", "create", "x", "--lab=a", "--collection", "custmer-support"],
            {},
            2,
            "Did you mean customer-support?",
        ),
        (["keys", "create", "x", "--lab", "a", "--plan", "premium", "--rate", "3"], {}, 2, "--plan custom"),
        (["keys", "create", "x", "--lab", ""], {}, 2, "--lab must be at most 64 lower-case letters"),
        (["learner", "--port", "1"], {}, 1, "learner is a command of ./labs in a checkout"),
        (["serve", "--host", "0.0.0.0", "--port", "0"], {}, 1, "labs keys create"),
    ],
)
@pytest.mark.slow
def test_what_is_wrong_is_one_line(
    labs: Labs, arguments: list[str], environment: dict[str, str], code: int, said: str, tmp_path: Path
) -> None:
    done = labs(*arguments, LABS_DATA=str(tmp_path), **environment)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.startswith("labs: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("program", "name"), [(IN_A_CHECKOUT, "./labs"), (IN_A_CONTAINER, "labs")], ids=["checkout", "container"]
)
@pytest.mark.slow
def test_it_calls_itself_what_it_was_called_by(tmp_path: Path, program: tuple[str, ...], name: str) -> None:
    keyless = anew("serve", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path), program=program)
    assert keyless.stderr.endswith(f"create one: {name} keys create NAME --lab LAB\n")
    assert f"(see {name} serve --help)" in anew("serve", "--prt", "1", program=program).stderr
    assert f"Usage: {name} keys" in anew("keys", "--help", program=program).stdout
    begun = anew("scenarios", "new", "own/first", "--dir", str(tmp_path / "own"), program=program)
    assert f"next: {name} scenarios check own/first" in begun.stdout


def test_the_image_starts_the_command_under_its_name() -> None:
    image = (ROOT / "deploy" / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["labs"]' in image
    assert "deploy/labs /usr/local/bin/labs" in image
    assert IN_A_CONTAINER[0].endswith("/labs")


@pytest.mark.slow
def test_a_port_in_use_is_one_line(labs: Labs, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = labs("serve", "--port", str(other.getsockname()[1]), "--data", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("labs: cannot listen on 127.0.0.1:")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_port_that_a_labs_server_has_is_told_with_its_address(labs: Labs, tmp_path: Path) -> None:
    server = labs_server(tmp_path)
    server.start()
    try:
        port = server.url.rpartition(":")[2]
        done = labs("serve", "--port", port, "--data", str(tmp_path / "second"))
        mended = labs("doctor", LABS_PORT=port, LABS_DATA=str(tmp_path / "second")).stdout
    finally:
        server.stop()
    told = f"a Labs server runs at {server.url} already: use that one, or start another with --port and --data"
    assert (done.returncode, done.stderr) == (1, f"labs: {told}\n")
    assert f"Labs is running at {server.url}" in mended


@pytest.mark.slow
def test_a_key_is_printed_once_and_listed_without_its_secret(labs: Labs, tmp_path: Path) -> None:
    made = labs("keys", "create", "ci", "--lab", "acme", "--rate", "5", "--data", str(tmp_path))
    key = made.stdout.strip()
    assert key.startswith("lab_")
    assert "from now on calls without a key are refused" in made.stderr
    assert "the first key" not in labs("keys", "create", "more", "--lab", "acme", "--data", str(tmp_path)).stderr
    listed = labs("keys", "list", "--data", str(tmp_path))
    assert listed.stdout.startswith(f"id={key.split('_')[1]}  ")
    assert key not in listed.stdout + listed.stderr
    assert labs("keys", "revoke", key.split("_")[1], "--data", str(tmp_path)).returncode == 0
    assert labs("keys", "revoke", "unknown", "--data", str(tmp_path)).returncode == 1


@pytest.mark.slow
def test_a_restored_folder_is_named_in_the_command_that_starts_it(labs: Labs, tmp_path: Path) -> None:
    before, after, archive = tmp_path / "before", tmp_path / "after it", tmp_path / "labs.tar.gz"
    labs("keys", "create", "ci", "--lab", "acme", "--data", str(before))
    backed_up = labs("backup", str(archive), "--data", str(before)).stdout
    assert "(episodes, keys, jobs), the pepper and 0 other files (reward models, calibrations); " in backed_up
    restored = labs("restore", str(archive), "--data", str(after))
    assert restored.stdout.endswith(f"labs serve --data '{after}'\n"), restored.stderr
    assert "lab=acme" in labs("keys", "list", "--data", str(after)).stdout


@pytest.mark.slow
def test_labs_are_listed_limited_and_emptied(labs: Labs, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    assert labs("tenants", "list", *data).stderr.startswith("There are no labs")
    assert labs("keys", "create", "ci", "--lab", "acme", *data).returncode == 0
    set_to = labs("tenants", "limit", "acme", "--usd-per-day", "2.5", "--concurrency", "8", *data)
    assert "usd-per-day=2.5" in set_to.stdout
    labs("tenants", "limit", "acme", "--usd-per-day", "0", "--storage-mb", "100", *data)
    listed = labs("tenants", "list", *data).stdout.split("  ")
    assert listed[:3] == ["id=acme", "concurrency=8", "storage-mb=100"]
    assert labs("tenants", "delete-data", "acme", "--yes", *data).stderr == "There was nothing to delete.\n"
    assert labs("tenants", "limit", "nobody", "--concurrency", "8", *data).returncode == 1
    misspelt = labs("tenants", "delete-data", "acne", *data)
    assert misspelt.returncode == 1
    assert misspelt.stderr.endswith("There is no such lab; ./labs tenants list shows all labs. Did you mean acme?\n")


def test_where_no_key_is_it_says_how_to_make_one(labs: Labs, tmp_path: Path) -> None:
    listed = labs("keys", "list", "--data", str(tmp_path))
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr == f"There are no keys; create one: ./labs keys create NAME --lab LAB --data {tmp_path}\n"


@pytest.mark.slow
def test_doctor_finds_everything_in_order(tmp_path: Path) -> None:
    done = anew("doctor", "--data", str(tmp_path), LABS_PORT="0")
    assert done.returncode == 0, done.stdout
    assert "minilm-l6-v2" in done.stdout


@pytest.mark.slow
def test_an_operators_key_is_listed_as_one(labs: Labs, tmp_path: Path) -> None:
    assert labs("keys", "create", "ops", "--lab", "acme", "--operator", "--data", str(tmp_path)).returncode == 0
    assert labs("keys", "create", "ci", "--lab", "acme", "--data", str(tmp_path)).returncode == 0
    listed = labs("keys", "list", "--data", str(tmp_path)).stdout.splitlines()
    assert [("name=ops" in line, "scopes=train,score,export,label,operate" in line.split()) for line in listed] == [
        (True, True),
        (False, False),
    ]


LLM = {"LABS_LLM_PROVIDER": "vllm", "LABS_LLM_MODEL": "some-model", "LABS_LLM_API_KEY": "never-show-this"}


@pytest.mark.slow
def test_doctor_shows_who_is_asked_without_the_key_and_without_asking(labs: Labs, tmp_path: Path) -> None:
    with ScriptedProvider({"ready": True}) as server:
        done = labs("doctor", "--data", str(tmp_path), LABS_PORT="0", LABS_LLM_BASE_URL=server.url, **LLM)
    assert done.returncode == 0, done.stdout
    assert f"vllm/some-model at {server.url}" in done.stdout
    assert "never-show-this" not in done.stdout + done.stderr
    assert server.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        ({"ready": True}, 0, "vllm/some-model answered"),
        (Say(status=401, raw=b"{}"), 1, "LABS_LLM_API_KEY"),
        (Say({"ready": True}, logprobs=NO_LOGPROBS), 1, "LABS_LLM_LOGPROBS=false"),
    ],
)
def test_doctor_asks_when_it_is_told_to(labs: Labs, tmp_path: Path, step: object, code: int, said: str) -> None:
    with ScriptedProvider(step) as server:
        done = labs("doctor", "--ask", "--data", str(tmp_path), LABS_PORT="0", LABS_LLM_BASE_URL=server.url, **LLM)
    assert done.returncode == code, done.stdout
    assert said in done.stdout
    assert "never-show-this" not in done.stdout + done.stderr
    assert len(server.asked) == 1


def test_doctor_says_that_a_key_is_missing(labs: Labs, tmp_path: Path) -> None:
    given = {"LABS_LLM_PROVIDER": "anthropic", "LABS_LLM_MODEL": "some-model", "ANTHROPIC_API_KEY": ""}
    done = labs("doctor", "--data", str(tmp_path), LABS_PORT="0", **given)
    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY" in done.stdout


def test_doctor_says_what_to_do(labs: Labs, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = labs("doctor", "--data", str(tmp_path), LABS_SCENARIOS=str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "no collections here" in done.stdout


@pytest.mark.slow
def test_the_banner_is_printed_when_the_server_answers(tmp_path: Path) -> None:
    server = labs_server(tmp_path, LABS_CACHE=str(tmp_path / "cache"))
    server.start()
    server.stop()
    (tmp_path / "cache" / "anchors").mkdir(parents=True, exist_ok=True)
    server.start()
    server.stop()
    said = (tmp_path / "labs.log").read_text()
    assert said.count("This is the first start") == 1
    assert f"Labs is ready at {server.url}" in said
    assert f"curl -s {server.url}/api/v1/episodes" in said
    assert "Development mode" in said
