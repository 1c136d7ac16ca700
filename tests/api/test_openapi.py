"""The OpenAPI document: committed, complete, without 422, and true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reward_server.api.openapi import build, render
from reward_server.server.app import create_app
from reward_server.settings import Settings

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"
Json = dict[str, Any]
BY_PATH = ("/activate", "/deactivate", "/cancel", "/stop", "/resume", "/retry", "/test", "/resend")
BY_HEADER = ("/create_session", "/ping", "/delete", "/delete_session")
"""Calls that are told all they need by their path, or by a header."""


@pytest.fixture(scope="module")
def document() -> Json:
    return build(create_app(Settings()))


def operations(document: Json) -> list[tuple[str, Json]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_committed_document_is_that_of_the_code(document: Json) -> None:
    """If not: python -m reward_server.server.openapi_document > docs/openapi.json"""
    assert COMMITTED.read_text() == render(document)


def test_it_is_openapi_3_1(document: Json) -> None:
    assert document["openapi"].startswith("3.1")
    assert len(operations(document)) >= 30


def test_every_reference_leads_somewhere(document: Json) -> None:
    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [ref for value in node.values() for ref in references(value)]
        return [ref for value in node for ref in references(value)] if isinstance(node, list) else []

    for ref in references(document):
        place: Any = document
        for part in ref.removeprefix("#/").split("/"):
            place = place[part]


def test_there_is_no_422(document: Json) -> None:
    assert not [name for name, operation in operations(document) if "422" in operation["responses"]]
    assert "ValidationError" not in json.dumps(document)


def test_errors_are_in_the_envelope(document: Json) -> None:
    for response in document["components"]["responses"].values():
        schema = response["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorEnvelope"}


def test_every_api_call_needs_the_key_and_says_so(document: Json) -> None:
    for name, operation in operations(document):
        if "/api/v1" in name:
            assert all(list(each) == ["ApiKey"] for each in operation["security"])
            assert operation["security"]
            assert {"401", "429", "500", "503"} <= set(operation["responses"])
    assert document["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"


def test_bodies_have_schemas_and_their_errors(document: Json) -> None:
    for name, operation in operations(document):
        if name.startswith("post") and not name.endswith((*BY_PATH, *BY_HEADER)):
            assert operation["requestBody"]["required"]
            assert {"400", "413"} <= set(operation["responses"])


def test_examples_fit_their_schemas(document: Json) -> None:
    def check(content: Json) -> None:
        described, *streamed = content.values()
        assert not streamed or list(content) == ["application/json", "text/event-stream"]
        if "$ref" not in described["schema"]:  # a file
            return
        schema = {"$ref": described["schema"]["$ref"], "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(described["example"])

    for name, operation in operations(document):
        if "requestBody" in operation:
            check(operation["requestBody"]["content"])
        if "/api/v1" in name:
            check(operation["responses"]["200"]["content"])


def test_only_z_of_a_window_may_be_null_in_a_response(document: Json) -> None:
    nullable = []
    for name, schema in document["components"]["schemas"].items():
        if name.endswith(("Response", "Summary", "List", "Definition", "Success", "Error", "Data", "Detail", "Window")):
            nullable += [
                f"{name}.{field}"
                for field, described in schema.get("properties", {}).items()
                if {"type": "null"} in described.get("anyOf", [])
            ]
    assert nullable == ["Window.z"]
