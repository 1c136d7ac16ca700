"""A rubric that came with a request or a command: read, checked and sealed under a name that says what it holds.

Equal rubrics have equal names, so all that is kept about them is shared, whoever sent them; nobody can name one that
they do not have. No catalog lists them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.library import SealedScenario, seal_rubric
from scenarios.rubric_file import GIVEN, SCHEMA, RubricFile, read_rubric
from scenarios.yamlfile import Document, read_document, relative_name


def rubric_of_file(path: Path) -> SealedScenario:
    """The rubric of a file; `ScenarioFileError` names file and line."""
    document = read_document(path, relative_name(path))
    return _sealed(read_rubric(document), document)


def rubric_of_data(data: Mapping[str, Any]) -> SealedScenario:
    """The rubric of a request; `ScenarioFileError` says where in it something is wrong."""
    document = Document("rubric", {"schema": SCHEMA, **data})
    return _sealed(read_rubric(document), document)


def _sealed(file: RubricFile, document: Document) -> SealedScenario:
    data = {key: value for key, value in document.data.items() if key != "slug"}
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    card = file.card.model_copy(update={"slug": f"given-{digest[:24]}"})
    return seal_rubric(GIVEN, file, card, digest)
