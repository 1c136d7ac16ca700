"""Every curl line and Python block of the docs is run, as it stands, against a real server process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx2
import nbformat
import pytest
from nbclient import NotebookClient

from benchmarks.processes import ROOT, ServerProcess, labs_server
from trainer_client import LabsClient

pytestmark = pytest.mark.slow

FIRST_PAGES = ("README.md", "docs/quickstart.md")
PAGES = (*FIRST_PAGES, "docs/api.md", "docs/doors.md")
OTHER_PAGES = (
    "docs/api.md",
    "docs/doors.md",
    "docs/jobs.md",
    "docs/preferences.md",
    "docs/webhooks.md",
    "docs/agents.md",
)
"""Each of their blocks is a program of its own, which takes a second or more."""
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / page).read_text())
    return [text for kind, text in found if kind == language]


def run_python(block: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "block.py"
    script.write_text(block.replace("//127.0.0.1:8321", url.removeprefix("http:")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_URL": url}
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = labs_server(tmp_path_factory.mktemp("docs"))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def episode(server: ServerProcess) -> str:
    body = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
    answer = httpx2.post(f"{server.url}/api/v1/episodes", json=body, timeout=30)
    return str(answer.raise_for_status().json()["episode_id"])


@pytest.mark.slow
def test_the_page_of_the_client_runs_as_one_program(server: ServerProcess, tmp_path: Path) -> None:
    done = run_python("\n".join(blocks("docs/client.md", "python")), server.url, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_the_curl_lines_answer(page: str, server: ServerProcess, episode: str) -> None:
    lines = [block for block in blocks(page, "sh") if "curl -s" in block and "$KEY" not in block]
    assert lines
    for line in lines:
        command = line.replace("http://127.0.0.1:8321", server.url)
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, env={**os.environ, "EPISODE": episode}, timeout=60, check=True
        )
        answer = json.loads(done.stdout)
        assert "request_id" in answer, answer


@pytest.mark.parametrize("page", [*FIRST_PAGES, *(pytest.param(page, marks=pytest.mark.slow) for page in OTHER_PAGES)])
def test_the_python_blocks_run(page: str, server: ServerProcess, tmp_path: Path) -> None:
    for block in blocks(page, "python"):
        done = run_python(block, server.url, tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_lines_of_the_jobs_page_submit_a_job_that_scores_the_example_file(server: ServerProcess) -> None:
    [lines] = [block for block in blocks("docs/jobs.md", "sh") if block.startswith("FILE=")]
    command = lines.replace("http://127.0.0.1:8321", server.url)
    done = subprocess.run(["sh", "-c", command], capture_output=True, cwd=ROOT, timeout=60, check=True)
    job = json.loads(done.stdout)["job_id"]
    with LabsClient(server.url) as client:
        client.jobs.wait(job)
        rewards = [result.reward for result in client.jobs.results(job)]
    assert len(rewards) == 10
    assert None not in rewards


def answered(kind: str, shown: str, page: str = "docs/api.md") -> list[tuple[str, str]]:
    """Blocks of a page with the block after them, where that one shows what they give."""
    found = FENCED.findall((ROOT / page).read_text())
    return [(text, after) for (first, text), (second, after) in pairwise(found) if (first, second) == (kind, shown)]


def test_answers_that_are_shown_are_what_is_given(server: ServerProcess) -> None:
    examples = answered("sh", "json")
    assert len(examples) == 2
    for line, shown in examples:
        command = line.replace("http://127.0.0.1:8321", server.url)
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=True)
        answer, wanted = json.loads(done.stdout), json.loads(shown)
        assert {name: answer[name] for name in wanted} == wanted


@pytest.mark.slow
def test_the_page_of_training_runs_shows_what_is_given_and_its_program_trains(
    server: ServerProcess, tmp_path: Path
) -> None:
    page, started = "docs/training-runs.md", []
    for line, shown in answered("sh", "json", page):
        command = line.replace("http://127.0.0.1:8321", server.url)
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=True)
        answer, wanted = json.loads(done.stdout), json.loads(shown)
        assert {name: answer[name] for name in wanted} == wanted
        started += [answer["training_run_id"]] if "training_run_id" in answer else []
    with LabsClient(server.url) as client:
        for run in started:
            client.training_runs.stop(run)  # the next one shall not wait for it
    [block] = blocks(page, "python")
    done = run_python(block, server.url, tmp_path)
    assert done.returncode == 0, done.stderr
    first, *records = done.stdout.splitlines()
    assert first.startswith("complete 2 ")
    assert [line.split()[:2] for line in records] == [["eval", "0"], ["train", "1"], ["train", "2"], ["eval", "2"]]
    assert len(started) == 1


def test_the_quickstart_gives_the_answers_that_it_shows(server: ServerProcess) -> None:
    """Its commands one after the other, as somebody types them who follows the page."""
    page, environment, gates = "docs/quickstart.md", dict(os.environ), []
    shown = {line: json.loads(answer) for line, answer in answered("sh", "json", page) if "$KEY" not in line}
    for line in (block for block in blocks(page, "sh") if "curl -s" in block and "$KEY" not in block):
        command = line.replace("http://127.0.0.1:8321", server.url)
        done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment, timeout=60, check=True)
        answer, wanted = json.loads(done.stdout), shown.pop(line, {})
        assert {name: answer[name] for name in wanted} == wanted
        environment["EPISODE"] = answer.get("episode_id", environment.get("EPISODE", ""))
        gates += wanted.get("capped_by", [])
    assert (shown, gates) == ({}, ["only_asks"])


def only_asking() -> str:
    """The command of the quickstart that the gate for agents that only ask limits."""
    answers = answered("sh", "json", "docs/quickstart.md")
    return next(line for line, answer in answers if "/evaluate " in line and "only_asks" in answer)


def test_a_key_with_full_scores_reads_why_as_the_quickstart_says(tmp_path: Path) -> None:
    own = labs_server(tmp_path)
    own.start()
    try:
        [make] = [block.strip() for block in blocks("docs/quickstart.md", "sh") if "keys create" in block]
        [(read, shown)] = [each for each in answered("sh", "json", "docs/quickstart.md") if "$KEY" in each[0]]
        program = f"{sys.executable} -c 'from reward_server.cli.start import start; start()'"
        make = make.replace("./labs", program).replace("--full-scores", f"--full-scores --data '{tmp_path / 'data'}'")
        id_of = f"{sys.executable} -c 'import json, sys; print(json.load(sys.stdin)[\"evaluation_id\"])'"
        script = f"EVALUATION=$({only_asking().strip()} | {id_of})\n{make}\n{read}"
        script = script.replace("http://127.0.0.1:8321", own.url)
        done = subprocess.run(["sh", "-c", script], capture_output=True, cwd=ROOT, timeout=120, check=True)
    finally:
        own.stop()
    answer, wanted = json.loads(done.stdout), json.loads(shown)
    assert {name: answer[name] for name in wanted} == wanted


def test_a_sympathetic_sentence_lifts_the_gate_as_the_quickstart_says(server: ServerProcess) -> None:
    page = (ROOT / "docs/quickstart.md").read_text()
    block = only_asking()
    kind = "I am sorry about the trouble. Did you notice any smoke or sparks?"
    assert f'`"{kind}"` the reward is 0.2689' in page.replace("\n", " ")
    body = json.loads(block.split("-d '")[1].rsplit("'", 1)[0])
    body["messages"][-1]["content"] = kind
    answer = httpx2.post(f"{server.url}/api/v1/evaluate", json=body, timeout=30).json()
    assert (answer["reward"], "capped_by" in answer) == (0.2689, False)


@pytest.mark.parametrize("page", ["docs/api.md", "docs/quickstart.md"])
def test_what_a_python_block_is_said_to_print_is_what_it_prints(
    server: ServerProcess, tmp_path: Path, page: str
) -> None:
    [(block, shown)] = answered("python", "text", page)
    assert run_python(block, server.url, tmp_path).stdout == shown


def test_the_script_of_the_readme_prints_one_reward_eight_times(server: ServerProcess, tmp_path: Path) -> None:
    [block] = blocks("README.md", "python")
    printed = run_python(block, server.url, tmp_path).stdout.splitlines()
    assert len(printed) == 8
    assert f"It prints `{printed[0]}` eight times." in (ROOT / "README.md").read_text()
    assert len(set(printed)) == 1


@pytest.mark.parametrize(
    ("page", "scenario"), [("README.md", "tired-and-dizzy"), ("docs/quickstart.md", "vpn-that-drops")]
)
def test_the_scripts_end_with_one_line_when_nothing_could_be_played(
    server: ServerProcess, tmp_path: Path, page: str, scenario: str
) -> None:
    [block] = blocks(page, "python")
    done = run_python(block.replace(scenario, "no-such-thing"), server.url, tmp_path)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("There is no such scenario in this collection. [scenario_not_found, HTTP 404")
    assert server.url.removeprefix("http://") in line


def test_what_the_api_page_says_of_turns_without_words_and_content_that_is_no_text(
    server: ServerProcess, episode: str
) -> None:
    turns = f"{server.url}/api/v1/episodes/{episode}/turns"
    counted = httpx2.post(turns, json={"messages": [{"role": "user", "content": ""}]}, timeout=30)
    assert (counted.status_code, counted.json()["turn"], counted.json()["reward"]) == (200, 1, 0.0)
    picture = [{"type": "image_url", "image_url": {"url": "x"}}]
    for content, said in ((None, "Is required: text"), (picture, "Must be text, or a list of text parts")):
        refused = httpx2.post(turns, json={"messages": [{"role": "user", "content": content}]}, timeout=30)
        assert refused.status_code == 400
        assert refused.json()["data"]["errors"][0]["msg"].startswith(said)


@pytest.mark.slow
def test_the_example_that_fills_the_store_fills_it(server: ServerProcess) -> None:
    script = ROOT / "examples" / "play_into_store.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_URL": server.url}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=120)  # noqa: PLW1510
    assert done.stdout == "40 conversations are scored and kept, 0 failed\n", done.stderr
    *played, scored = done.stderr.splitlines()
    assert played[0] == "playing 8 conversations of customer-support/leaking-blender"
    assert (len(played), scored) == (5, "scoring 40 conversations")


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_without_its_question_the_agents_turn_earns_nothing(page: str, server: ServerProcess) -> None:
    """As both pages say of their example."""
    block = next(block for block in blocks(page, "sh") if "/evaluate" in block)
    body = json.loads(block.split("-d '")[1].rsplit("'", 1)[0])
    evaluate = f"{server.url}/api/v1/evaluate"
    assert httpx2.post(evaluate, json=body, timeout=30).json()["reward"] > 0.0
    agent = body["messages"][1]
    agent["content"] = agent["content"].split(". ")[0] + "."
    assert f'"{agent["content"]}"' in (ROOT / page).read_text().replace("`", "")
    assert httpx2.post(evaluate, json=body, timeout=30).json()["reward"] == 0.0
    del body["messages"][1]
    assert httpx2.post(evaluate, json=body, timeout=30).status_code == 400


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_an_episodes_transcript_is_evaluated_with_the_agents_role(page: str, server: ServerProcess) -> None:
    """As both pages say; with the roles as they are in `/evaluate` the persona would be taken for the agent."""
    assert '"agent_role": "user"' in (ROOT / page).read_text()
    where = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
    api = f"{server.url}/api/v1"
    # In some variants of the scenario the persona's lines earn as much as these words do.
    drawn = {**where, "config": {"seed": 7}}
    episode = httpx2.post(f"{api}/episodes", json=drawn, timeout=30).json()["episode_id"]
    said = {"role": "user", "content": "I am sorry about the mess. Is there a batch code on the base?"}
    reward = httpx2.post(f"{api}/episodes/{episode}/turns", json={"messages": [said]}, timeout=30).json()["reward"]
    assert reward > 0.0
    transcript = httpx2.delete(f"{api}/episodes/{episode}", timeout=30).json()["messages"]
    body = {**where, "messages": transcript}
    assert httpx2.post(f"{api}/evaluate", json={**body, "agent_role": "user"}, timeout=30).json()["reward"] == reward
    assert httpx2.post(f"{api}/evaluate", json=body, timeout=30).json().get("reward") != reward


def test_a_server_without_keys_looks_at_none(server: ServerProcess) -> None:
    answer = httpx2.get(f"{server.url}/api/v1/catalog", headers={"Authorization": "Bearer lab_wrong"}, timeout=30)
    assert answer.status_code == 200


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(
    path: Path, server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABS_URL", server.url)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
    if path.stem == "play_and_score":
        text = "".join(output.get("text", "") for output in shown)
        inside, scored = re.findall(r"in the episode: (\S+) +scored afterwards: (\S+)", text)[0]
        assert inside == scored != "0.0"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
