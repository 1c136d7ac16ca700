"""The actor who has to account for something, and the events that say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reward_server.ids import IdPrefix, new_id
from reward_server.store.records import AuditRow

MAX_TARGET_CHARACTERS = 200
MAX_ADDRESS_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Actor:
    """A key and where it was used from, or somebody at the command line."""

    lab_id: str
    name: str
    """Id of the key."""
    address: str

    def did(self, at: datetime, action: str, target: str) -> AuditRow:
        """The event to keep."""
        return AuditRow(
            event_id=new_id(IdPrefix.AUDIT),
            at=at,
            lab_id=self.lab_id,
            actor=self.name,
            address=self.address[:MAX_ADDRESS_CHARACTERS],
            action=action,
            target=target[:MAX_TARGET_CHARACTERS],
        )


COMMAND_LINE = Actor("", "command line", "")
SERVER_START = Actor("", "server start", "")
