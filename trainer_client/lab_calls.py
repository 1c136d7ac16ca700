"""All calls that a client has itself, not under a name such as `jobs`."""

from __future__ import annotations

from trainer_client.catalog import CatalogCalls
from trainer_client.episodes import EpisodeCalls
from trainer_client.preferences import PreferenceCalls
from trainer_client.scoring import ScoringCalls
from trainer_client.webhooks import WebhookCalls


class LabCalls(CatalogCalls, EpisodeCalls, ScoringCalls, PreferenceCalls, WebhookCalls):
    """Calls about a lab."""
