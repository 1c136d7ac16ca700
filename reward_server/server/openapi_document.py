"""Writes the OpenAPI document: `python -m reward_server.server.openapi_document > docs/openapi.json`."""

from __future__ import annotations

import sys

from reward_server.api.openapi import build, render
from reward_server.server.app import create_app
from reward_server.settings import Settings

if __name__ == "__main__":
    sys.stdout.write(render(build(create_app(Settings()))))
