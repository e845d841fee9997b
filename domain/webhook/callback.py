"""Callback: an address that is called for the jobs of one client. docs/reference/api/webhooks.md#callbacks.

It is created by the first job that names the address, and removed when no job has named it for a while.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.encryption import SecretRef
from domain.kernel.ids import hashed
from domain.webhook.endpoint import Endpoint

RETENTION: Final = timedelta(days=30)
"""The time that a callback stays after the last day on which a job named it."""


class CallbackDetails(BaseModel):
    """Fields of a callback. `webhook_url` has neither user info nor query, which are secrets of each job that names the address.

    `named_on` is the last day on which a job named the callback, so it changes once a day and not with each job.
    """

    client: str
    webhook_url: str
    named_on: date
    secrets: dict[str, SecretRef] = {}
    previous_until: datetime | None = None
    disabled_at: datetime | None = None

    @property
    def label(self) -> str:
        """The label by which the view of records finds callbacks that no job names any more."""
        return self.named_on.isoformat()


class Callback(Endpoint):
    """A callback. Its id is derived from the client and the address, so all jobs that name the address find the same callback."""

    KIND: ClassVar[str] = "callback"
    DETAILS: ClassVar[type[BaseModel]] = CallbackDetails
    PARENT: ClassVar[str] = "client"

    def name(self, *, at: datetime) -> None:
        self.amend({"named_on": max(at.date(), self.details.named_on)}, at=at)

    def remove_unused(self, before: date, *, at: datetime) -> None:
        """Delete the callback if no job has named it on or after that day."""
        if not self.deleted and self.details.named_on < before:
            self.delete(at=at)


def callback_key(*, client: str, url: str) -> UUID:
    """Return the id of a callback: a GUID of version 8 (RFC 9562). `url` is the address without its secret parts."""
    return hashed("callback", client, url)
