"""Examples for the OpenAPI document, made up: nothing in them comes from a scenario."""

from __future__ import annotations

from typing import Any

Example = dict[str, Any]

_REQUEST_ID = "req_k3vmqz5x7yd2w4tnb6rj8fh2"
_EPISODE_ID = "ep_a7d2m5qkz4wxv6tn3bjr8fhy"
_SCORING_VERSION = "sv_0123456789ab"
_SCORES = {"D1_InformationGathering": 0.5, "D2_GoalProgress": 0.25}
_METADATA = {"scenario_name": "An example", "evaluation_time_ms": 12.4, "judge": "embedded"}
_MESSAGES = [
    {"role": "user", "content": "Good morning."},
    {"role": "assistant", "content": "Good morning. What brings you here today?"},
]
_WHERE = {"collection_slug": "example-collection", "scenario_slug": "example-scenario"}


def _without_id(example: Example) -> Example:
    """As a part of a larger answer."""
    return {name: value for name, value in example.items() if name != "request_id"}


SCENARIO_SUMMARY: Example = {
    "slug": "example-scenario",
    "name": "An example",
    "description": "What the agent is told about the situation.",
    "dimensions": list(_SCORES),
    "max_turns": 12,
    "tools": 1,
}
COLLECTION_SUMMARY: Example = {
    "slug": "example-collection",
    "name": "Examples",
    "description": "A collection of examples.",
    "version": "1.0.0",
    "scenarios": [SCENARIO_SUMMARY],
}
CATALOG: Example = {"collections": [COLLECTION_SUMMARY], "request_id": _REQUEST_ID}
COLLECTION: Example = {**COLLECTION_SUMMARY, "request_id": _REQUEST_ID}
_TOOL = {
    "id": "next_step",
    "type": "decision",
    "name": "Next step",
    "mode": "options",
    "options": ["wait", "act"],
    "input_schema": {
        "type": "object",
        "properties": {"value": {"enum": ["wait", "act"]}},
        "required": ["value"],
        "additionalProperties": False,
    },
}
SCENARIO: Example = {
    **SCENARIO_SUMMARY,
    "personas": ["plainspoken"],
    "tool_definitions": [_TOOL],
    "request_id": _REQUEST_ID,
}

CREATE_REQUEST: Example = {**_WHERE, "config": {"seed": 7, "metadata": {"run": "first"}}}
CREATE_RESPONSE: Example = {
    "episode_id": _EPISODE_ID,
    "initial_observation": {"role": "assistant", "content": "Good morning."},
    "scenario": {"name": SCENARIO["name"], "description": SCENARIO["description"]},
    "tools": [_TOOL],
    "max_turns": 12,
    "scoring_version": _SCORING_VERSION,
    "expires_at": "2026-01-02T09:00:00.000Z",
    "request_id": _REQUEST_ID,
}
TURN_REQUEST: Example = {
    "messages": [
        {"role": "assistant", "content": "Good morning."},
        {"role": "user", "content": "Good morning. What brings you here today?"},
    ]
}
TURN_RESPONSE: Example = {
    "turn": 1,
    "observation": {"role": "assistant", "content": "It is a long story."},
    "reward": 0.375,
    "reward_delta": 0.375,
    "scores": _SCORES,
    "scoring_version": _SCORING_VERSION,
    "turns_left": 11,
    "episode_complete": False,
    "request_id": _REQUEST_ID,
}
BATCH_EPISODES_REQUEST: Example = {**_WHERE, "config": {"seed": 7}, "count": 1}
BATCH_EPISODES_RESPONSE: Example = {"episodes": [_without_id(CREATE_RESPONSE)], "request_id": _REQUEST_ID}
BATCH_TURNS_REQUEST: Example = {"items": [{"episode_id": _EPISODE_ID, **TURN_REQUEST}]}
BATCH_TURNS_RESPONSE: Example = {
    "results": [
        {"episode_id": _EPISODE_ID, "status": "success", **_without_id(TURN_RESPONSE)},
        {
            "episode_id": "ep_b7d2m5qkz4wxv6tn3bjr8fhy",
            "status": "error",
            "message": "There is no such episode, or it has expired.",
            "code": "episode_not_found",
        },
    ],
    "request_id": _REQUEST_ID,
}
EPISODE: Example = {
    "episode_id": _EPISODE_ID,
    **_WHERE,
    "status": "active",
    "turn": 1,
    "max_turns": 12,
    "persona_slug": "plainspoken",
    "seed": 7,
    "messages": [
        {"role": "assistant", "content": "Good morning."},
        {"role": "user", "content": "Good morning. What brings you here today?"},
        {"role": "assistant", "content": "It is a long story."},
    ],
    "rewards": [0.375],
    "scoring_version": _SCORING_VERSION,
    "metadata": {"run": "first"},
    "created_at": "2026-01-01T09:00:00.000Z",
    "expires_at": "2026-01-02T09:00:00.000Z",
    "request_id": _REQUEST_ID,
}
EPISODE_LIST: Example = {
    "data": [{key: value for key, value in EPISODE.items() if key != "request_id"}],
    "next_cursor": "q1cZ0d3pJ0mS2mWmZp5n",
    "request_id": _REQUEST_ID,
}

