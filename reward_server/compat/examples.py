"""Examples of the doors, for the OpenAPI document. Everything here is made up: no scenario of ours is quoted."""

from __future__ import annotations

from typing import Any

Example = dict[str, Any]

_REQUEST_ID = "req_k3vmqz5x7yd2w4tnb6rj8fh2"
_VERSION = "sv_0123456789ab"
_WHERE = {"collection_slug": "front-desk", "scenario_slug": "lost-key"}
_OPENING = {"role": "user", "content": "Good morning. I have lost my key."}
_REPLY = "Good morning. Where did you last have it?"

OPENRLHF_REQUEST: Example = {
    "query": [f"<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n{_REPLY}<|im_end|>"],
    "prompts": ["<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"],
    "labels": [{**_WHERE, "messages": [_OPENING]}],
}
OPENRLHF_RESPONSE: Example = {
    "rewards": [0.375],
    "scores": [0.375],
    "extra_logs": {"D1_InformationGathering": [0.5]},
    "request_id": _REQUEST_ID,
}
SLIME_REQUEST: Example = {"prompt": [_OPENING], "response": _REPLY, "label": "front-desk/lost-key"}
SLIME_RESPONSE: Example = {
    "reward": 0.375,
    "evaluation_id": "ev_m5qkz4wxv6tn3bjr8fhya7d2",
    "scoring_version": _VERSION,
    "request_id": _REQUEST_ID,
}
NEMO_ROW: Example = {**_WHERE, "seed": 7}
NEMO_SEEDED: Example = {"observation": _OPENING["content"], "max_turns": 12, "request_id": _REQUEST_ID}
NEMO_REPLY: Example = {"message": _REPLY}
NEMO_REPLIED: Example = {"observation": "In the park.", "episode_complete": False, "request_id": _REQUEST_ID}
NEMO_ROLLOUT: Example = {
    **_WHERE,
    "responses_create_params": {"input": [_OPENING]},
    "response": {
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _REPLY}]}]
    },
}
NEMO_VERIFIED: Example = {
    **NEMO_ROLLOUT,
    "D1_InformationGathering": 0.5,
    "reward": 0.375,
    "reward_components": {"D1_InformationGathering": 0.5},
    "scoring_version": _VERSION,
    "request_id": _REQUEST_ID,
}
OPENENV_SCHEMA: Example = {
    "action": {"title": "AgentTurn", "type": "object"},
    "observation": {"title": "PersonaLine", "type": "object"},
    "state": {"title": "EpisodeState", "type": "object"},
    "request_id": _REQUEST_ID,
}
OPENENV_METADATA: Example = {
    "name": "labs",
    "description": "Personas to talk to, and rewards by hidden rubrics.",
    "version": "0.1.0",
    "request_id": _REQUEST_ID,
}
OPENENV_RESET: Example = {**_WHERE, "seed": 7}
OPENENV_BEGUN: Example = {
    "observation": {"message": _OPENING["content"]},
    "reward": None,
    "done": False,
    "request_id": _REQUEST_ID,
}
OPENENV_STEP: Example = {"action": {"message": _REPLY}}
OPENENV_STEPPED: Example = {
    "observation": {"message": "In the park."},
    "reward": 0.375,
    "done": True,
    "request_id": _REQUEST_ID,
}
OPENENV_STATE: Example = {
    "episode_id": "ep_k3vmqz5x7yd2w4tnb6rj8fh2",
    "step_count": 1,
    "request_id": _REQUEST_ID,
}
OPENENV_HEALTH: Example = {"status": "healthy", "request_id": _REQUEST_ID}
ORS_OK: Example = {"status": "ok", "request_id": _REQUEST_ID}
ORS_ENVIRONMENTS = ["front-desk", "front-desk/lost-key"]
ORS_SPLITS: list[Example] = [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
ORS_PROMPT: list[Example] = [
    {"type": "text", "text": "You work at the front desk of a hotel."},
    {"type": "text", "text": f"The person says:\n{_OPENING['content']}"},
]
ORS_SPLIT: Example = {"split": "train"}
ORS_INDEX: Example = {"split": "train", "index": 7}
ORS_RANGE: Example = {"split": "train", "start": 7, "stop": 8}
ORS_COUNT: Example = {"num_tasks": 1000, "request_id": _REQUEST_ID}
_TASK: Example = {**_WHERE, "seed": 7}
ORS_ONE_TASK: Example = {"task": _TASK, "env_name": "front-desk", "request_id": _REQUEST_ID}
ORS_SOME_TASKS: Example = {"tasks": [_TASK], "env_name": "front-desk", "request_id": _REQUEST_ID}
ORS_CREATE: Example = {"env_name": "front-desk", "task_spec": _TASK}
ORS_SESSION: Example = {"sid": "sess_k3vmqz5x7yd2w4tnb6rj4fh2", "request_id": _REQUEST_ID}
ORS_TOOLS: Example = {
    "tools": [
        {
            "name": "reply",
            "description": "Say something to the person you talk with. The result is what they answer.",
            "input_schema": {
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            },
        }
    ],
    "terminal_tool": {"name": "finish", "arg": "message", "description": "Say your last message."},
    "request_id": _REQUEST_ID,
}
ORS_CALL: Example = {"name": "reply", "input": {"message": _REPLY}}
ORS_OUTCOME: Example = {
    "ok": True,
    "output": {
        "blocks": [{"type": "text", "text": "In the park."}],
        "metadata": {"episode_id": "ep_k3vmqz5x7yd2w4tnb6rj8fh2", "turn": 1},
        "reward": None,
        "finished": False,
    },
}
CHAT_REQUEST: Example = {
    "model": "persona:front-desk/lost-key",
    "messages": [{"role": "user", "content": _REPLY}],
    "seed": 7,
}
CHAT_RESPONSE: Example = {
    "id": "chatcmpl-req_k3vmqz5x7yd2w4tnb6rj8fh2",
    "object": "chat.completion",
    "created": 1767254400,
    "model": "persona:front-desk/lost-key",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "In the park."}, "finish_reason": "stop"},
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "labs": {"episode_id": "ep_k3vmqz5x7yd2w4tnb6rj8fh2", "turn": 1, "episode_complete": False},
    "request_id": _REQUEST_ID,
}
_MODEL: Example = {"id": "persona:front-desk/lost-key", "object": "model", "created": 0, "owned_by": "labs"}
MODELS: Example = {"object": "list", "data": [_MODEL], "request_id": _REQUEST_ID}
MODEL: Example = {**_MODEL, "request_id": _REQUEST_ID}
_SPOKEN = '[{"role": "user", "content": "I have lost my key."}, {"role": "assistant", "content": "Where?"}]'
_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
_POOL: Example = {"object": "list", "created": 1767254400, "model": "judge:front-desk/lost-key", "usage": _USAGE}
POOLED: Example = {"model": "judge:front-desk/lost-key", "input": _SPOKEN}
CLASSIFIED: Example = {
    **_POOL,
    "id": f"classify-{_REQUEST_ID}",
    "data": [{"index": 0, "label": "reward", "probs": [0.375], "num_classes": 1}],
    "request_id": _REQUEST_ID,
}
EMBEDDED: Example = {
    **_POOL,
    "id": f"embd-{_REQUEST_ID}",
    "data": [{"index": 0, "object": "embedding", "embedding": [0.375]}],
    "request_id": _REQUEST_ID,
}
