"""Starts the learner: to check a configuration, to do a run, to answer with its policy.

It never outlives whoever started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from reward_server.errors import FieldProblem, InvalidRequest, LabsError, Unavailable
from reward_server.logs.logger import get_logger
from reward_server.store.records import JsonObject
from reward_server.training.folder import RunFolder, refusal_in

CHECK_S = 50.0
NEEDED = ("learner", "torch", "transformers")
REFUSED = 2
"""The learner's status where it says in a line why it does nothing."""
_PASSED_ON = frozenset(
    ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SSL_CERT_FILE")
)
_FAMILIES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "OMP_", "MKL_", "TORCH_", "PYTORCH_", "HF_HOME")
"""Of the server's environment the learner gets these alone: the rest holds secrets that are none of its business."""
log = get_logger(__name__)


def missing() -> str | None:
    """The package that the learner needs and that is not installed."""
    return next((name for name in NEEDED if find_spec(name) is None), None)


def environment(url: str | None = None, key: str | None = None) -> dict[str, str]:
    """The environment of the learner: where the server is, its key, and how this machine computes."""
    kept = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_FAMILIES)}
    given = {"LABS_URL": url, "LABS_API_KEY": key, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    return kept | {name: value for name, value in given.items() if value is not None}


async def check(config: str) -> JsonObject:
    """Have the learner read a configuration (TOML), and do nothing with it; all settings, with its defaults.

    Raises:
        InvalidRequest: it refuses; the message is its line.
        Unavailable: it did not answer in time.
    """
    with tempfile.TemporaryDirectory(prefix="labs-run-") as folder:
        file = Path(folder) / "run.toml"
        await asyncio.to_thread(file.write_text, config)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "learner", "config", str(file)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        try:
            async with asyncio.timeout(CHECK_S):
                settings, printed = await process.communicate()
        except TimeoutError:
            raise Unavailable("The learner did not check the configuration in time.", retry_after_s=5) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    if process.returncode == 0:
        resolved: JsonObject = json.loads(settings)
        return resolved
    said = refusal_in(printed.decode(errors="replace"), Path(folder))
    if process.returncode != REFUSED or said is None:
        log.error("learner_check_failed", status=process.returncode)
        raise LabsError
    raise InvalidRequest(f"config: {said}", [FieldProblem(("config",), said)])


class Learner:
    """A learner at work, behind its guardian."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, folder: RunFolder, environment: Mapping[str, str]) -> Self:
        """Begin the run in a folder, or go on with it."""
        arguments = ["train", str(folder.config), "--out", str(folder.out)]
        return await cls._begin(folder.place, arguments, environment)

    @classmethod
    async def serve(cls, place: Path, run: RunFolder, environment: Mapping[str, str]) -> Self:
        """Answer chats with the policy of a run on a free port of loopback; `place` gets what it prints."""
        return await cls._begin(place, ["serve", str(run.out), "--port", "0"], environment)

    @classmethod
    async def _begin(cls, place: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Self:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "reward_server.training.guardian", str(place), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
        return cls(process)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    async def ended(self, within_s: float) -> int | None:
        """Its status; None where it goes on for longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                return await self._process.wait()
        return None

    def interrupt(self) -> None:
        """Ctrl-C: the first ends it after the update it is at, with a checkpoint, the second at once."""
        assert self._process.stdin is not None
        with suppress(RuntimeError, ConnectionError):  # it has ended meanwhile
            self._process.stdin.write(b"\n")

    async def end(self) -> None:
        """Leave nothing of it, however it stands."""
        # A guardian that was killed alone leaves its group behind.
        if self._process.returncode is None or self._process.returncode < 0:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