EVALUATE_REQUEST: Example = {
    **_WHERE,
    "messages": _MESSAGES,
    "normalization_key": "run-1",
    "normalization_windows": ["7d", "100n"],
}
_EVALUATION: Example = {
    "evaluation_id": "ev_m5qkz4wxv6tn3bjr8fhya7d2",
    "reward": 0.375,
    "scores": _SCORES,
    "scoring_version": _SCORING_VERSION,
    "normalized": {
        "7d": {"z": 0.5, "mean": 0.3, "std": 0.15, "n": 40},
        "100n": {"z": 0.25, "mean": 0.3, "std": 0.3, "n": 12},
    },
    "metadata": _METADATA,
}
EVALUATE_RESPONSE: Example = {**_EVALUATION, "request_id": _REQUEST_ID}
STORED_EVALUATION: Example = {
    **_WHERE,
    "source": "evaluate",
    "created_at": "2026-01-01T09:00:00.000Z",
    **EVALUATE_RESPONSE,
}
BATCH_REQUEST: Example = {"items": [{"id": "first", **_WHERE, "messages": _MESSAGES}]}
BATCH_RESPONSE: Example = {
    "results": [
        {"id": "first", "status": "success", **_EVALUATION},
        {
            "id": "second",
            "status": "error",
            "message": "There is no such scenario in this collection.",
            "code": "scenario_not_found",
        },
    ],
    "scoring_version": _SCORING_VERSION,
    "total_time_ms": 20.1,
    "request_id": _REQUEST_ID,
}
COMPARE_REQUEST: Example = {
    **_WHERE,
    "response_a": {"messages": _MESSAGES},
    "response_b": {"messages": [{"role": "assistant", "content": "Next, please."}]},
}
COMPARE_RESPONSE: Example = {
    "comparison_id": "cmp_z4wxv6tn3bjr8fhya7d2m5qk",
    "winner": "a",
    "reward_a": 0.375,
    "reward_b": 0.05,
    "margin": 0.325,
    "scores_a": _SCORES,
    "scores_b": {"D1_InformationGathering": 0.1, "D2_GoalProgress": 0.0},
    "scoring_version": _SCORING_VERSION,
    "request_id": _REQUEST_ID,
}
FILE: Example = {
    "file_id": "file_k3vmqz5x7yd2w4tnb6rj8fh2",
    "name": "run-1.jsonl",
    "size_bytes": 48213,
    "lines": 120,
    "sha256": "0" * 64,
    "created_at": "2026-01-01T09:00:00.000Z",
    "request_id": _REQUEST_ID,
}
FILE_LIST: Example = {"data": [_without_id(FILE)], "request_id": _REQUEST_ID}
JOB_REQUEST: Example = {"type": "evaluate", "file_id": FILE["file_id"], **_WHERE}
JOB: Example = {
    "job_id": "job_k3vmqz5x7yd2w4tnb6rj8fh2",
    "type": "evaluate",
    "status": "running",
    "file_id": FILE["file_id"],
    "counts": {"total": 120, "done": 47, "failed": 1, "dead": 0, "remaining": 72},
    "progress": 0.4,
    "created_at": "2026-01-01T09:00:00.000Z",
    "started_at": "2026-01-01T09:00:01.000Z",
    "eta_s": 12.5,
    "request_id": _REQUEST_ID,
}
JOB_LIST: Example = {"data": [_without_id(JOB)], "request_id": _REQUEST_ID}
JOB_REPORT: Example = {
    "job_id": JOB["job_id"],
    "type": "evaluate",
    "items": 120,
    "errors": {"scenario_not_found": 1},
    "mean": 0.41,
    "std": 0.12,
    "min": 0.05,
    "max": 0.9,
    "request_id": _REQUEST_ID,
}
JOB_RESULT: Example = {"index": 0, "status": "success", "id": "0", **_EVALUATION}
_CALIBRATION: Example = {
    "id": "cal_0123456789ab",
    "method": "isotonic",
    "uses_labels": True,
    "n": 640,
    "scoring_version": _SCORING_VERSION,
    "data_hash": "0" * 64,
    "range": [0.0, 1.0],
    "rewards": [
        {
            "name": "reward",
            "ece_before": {"value": 0.15, "low": 0.127, "high": 0.173},
            "ece_after": {"value": 0.021, "low": 0.004, "high": 0.042},
        }
    ],
    "created_at": "2026-01-01T12:00:00Z",
}
CALIBRATION: Example = {**_CALIBRATION, "request_id": _REQUEST_ID}
CALIBRATIONS: Example = {"data": [_CALIBRATION], "calibrations": [_CALIBRATION], "request_id": _REQUEST_ID}
_REWARD_MODEL: Example = {
    "id": "rm_0123456789ab",
    "active": True,
    "created_at": "2026-01-01T12:00:00Z",
    "data_hash": "0" * 64,
    "labelled": 640,
    "pairs": 0,
    "heads": ["score"],
    "encoder_version": "minilm-l6-v2/0123456789ab/1",
    "held_out": {"score": {"n": 128, "spearman": {"value": 0.61, "low": 0.48, "high": 0.72}}},
}
REWARD_MODELS: Example = {"data": [_REWARD_MODEL], "reward_models": [_REWARD_MODEL], "request_id": _REQUEST_ID}
REWARD_MODEL: Example = {**_REWARD_MODEL, "request_id": _REQUEST_ID}
RANK_REQUEST: Example = {
    **_WHERE,
    "responses": [
        {"id": "first", "messages": _MESSAGES},
        {"id": "second", "messages": [{"role": "assistant", "content": "Next, please."}]},
    ],
}
RANK_RESPONSE: Example = {
    "results": [{"id": "first", "score": 0.375, "rank": 1}, {"id": "second", "score": 0.05, "rank": 2}],
    "relative": True,
    "scoring_version": _SCORING_VERSION,
    "metadata": {"scenario_name": "An example", "evaluation_time_ms": 18.2, "judge": "local"},
    "request_id": _REQUEST_ID,
}

