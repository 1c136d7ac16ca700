"""Who may make a call: the scopes of its key, as the call's signature declares them to FastAPI.

`lab: Annotated[Lab, for_keys(Scope.TRAIN)]` is a security dependency: FastAPI documents it, `api.router.Route` admits
the caller by it before anything of the body is read, and the endpoint gets the lab.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, NOBODY, Scope

SCHEME = "ApiKey"
"""The name of API keys in the OpenAPI document."""
LAB = "lab"
"""In the state of a request: the lab that was admitted."""
_ATTRIBUTE = "labs_access"


class _ApiKey(SecurityBase):
    """The dependency that is the lab of a call's key."""

    def __init__(self) -> None:
        self.model = HTTPBearer(description="An API key: `lab_…`.")
        self.scheme_name = SCHEME

    async def __call__(self, request: Request) -> Lab:
        """The lab that the route admitted."""
        lab: Lab = getattr(request.state, LAB)
        return lab


_API_KEY = _ApiKey()


def for_keys(*scopes: Scope) -> Any:
    """The dependency of a call that takes a key with one of these scopes."""
    return Security(_API_KEY, scopes=[scope.value for scope in scopes])


@dataclass(frozen=True, slots=True)
class Access:
    """Who may make a call, and what follows from that."""

    scopes: tuple[Scope, ...]
    """A key needs one of these; `ANY` for every key, `NOBODY` for no key at all."""
    brings: bool = False
    """Whether the call brings a body."""

    @property
    def limited(self) -> bool:
        """Whether the call is authenticated and counted."""
        return bool(self.scopes)

    @property
    def audited(self) -> bool:
        """Whether each such call is kept in the audit log: those that are for operators or exports alone."""
        return self.limited and {Scope.OPERATE, Scope.EXPORT}.issuperset(self.scopes)

    @property
    def stores(self) -> bool:
        """Whether the call may store conversations, which takes room."""
        return self.brings and not {Scope.TRAIN, Scope.SCORE, Scope.LABEL}.isdisjoint(self.scopes)

    @property
    def security(self) -> list[dict[str, list[str]]]:
        """In OpenAPI's words: one requirement for each scope that will do."""
        names = [[]] if self.scopes == ANY else [[scope.value] for scope in self.scopes]
        return [{SCHEME: name} for name in names]


def declared_by(dependant: Dependant, *, brings: bool) -> Access:
    """What the signature of an endpoint says."""
    for each in dependant.dependencies:
        if each.call is _API_KEY:
            return Access(tuple(Scope(name) for name in each.own_oauth_scopes or ()), brings)
    return Access(NOBODY, brings)


def declare(endpoint: Callable[..., Any], access: Access) -> None:
    """Note the access of an endpoint where `access_of` finds it."""
    setattr(endpoint, _ATTRIBUTE, access)


def access_of(endpoint: Callable[..., Any]) -> Access:
    """Who may call an endpoint that is on a router."""
    found: Access = getattr(endpoint, _ATTRIBUTE)
    return found
