"""Settings that were removed: an environment that still has one is told so, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

REMOVED: Mapping[str, str] = {
    "LABS_AGENT_DEADLINE_S": "an agent's endpoint has LABS_REQUEST_DEADLINE_S for a turn",
    "LABS_AGENT_PRIVATE_ADDRESSES": "set LABS_PRIVATE_ADDRESSES",
    "LABS_AGENT_WORKERS": "as many as LABS_JOB_WORKERS",
    "LABS_BATCH_DEADLINE_S": "a batch has five times LABS_REQUEST_DEADLINE_S",
    "LABS_BODY_DEADLINE_S": "a client has 10 s to send a body",
    "LABS_DECISIONS_MOVING": "in production, name a version of the model, such as jev-1.13.0",
    "LABS_ENCODER_PRECISION": "bf16 is used where it is exact and fast, else fp32",
    "LABS_JOB_LEASE_S": "a lease lasts 15 s",
    "LABS_JUDGES_MODEL": "LABS_DECISIONS_MODEL is asked by reader and judges",
    "LABS_LLM_USD_PER_MTOK_IN": "set LABS_LLM_PRICES, such as 3/15",
    "LABS_LLM_USD_PER_MTOK_OUT": "set LABS_LLM_PRICES, such as 3/15",
    "LABS_LOG_FORMAT": "readable on a terminal, JSON elsewhere",
    "LABS_MAX_BODY_MB": "each call has its own limit, 8 MB at most",
    "LABS_MAX_CONNECTIONS": "16 for each of LABS_MAX_CONCURRENCY",
    "LABS_MAX_CONNECTIONS_PER_ADDRESS": "2 for each of LABS_MAX_CONCURRENCY",
    "LABS_MAX_FILE_MB": "a file may have 256 MB",
    "LABS_MAX_STORED_FILES_MB": "a lab may keep 2 GB of files; ./labs tenants limit --storage-mb sets less",
    "LABS_PERSONA_WORDING": "set LABS_PERSONA_VOICE=llm",
    "LABS_READER_MODEL": "LABS_DECISIONS_MODEL is asked by reader and judges",
    "LABS_REDIS_DEADLINE_S": "add it to LABS_REDIS_URL: ?socket_timeout=1&socket_connect_timeout=1",
    "LABS_TRAINING_DEADLINE_S": "an attempt has 6 hours",
    "LABS_TRAINING_WORKERS": "one, where LABS_JOB_WORKERS is not 0",
    "LABS_WEBHOOK_PRIVATE_ADDRESSES": "set LABS_PRIVATE_ADDRESSES",
    "LABS_WEIGHTINGS_PER_DAY": "two",
}
"""What holds instead, or what to do."""


def gone(environ: Mapping[str, str]) -> list[str]:
    """One line for each removed setting that this environment has."""
    return [f"{name} is gone: {REMOVED[name.upper()]}" for name in sorted(environ) if name.upper() in REMOVED]
