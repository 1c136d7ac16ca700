"""Checks responses against the server's own OpenAPI document: status declared, body of the declared shape."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import httpx2
import jsonschema

from reward_server.api.openapi import build
from reward_server.server.app import create_app
from reward_server.settings import Settings

Json = dict[str, Any]


class Documented:
    """An OpenAPI document that responses are held against."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._paths = [
            (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), operations)
            for path, operations in document["paths"].items()
        ]
        self._validators: dict[str, jsonschema.protocols.Validator] = {}

    def check(self, response: httpx2.Response) -> None:
        """Raise unless the response is one that the document announces; undocumented routes pass."""
        operation = self._operation(response)
        if operation is None or response.status_code == 405:
            return
        declared = operation["responses"].get(str(response.status_code))
        assert declared is not None, f"{response.status_code} is not declared for {response.request.url.path}"
        if "$ref" in declared:
            declared = self._document["components"]["responses"][declared["$ref"].rpartition("/")[2]]
        for name, header in declared["headers"].items():
            if not name.startswith("X-RateLimit") and not header["$ref"].endswith("IfKnown"):
                assert name.lower() in response.headers, name
        media, _, _ = response.headers["content-type"].partition(";")
        assert media in declared["content"]
        content = declared["content"][media]
        if media == "application/json":
            self._validator(content["schema"]["$ref"]).validate(response.json())
        elif media == "application/jsonl" and "$ref" in content["schema"]:
            for line in response.text.splitlines():
                self._validator(content["schema"]["$ref"]).validate(json.loads(line))

    def _operation(self, response: httpx2.Response) -> Json | None:
        method = response.request.method.lower()
        for pattern, operations in self._paths:
            if pattern.fullmatch(response.request.url.path) and method in operations:
                operation: Json = operations[method]
                return operation
        return None

    def _validator(self, ref: str) -> jsonschema.protocols.Validator:
        if ref not in self._validators:
            schema = {"$ref": ref, "components": self._document["components"]}
            self._validators[ref] = jsonschema.Draft202012Validator(schema)
        return self._validators[ref]


@cache
def document() -> Json:
    """The document, which is the same for every app of this version; built once, as it takes a second. Read only."""
    return build(create_app(Settings()))


@cache
def documented() -> Documented:
    return Documented(document())
