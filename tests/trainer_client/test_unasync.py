"""The synchronous client is made from the asynchronous one, and nobody has edited what was made."""

from __future__ import annotations

import inspect

import pytest

from trainer_client import AsyncLabsClient, LabsClient, unasync


@pytest.mark.parametrize("source", list(unasync.FILES))
def test_the_made_file_is_up_to_date(source: str) -> None:
    found = (unasync.HERE / unasync.FILES[source]).read_text()
    assert found == unasync.synchronous(source), "run .venv/bin/python trainer_client/unasync.py"


def test_both_clients_have_the_same_calls_with_the_same_arguments() -> None:
    shared = {name for name in vars(AsyncLabsClient) if not name.startswith("_")}
    assert {name for name in vars(LabsClient) if not name.startswith("_")} == shared
    for name in shared:
        one, other = getattr(AsyncLabsClient, name), getattr(LabsClient, name)
        if inspect.isfunction(one):
            assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters), name
            assert one.__doc__ == other.__doc__
