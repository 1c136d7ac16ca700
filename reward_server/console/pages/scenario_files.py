"""Author, in development mode: the scenario files on disk in an editor, below the folder that the server serves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from fastapi import Response

from reward_server.api.body import validate
from reward_server.api.routes import own_scenarios as api
from reward_server.console import drafts, queries, view
from reward_server.console.drafts import Draft, Finding
from reward_server.console.pages.own_scenarios import AUTHOR, EditorQuery
from reward_server.console.routing import Pages
from reward_server.console.scenario_files import CHANGED, ScenarioFolder, folder_of
from reward_server.console.visit import Visit
from reward_server.errors import Conflict, Forbidden
from trainer_client.wire import PushRequest

pages = Pages()
DEVELOPMENT_ALONE = "Files on disk are edited in development mode alone, below the folder of LABS_SCENARIOS."


@pages.read("/author/files/{collection}", like=api.pull_scenarios)
async def editor(visit: Visit, collection: str) -> Response:
    """A file of a collection in the editor."""
    files = await _folder(visit).files(collection)
    query = queries.read(visit, EditorQuery)
    return _shown(visit, collection, drafts.opened(files, query.file), is_saved=query.saved)


@pages.change("/author/files/{collection}", like=api.push_scenarios)
async def save(visit: Visit, collection: str) -> Response:
    """Save a file, unless something is wrong with it; then only if that is wanted."""
    folder, form = _folder(visit), visit.form
    files = await folder.files(collection)
    draft = drafts.edited(files, form)
    found = drafts.in_files(await folder.findings(collection, draft.saved()))
    if found and not form.line("anyway"):
        return _shown(visit, collection, draft, findings=found, status=400)
    if form.line("base") != _digest(files.get(draft.name, "")):
        return _shown(visit, collection, draft, findings=[Finding(CHANGED)], status=409)
    try:
        await folder.save(collection, draft.name, draft.text, was=files.get(draft.name, ""))
    except Conflict as error:
        return _shown(visit, collection, draft, findings=drafts.refused(error), status=409)
    return view.sent(visit.request, f"{AUTHOR}/files/{collection}?file={draft.name}&saved=true")


@pages.change("/author/files/{collection}/findings", like=api.push_scenarios)
async def findings(visit: Visit, collection: str) -> Response:
    """What is wrong with the file as it is in the editor, for a part of the page; nothing is saved."""
    folder = _folder(visit)
    draft = drafts.edited(await folder.files(collection), visit.form)
    found = drafts.in_files(await folder.findings(collection, draft.saved()))
    return view.page(visit, "_editor_findings.html", findings=found, name=draft.name, is_checked=True)


@pages.change("/author/files/{collection}/try", like=api.push_scenarios)
async def bring(visit: Visit, collection: str) -> Response:
    """Have the files as they are on disk checked, and in use beside what the server loaded: as an own collection."""
    kept = await _folder(visit).files(collection)
    # Own collections have no variants.
    files = {name: text for name, text in kept.items() if not name.endswith(".variants.yaml")}
    wanted = validate(PushRequest, {"collection": collection, "files": files})
    made = await visit.services.own_scenarios.push(visit.lab, wanted)
    job = f"?job={made['job_id']}" if "job_id" in made else ""
    return view.sent(visit.request, f"{AUTHOR}/own/{collection}{job}")


def _folder(visit: Visit) -> ScenarioFolder:
    found = folder_of(visit)
    if found is None:
        raise Forbidden(DEVELOPMENT_ALONE)
    return found


def _shown(
    visit: Visit,
    collection: str,
    draft: Draft,
    *,
    findings: Sequence[Finding] = (),
    status: int = 200,
    is_saved: bool = False,
) -> Response:
    context: dict[str, Any] = {"draft": draft, "findings": findings, "name": draft.name, "is_checked": False}
    return view.page(
        visit,
        "scenario_files.html",
        status=status,
        slug=collection,
        action=f"{AUTHOR}/files/{collection}",
        base=_digest(draft.files.get(draft.name, "")),
        is_saved=is_saved,
        **context,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
