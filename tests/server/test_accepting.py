"""The limit on open files, in a process of its own: it cannot be raised again once it was lowered for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK = """
import resource, sys
from reward_server.server.accepting import room_for
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(room_for(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "room", "raised"),
    [
        (256, 4096, 2000, 2000, 2200),  # raised to what is wanted
        (256, 1024, 2000, 824, 1024),  # as far as it may be
        (1024, 1024, 500, 500, 1024),  # enough as it is
    ],
)
def test_connections_are_bounded_to_the_files_there_may_be(
    soft: int, hard: int, wanted: int, room: int, raised: int
) -> None:
    command = [sys.executable, "-c", ASK, str(soft), str(hard), str(wanted)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    assert told == f"{room} {raised}"