_LAB: Example = {
    "lab_id": "acme",
    "name": "Acme Research",
    "limits": {"characters_per_day": 500_000_000, "concurrency": 32, "retention_days": 90},
    "created_at": "2026-11-21T09:30:00.000Z",
}
CREATE_LAB: Example = {name: value for name, value in _LAB.items() if name != "created_at"}
LAB: Example = {**_LAB, "request_id": _REQUEST_ID}
LABS: Example = {"data": [_LAB], "request_id": _REQUEST_ID}
DELETED_DATA: Example = {
    "lab_id": "acme",
    "deleted": {"episode": 12, "evaluation": 340},
    "request_id": _REQUEST_ID,
}
CREATE_KEY: Example = {"lab_id": "acme", "name": "learner", "scopes": ["train"], "plan": "standard"}
_KEY: Example = {
    "key_id": "k3vmqz5x7yd2w4tn",
    **CREATE_KEY,
    "full_scores": False,
    "created_at": "2026-11-21T09:30:00.000Z",
}
KEYS: Example = {"data": [_KEY], "request_id": _REQUEST_ID}
NEW_KEY: Example = {**_KEY, "key": "lab_k3vmqz5x7yd2w4tn_…", "request_id": _REQUEST_ID}
REVOKED_KEY: Example = {**_KEY, "revoked_at": "2026-11-22T08:00:00.000Z", "request_id": _REQUEST_ID}
AUDIT: Example = {
    "data": [
        {
            "id": "aud_k3vmqz5x7yd2w4tnb6rj8fh2",
            "at": "2026-11-21T09:30:00.000Z",
            "lab_id": "mine",
            "actor": "b6rj8fh2k3vmqz5x",
            "address": "192.0.2.7",
            "action": "key.created",
            "target": "k3vmqz5x7yd2w4tn of acme for train",
        }
    ],
    "request_id": _REQUEST_ID,
}
USAGE: Example = {
    "lab_id": "acme",
    "limits": _LAB["limits"],
    "data": [
        {
            "day": "2026-11-21",
            "requests": 912,
            "turns": 768,
            "evaluations": 340,
            "characters": 1_204_331,
            "llm_calls": 0,
            "llm_tokens": 0,
            "llm_usd": 0.0,
        }
    ],
    "request_id": _REQUEST_ID,
}
PREFERENCE_REQUEST: Example = {
    "comparison_id": "cmp_z4wxv6tn3bjr8fhya7d2m5qk",
    "winner": "a",
    "labeller": "rater-7",
    "note": "A asks what happened before it advises.",
}
_PREFERENCE: Example = {
    "id": "pref_k3vmqz5x7yd2w4tnb6rjafh2",
    "source": "label",
    "collection_slug": "clinical-intake",
    "scenario_slug": "tired-and-dizzy",
    "winner": "a",
    "labeller": "rater-7",
    "note": "A asks what happened before it advises.",
    "comparison_id": "cmp_z4wxv6tn3bjr8fhya7d2m5qk",
    "reward_a": 0.375,
    "reward_b": 0.05,
    "scoring_version": _SCORING_VERSION,
    "agent_role": "assistant",
    "response_a": {"messages": _MESSAGES},
    "response_b": {"messages": [{"role": "assistant", "content": "Next, please."}]},
    "created_at": "2026-01-01T12:00:00.000Z",
}
PREFERENCE: Example = {**_PREFERENCE, "request_id": _REQUEST_ID}
PREFERENCES: Example = {"data": [_PREFERENCE], "request_id": _REQUEST_ID}
EXPORTED_PAIR: Example = {
    "prompt": [{"role": "user", "content": "I am so tired."}],
    "chosen": [{"role": "assistant", "content": "I am sorry to hear that. Since when?"}],
    "rejected": [{"role": "assistant", "content": "Next, please."}],
    "margin": 0.325,
    "provenance": {
        "source": "compare",
        "collection_slug": "clinical-intake",
        "scenario_slug": "tired-and-dizzy",
        "comparison_id": "cmp_z4wxv6tn3bjr8fhya7d2m5qk",
        "judge": "state+rule+local",
        "scoring_version": _SCORING_VERSION,
        "reward_chosen": 0.375,
        "reward_rejected": 0.05,
        "created_at": "2026-01-01T12:00:00.000Z",
    },
}
MANIFEST: Example = {
    "version": "1",
    "format": "trl",
    "until": "2026-01-01T12:00:00.000Z",
    "min_margin": 0.0,
    "pairs": 1,
    "sources": {"compare": 1},
    "scenarios": {"clinical-intake/tired-and-dizzy": 1},
    "scoring_versions": {_SCORING_VERSION: 1},
    "left_out": {"tie": 2},
    "bytes": 640,
    "sha256": "0" * 64,
    "request_id": _REQUEST_ID,
}
CRITERION_LABEL_REQUEST: Example = {
    "conversation_id": _EPISODE_ID,
    "criterion": "D1_Rapport.1",
    "met": True,
    "quote": "I am sorry to hear that.",
    "labeller": "rater-7",
}
_VERDICT: Example = {"dimension": "D1_Rapport", "worth": "earns", "status": "unmet", "value": 0.0, "judge": "local"}
_CRITERION_LABEL: Example = {
    "id": "lbl_k3vmqz5x7yd2w4tnb6rjafh2",
    "collection_slug": "clinical-intake",
    "scenario_slug": "tired-and-dizzy",
    **CRITERION_LABEL_REQUEST,
    **_VERDICT,
    "reward": 0.375,
    "scoring_version": _SCORING_VERSION,
    "created_at": "2026-01-01T12:00:00.000Z",
}
CRITERION_LABEL: Example = {**_CRITERION_LABEL, "request_id": _REQUEST_ID}
CRITERION_LABELS: Example = {"data": [_CRITERION_LABEL], "request_id": _REQUEST_ID}
CRITERIA: Example = {
    "conversation_id": _EPISODE_ID,
    "reward": 0.375,
    "scoring_version": _SCORING_VERSION,
    "data": [{"criterion": "D1_Rapport.1", **_VERDICT, "quotes": []}],
    "request_id": _REQUEST_ID,
}
CALIBRATION_ROW: Example = {
    "reward": 0.375,
    "label": 1,
    "group": _EPISODE_ID,
    "scoring_version": _SCORING_VERSION,
    "criterion": "D1_Rapport.1",
    "status": "unmet",
    "value": 0.0,
    "met": True,
    "quote": "I am sorry to hear that.",
    "labeller": "rater-7",
}
WEBHOOK_REQUEST: Example = {"url": "https://lab.example/labs-events", "events": ["evaluation_batch.finished"]}
_WEBHOOK: Example = {
    "webhook_id": "wh_k3vmqz5x7yd2w4tnb6rjafh2",
    "url": "https://lab.example/labs-events",
    "events": ["evaluation_batch.finished"],
    "created_at": "2026-01-01T12:00:00.000Z",
}
WEBHOOK: Example = {**_WEBHOOK, "request_id": _REQUEST_ID}
NEW_WEBHOOK: Example = {**WEBHOOK, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
WEBHOOKS: Example = {"data": [_WEBHOOK], "request_id": _REQUEST_ID}
_DELIVERY: Example = {
    "message_id": "msg_z4wxv6tn3bjr2fhya7d2m5qk",
    "webhook_id": "wh_k3vmqz5x7yd2w4tnb6rjafh2",
    "event": "evaluation_batch.finished",
    "state": "pending",
    "attempts": 1,
    "next_attempt_at": "2026-01-01T12:00:05.000Z",
    "last_status": 503,
    "created_at": "2026-01-01T12:00:00.000Z",
}
DELIVERY: Example = {**_DELIVERY, "request_id": _REQUEST_ID}
DELIVERIES: Example = {"data": [_DELIVERY], "request_id": _REQUEST_ID}
_AGENT_ID = "agent_k3vmqz5x7yd2w4tnb6rjafh2"
AGENT_REQUEST: Example = {
    "name": "Qwen3 8B, step 400",
    "base_url": "https://vllm.lab.example/v1",
    "model": "qwen3-8b-step-400",
    "temperature": 0.7,
    "max_tokens": 256,
}
_AGENT: Example = {
    "agent_id": _AGENT_ID,
    "kind": "endpoint",
    "has_api_key": False,
    **AGENT_REQUEST,
    "created_at": "2026-01-01T12:00:00.000Z",
}
AGENT: Example = {**_AGENT, "request_id": _REQUEST_ID}
AGENTS: Example = {"data": [_AGENT], "request_id": _REQUEST_ID}
AGENT_CHAT_REQUEST: Example = {"messages": [{"role": "user", "content": "Hello, I feel tired all the time."}], **_WHERE}
AGENT_CHAT: Example = {
    "agent_id": _AGENT_ID,
    "message": {"role": "assistant", "content": "That sounds hard. Since when do you feel so?"},
    "usage": {"input_tokens": 120, "output_tokens": 14},
    "request_id": _REQUEST_ID,
}
CHAT_REQUEST: Example = {"model": _AGENT_ID, "messages": AGENT_CHAT_REQUEST["messages"], "temperature": 0.7}
CHAT: Example = {
    "id": f"chatcmpl-{_REQUEST_ID}",
    "object": "chat.completion",
    "created": 1767268800,
    "model": _AGENT_ID,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "That sounds hard. Since when do you feel so?"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 120, "completion_tokens": 14, "total_tokens": 134},
    "request_id": _REQUEST_ID,
}
TRAINING_RUN_REQUEST: Example = {
    "name": "first try",
    "config": {
        "server": {"collection": "example-collection", "scenario": "example-scenario"},
        "run": {"updates": 60},
        "optim": {"learning_rate": 0.001},
    },
}
_TRAINING_RUN: Example = {
    "training_run_id": "run_k3vmqz5x7yd2w4tnb6rj8fh2",
    "status": "running",
    "step": 12,
    "steps": 60,
    "reward": 0.31,
    "held_out_reward": 0.29,
    **TRAINING_RUN_REQUEST,
    "created_at": "2026-01-01T12:00:00.000Z",
    "started_at": "2026-01-01T12:00:01.000Z",
}
_TRAINING_METRICS = [{"kind": "train", "step": 12, "reward/mean": 0.31, "seconds/update": 1.2}]
TRAINING_RUN: Example = {**_TRAINING_RUN, "request_id": _REQUEST_ID}
TRAINING_RUNS: Example = {"data": [_TRAINING_RUN], "request_id": _REQUEST_ID}
TRAINING_METRICS: Example = {"data": _TRAINING_METRICS, "request_id": _REQUEST_ID}
TRAINING_RUN_EVENT: Example = {**_TRAINING_RUN, "metrics": _TRAINING_METRICS}
LEADERBOARD: Example = {
    "collection_slug": _WHERE["collection_slug"],
    "scoring_version": _SCORING_VERSION,
    "scenarios": [_WHERE["scenario_slug"]],
    "confidence": 0.95,
    "passes_at": 0.7,
    "data": [
        {
            "rank": 1,
            "agent_id": _AGENT_ID,
            "name": "Qwen3 8B, step 400",
            "mean": 0.4312,
            "interval": {"low": 0.3921, "high": 0.4703},
            "pass_k": {"1": 0.2188, "2": 0.0524, "4": 0.0021, "8": 0.0},
            "episodes": 32,
            "scenarios": {_WHERE["scenario_slug"]: {"mean": 0.4312, "seeds": 32}},
        }
    ],
    "other_versions": {},
    "request_id": _REQUEST_ID,
}
AGREEMENT: Example = {
    "labels": 120,
    "left_out": 4,
    "scoring_version": _SCORING_VERSION,
    "accuracy": {"value": 0.81, "low": 0.73, "high": 0.88, "n": 120},
    "ties": 0.05,
    "kappa": {"value": 0.58, "low": 0.44, "high": 0.71, "n": 120},
    "alpha": {"value": 0.66, "low": 0.51, "high": 0.79, "n": 40},
    "request_id": _REQUEST_ID,
}

