"""Makes the synchronous client from the asynchronous one, which is the one to edit.

    .venv/bin/python trainer_client/unasync.py

Every `await` goes and every name gets its synchronous twin; what really differs between the two is in `transport` and
`paging`. A test compares the files with what this makes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = {
    "async_client.py": "client.py",
    "async_jobs.py": "jobs.py",
    "async_training_runs.py": "training_runs.py",
}

_RULES: tuple[tuple[str, str], ...] = (
    (r"The asynchronous client\. Belongs to one event loop;", "The synchronous client. Safe to share between threads;"),
    (r"an `async with` block", "a `with` block"),
    (r"of the asynchronous client", "of the synchronous client"),
    (r"\bAwaitable\[T\]", "T"),
    (r"\bAwaitable, ", ""),
    (r"\bawait ", ""),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\bhttpx2\.AsyncClient\b", "httpx2.Client"),
    (r"\bhttpx2\.AsyncBaseTransport\b", "httpx2.BaseTransport"),
    (r"\bAsync(Wire|Sleep|Caller)\b", r"Sync\1"),
    (
        r"\bAsync(AgentsClient|CallGroup|EpisodeSocket|Iterator|JobsClient|LabsClient|Operator|RawCalls|TrainingRunsClient)\b",
        r"\1",
    ),
    (r"\basync_(jobs|training_runs)\b", r"\1"),
    (r"\basync_socket\b", "sync_socket"),
    # Last: it brings in the name of the source.
    (
        r"(?s)\n`\w+\.py`, (the|for the) synchronous .*?\n\"\"\"",
        '\nMade from `{source}` by `unasync`: edit that one.\n"""',
    ),
)


def synchronous(source: str) -> str:
    """The text of the synchronous twin of one of `FILES`, formatted."""
    text = (HERE / source).read_text()
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement.replace("{source}", source), text)
    # Imports are sorted by name, and names have changed.
    for arguments in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(HERE / FILES[source]), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text


if __name__ == "__main__":
    for name, made in FILES.items():
        (HERE / made).write_text(synchronous(name))
