"""Author: collections of the lab's own, in the database: versions, their files in an editor, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from reward_server.api.body import validate
from reward_server.api.query import QueryModel
from reward_server.api.routes import own_scenarios as api
from reward_server.auth.scopes import Scope
from reward_server.authoring.service import document
from reward_server.console import drafts, queries, scenario_files, view
from reward_server.console.drafts import Draft, Finding
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.errors import InvalidRequest, NotFound
from trainer_client.wire import PushRequest

pages = Pages()
Json = dict[str, Any]
AUTHOR = f"{ROOT}/author"
SAVED_MEANWHILE = "Version {0} was saved meanwhile. Your text is below: compare it with that version, then save again."


class EditorQuery(QueryModel):
    """What of a collection is shown."""

    file: queries.Text = ""
    version: int | None = Field(default=None, ge=1)
    job: Annotated[str, Field(max_length=64)] = ""
    saved: bool = False


@pages.read("/author", like=api.list_own_scenarios)
async def collections(visit: Visit) -> Response:
    """The lab's own collections; in development mode, those on disk as well."""
    rows = await visit.services.own_scenarios.all(visit.lab)
    folder = scenario_files.folder_of(visit)
    on_disk = [] if folder is None else await folder.collections()
    return view.page(visit, "author.html", rows=rows, on_disk=on_disk, has_folder=folder is not None)


@pages.change("/author", like=api.push_scenarios)
async def begin(visit: Visit) -> Response:
    """Begin a scenario from the commented example, in a collection of its own or beside others."""
    form = visit.form
    collection = form.line("collection")
    versions = await visit.services.own_scenarios.versions(visit.lab, collection)
    files = versions[0].files if versions else {}
    slug = form.line("slug")
    wanted = _push(collection, drafts.begun(files, collection, slug, has_persona=not form.line("rubric")))
    return _sent(visit, await visit.services.own_scenarios.push(visit.lab, wanted), f"{slug}.yaml")


@pages.read("/author/own/{collection}", like=api.pull_scenarios)
async def editor(visit: Visit, collection: str) -> Response:
    """A version of a collection with a file in the editor; while it is checked, a part of the page asks again."""
    query = queries.read(visit, EditorQuery)
    body = await visit.services.own_scenarios.pull(visit.lab, collection, query.version)
    if visit.is_partial:
        return view.page(visit, "_check.html", **await _check(visit, body, query.job))
    return await _shown(visit, body, drafts.opened(body["files"], query.file), job=query.job)


@pages.change("/author/own/{collection}", like=api.push_scenarios)
async def save(visit: Visit, collection: str) -> Response:
    """Save a file, or remove it: a new version, which is checked."""
    services, form = visit.services, visit.form
    body = await services.own_scenarios.pull(visit.lab, collection, None)
    draft = drafts.edited(body["files"], form)
    if form.whole("base") != body["version"]:
        meanwhile = [Finding(SAVED_MEANWHILE.format(body["version"]))]
        return await _shown(visit, body, draft, findings=meanwhile, status=409)
    try:
        files = draft.without() if form.line("remove") else draft.saved()
        made = await services.own_scenarios.push(visit.lab, _push(_slug(body), files))
    except InvalidRequest as error:
        return await _shown(visit, body, draft, findings=drafts.refused(error), status=400)
    return _sent(visit, made, "" if form.line("remove") else draft.name)


@pages.change("/author/own/{collection}/findings", like=api.push_scenarios)
async def findings(visit: Visit, collection: str) -> Response:
    """What is wrong with the file as it is in the editor, for a part of the page; nothing is saved."""
    body = await visit.services.own_scenarios.pull(visit.lab, collection, None)
    draft = drafts.edited(body["files"], visit.form)
    try:
        found = await visit.services.own_scenarios.findings(visit.lab, _push(_slug(body), draft.saved()))
        shown = drafts.told(found)
    except InvalidRequest as error:
        shown = list(drafts.refused(error))
    return view.page(visit, "_editor_findings.html", findings=shown, name=draft.name, is_checked=True)


@pages.change("/author/own/{collection}/delete", like=api.delete_own_scenarios)
async def delete(visit: Visit, collection: str) -> Response:
    """Forget a collection with all its versions."""
    await visit.services.own_scenarios.delete(visit.lab, collection)
    return view.sent(visit.request, AUTHOR)


async def _shown(
    visit: Visit, body: Json, draft: Draft, *, findings: Sequence[Finding] = (), status: int = 200, job: str = ""
) -> Response:
    versions = await visit.services.own_scenarios.versions(visit.lab, body["collection"])
    return view.page(
        visit,
        "own_collection.html",
        status=status,
        body=body,
        slug=_slug(body),
        action=f"{AUTHOR}/own/{_slug(body)}",
        draft=draft,
        findings=findings,
        name=draft.name,
        is_checked=False,
        versions=[document(each) for each in versions],
        **await _check(visit, body, job),
    )


async def _check(visit: Visit, body: Json, job: str) -> Json:
    """How the check of a version stands, and how far its job is."""
    progress = None
    if body["status"] == "checking" and job:
        try:
            progress = (await visit.services.jobs.get(visit.lab, job))["progress"]
        except NotFound:
            job = ""
    in_use = visit.services.catalog.collections.get(body["collection"]) if body["status"] == "passed" else None
    return {
        "check": body,
        "in_use": [] if in_use is None else list(in_use.scenarios.values()),
        "found": drafts.told(body["findings"]),
        "progress": progress,
        "job": job if Scope.SCORE in visit.lab.scopes else "",
    }


def _push(collection: str, files: dict[str, str]) -> PushRequest:
    return validate(PushRequest, {"collection": collection, "files": files})


def _sent(visit: Visit, made: Json, file: str) -> Response:
    job = f"&job={made['job_id']}" if "job_id" in made else ""
    return view.sent(visit.request, f"{AUTHOR}/own/{_slug(made)}?file={file}{job}")


def _slug(body: Json) -> str:
    return str(body["collection"]).partition("@")[0]
