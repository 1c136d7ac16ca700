"""The client of OpenAI's SDK as every adapter opens it: no retries of its own, no redirects, bounded error bodies."""

from __future__ import annotations

import openai

from reward_server.llm.transport import bound_error_body, silence

DEFAULT_URL = "https://api.openai.com/v1"


def openai_client(api_key: str, base_url: str | None) -> openai.AsyncOpenAI:
    """A client of the server at that URL; default: OpenAI's own.

    The URL is always given, so that no variable of the environment decides where transcripts go.
    """
    silence("openai")
    return openai.AsyncOpenAI(
        api_key=api_key,
        base_url=base_url or DEFAULT_URL,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            event_hooks={"response": [bound_error_body]}, follow_redirects=False
        ),
    )