DRIFT: Example = {
    "data": [
        {
            **_WHERE,
            "scoring_version": _SCORING_VERSION,
            "latest": {"n": 100, "mean": 0.61, "std": 0.14},
            "before": {"n": 840, "mean": 0.42, "std": 0.19},
            "drift": 1.0,
        }
    ],
    "request_id": _REQUEST_ID,
}

PUSH_REQUEST: Example = {
    "collection": "repairs",
    "files": {
        "collection.yaml": "schema: labs.collection/1\npublic: {slug: repairs, name: Repairs, description: Repairs., "
        "version: 0.1.0}\n",
        "answers.yaml": "schema: labs.rubric/1\nname: Answers\nsituation: The agent answers tenants.\n"
        "criteria: [{id: asks, check: {regex: {pattern: '\\?'}}}]\n",
    },
}
_OWN: Example = {
    "collection": "repairs@acme",
    "version": 3,
    "status": "passed",
    "digest": "0" * 64,
    "created_at": "2026-01-01T12:00:00.000Z",
}
PUSHED: Example = {**_OWN, "status": "checking", "job_id": JOB["job_id"], "request_id": _REQUEST_ID}
OWN_COLLECTIONS: Example = {"data": [_OWN], "request_id": _REQUEST_ID}
PULLED: Example = {**_OWN, "files": PUSH_REQUEST["files"], "findings": [], "request_id": _REQUEST_ID}
