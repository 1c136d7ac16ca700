"""An OpenAPI fuzzer against the document this server gives out.

`LABS_FUZZ_EXAMPLES=200 pytest tests/contract/test_fuzzed.py` looks longer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.contract.documented import document
from tests.contract.house import House
from tests.contract.test_over_a_socket import listening

EXAMPLES = os.environ.get("LABS_FUZZ_EXAMPLES", "5")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"

SETTINGS = """
[[operations]]
include-name = "POST /api/v1/agents/{agent_id}/chat"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502"]
"""
"""The endpoint of an agent that the fuzzer made up cannot be reached."""


@pytest.mark.slow
async def test_a_fuzzer_finds_no_server_error_and_nothing_undocumented(house: House) -> None:
    key = await house.key()
    house.end_development_mode()
    (house.settings.data / "schemathesis.toml").write_text(SETTINGS)
    async with listening(house) as port:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{port}/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", "--checks", CHECKS, "--max-examples", EXAMPLES),
            *("--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color"),
            cwd=house.settings.data,  # it leaves files behind
            env={**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(Path(__file__).parent)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]
    operations = sum(len(path) for path in document()["paths"].values())
    assert f"{operations}/{operations}" in output.decode()
    assert "request_failed" not in house.logs.getvalue()
