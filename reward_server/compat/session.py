"""The episode of a client of a door, for clients that keep cookies and know no ids."""

from __future__ import annotations

from fastapi import Request, Response

from reward_server.errors import EpisodeNotFound

COOKIE = "labs_episode"


def remember(response: Response, episode_id: str, path: str) -> None:
    """Let the client name this episode in its next calls below `path`. Only a key of the episode's lab opens it."""
    response.set_cookie(COOKIE, episode_id, path=path, httponly=True, samesite="strict")


def episode_of(request: Request) -> str:
    """The episode that the client names; `EpisodeNotFound` where it names none."""
    found = request.cookies.get(COOKIE)
    if found is None:
        raise EpisodeNotFound
    return found
