"""Callback: an address that is called for the jobs of one client. docs/reference/api/webhooks.md#callbacks.

It is made by the first job that names the address, and removed when no job has named it for a while.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.encryption import SecretRef
from domain.kernel.ids import hashed
from domain.webhook.endpoint import Endpoint

KEPT: Final = timedelta(days=30)
"""So long a callback stays after the last day on which a job named it."""


class CallbackDetails(BaseModel):
    """`webhook_url` has neither user info nor query: these are secrets of each job that names the address.

    `named_on` is the last day on which a job named the callback, so it changes once a day and not with each job."""

    client: str
    webhook_url: str
    named_on: date
    secrets: dict[str, SecretRef] = {}
    previous_until: datetime | None = None
    disabled_at: datetime | None = None

    @property
    def label(self) -> str:
        """By its label the view of records is searched for callbacks that no job names any more."""
        return self.named_on.isoformat()


class Callback(Endpoint):
    """The id is made of the client and the address, so all jobs that name the address find the same callback."""

    KIND: ClassVar[str] = "callback"
    DETAILS: ClassVar[type[BaseModel]] = CallbackDetails
    PARENT: ClassVar[str] = "client"

    def name(self, *, at: datetime) -> None:
        self.amend({"named_on": max(at.date(), self.details.named_on)}, at=at)

    def remove_unused(self, before: date, *, at: datetime) -> None:
        """Delete it if no job has named it on or after that day."""
        if not self.deleted and self.details.named_on < before:
            self.delete(at=at)


def callback_key(*, client: str, url: str) -> UUID:
    """The id of a callback: a GUID of version 8 (RFC 9562). `url` is the address as it is shown."""
    return hashed("callback", client, url)
