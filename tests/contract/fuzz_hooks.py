"""What the fuzzer loads: how a body of JSON Lines is written."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/jsonl")
def json_lines(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """One value a line; text as it is."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    rows = value if isinstance(value, list) else [value]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
