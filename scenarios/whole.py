"""A whole scenario, put together from what its author wrote once.

The rubric may have a file of its own (`<slug>.rubric.yaml`), and the oracle may stand beside the natural agents
(`<slug>.agents.yaml`). A criterion takes over what it leaves out from that of the same id in `collection.yaml`. A
name in `fact_groups` stands for its facts. The document that comes out reads as if its author had written everything
out in one file: what comes after does not know the difference, and neither does the digest of a library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from personas.case.schema import Needs
from scenarios.agents import SUFFIX as AGENTS
from scenarios.schema import ScenarioFile
from scenarios.spelling import nearest
from scenarios.yamlfile import Document, ScenarioFileError, annotation_below, read_document, relative_name, shown

RUBRIC = ".rubric.yaml"
_PRIVATE = "private"
_GROUPS = "fact_groups"


def read_whole(path: Path, collection: Document) -> Document:
    """Read a scenario file with its rubric and its oracle, and write out what its criteria take over.

    The names of its groups are left to `written_out`: a variant may have other groups.

    Args:
        path: the scenario file.
        collection: its `collection.yaml`, which has passed.

    Raises:
        ScenarioFileError: a file cannot be read, or a part is missing or stands in two files; names file and line.
    """
    document = read_document(path, relative_name(path))
    private = document.data.get(_PRIVATE) if isinstance(document.data, dict) else None
    if not isinstance(private, dict):
        return document
    _put_rubric(document, private, path.with_suffix(RUBRIC))
    _put_oracle(document, private, path.with_suffix(AGENTS))
    _complete_criteria(document, private, collection)
    return document


def written_out(data: Any) -> Any:
    """The data of a whole scenario with the facts of its groups wherever their names are needs."""
    private = data.get(_PRIVATE) if isinstance(data, dict) else None
    return with_groups(data, ScenarioFile, _groups(private)) if isinstance(private, dict) else data


def without_shorthand(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a whole scenario without the names that are written out in it already."""
    return {**data, _PRIVATE: {key: value for key, value in data[_PRIVATE].items() if key != _GROUPS}}


def with_groups(data: Any, model: type[BaseModel], groups: Mapping[str, Sequence[str]]) -> Any:
    """The data of a file of that model, with the facts of a group wherever its name is a need."""
    return _written_out(data, model, groups) if groups else data


def _written_out(node: Any, annotation: Any, groups: Mapping[str, Sequence[str]]) -> Any:
    if annotation == Needs and isinstance(node, list):
        return [_need(need, groups) for need in node]
    if isinstance(node, dict):
        return {key: _written_out(value, annotation_below(annotation, key), groups) for key, value in node.items()}
    if isinstance(node, list):
        return [_written_out(value, annotation_below(annotation, i), groups) for i, value in enumerate(node)]
    return node


def _need(need: Any, groups: Mapping[str, Sequence[str]]) -> Any:
    """A need with the facts of a group for its name, by itself or as one of several facts of which any is enough."""
    if isinstance(need, str):
        return list(groups[need]) if need in groups else need
    if isinstance(need, list):
        return [fact for name in need for fact in (groups.get(name, [name]) if isinstance(name, str) else [name])]
    return need


def _groups(private: Mapping[str, Any]) -> dict[str, list[str]]:
    """The groups that are lists of names; the schema refuses the others."""
    groups = private.get(_GROUPS)
    named = groups.items() if isinstance(groups, dict) else ()
    return {
        name: facts for name, facts in named if isinstance(facts, list) and all(isinstance(fact, str) for fact in facts)
    }


def _put_rubric(document: Document, private: dict[str, Any], path: Path) -> None:
    part = read_document(path, relative_name(path)) if path.is_file() else None
    if part is None and "rubric" not in private:
        raise ScenarioFileError([document.finding((_PRIVATE,), f"there is no rubric: write it to {path.name}")])
    if part is not None:
        if "rubric" in private:
            told = f"{path.name} has a rubric, too: keep one of the two"
            raise ScenarioFileError([document.finding((_PRIVATE, "rubric"), told)])
        private["rubric"] = part.data
        document.parts[_PRIVATE, "rubric"] = (part, ())


def _put_oracle(document: Document, private: dict[str, Any], path: Path) -> None:
    part = read_document(path, relative_name(path)) if path.is_file() else None
    if part is not None and isinstance(part.data, dict) and "oracle" in part.data:
        if "exam" in private:
            told = f"{path.name} has an oracle, too: keep one of the two"
            raise ScenarioFileError([document.finding((_PRIVATE, "exam"), told)])
        private["exam"] = {"oracle": part.data["oracle"]}
        document.parts[_PRIVATE, "exam", "oracle"] = (part, ("oracle",))
    elif "exam" not in private:
        raise ScenarioFileError([document.finding((_PRIVATE,), f"there is no oracle: write it to {path.name}")])


def _complete_criteria(document: Document, private: Mapping[str, Any], collection: Document) -> None:
    """Give every criterion what it leaves out and the collection's criterion of the same id has."""
    shared = {criterion["id"]: criterion for criterion in collection.data.get("criteria", ())}
    rubric = private["rubric"]
    criteria = rubric.get("criteria") if isinstance(rubric, dict) else None
    if not shared or not isinstance(criteria, list):
        return
    unknown = []
    for i, criterion in enumerate(criteria):
        name = criterion.get("id") if isinstance(criterion, dict) else None
        if not isinstance(name, str):
            continue
        if name in shared:
            criteria[i] = {**shared[name], **criterion}
        elif "check" not in criterion:
            close = nearest(name, shared)
            meant = f"did you mean `{close}`? Otherwise" if close else "correct the id, or"
            told = f"the collection has no criterion {shown(name)}: {meant} write out all that it needs"
            unknown.append(document.finding((_PRIVATE, "rubric", "criteria", i), told))
    if unknown:
        raise ScenarioFileError(unknown)
