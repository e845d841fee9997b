"""The fields of webhooks and callbacks."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum, auto
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.encryption import SecretRef


class WebhookFamily(Enum):
    """The kinds of changes that a webhook is called for."""

    SYSTEM_WIDE = auto()
    EVENT = auto()


class WebhookDetails(BaseModel):
    """Fields of a webhook. A webhook of one Event has `event_id`; a system-wide one does not.

    `additional_properties_json` is the text as it was sent, with null in place of each credential.

    In addition to the secrets of every endpoint, `secrets` has `password`, and one entry for each credential among the headers:
    `header:` followed by the name in lower case.
    """

    event_id: UUID | None = None
    webhook_url: str
    use_http_basic_authentication: bool = False
    use_json_body: bool = True
    username: str | None = None
    additional_properties_json: str | None = None
    secrets: dict[str, SecretRef] = {}
    previous_until: datetime | None = None
    disabled_at: datetime | None = None

    @property
    def family(self) -> WebhookFamily:
        return WebhookFamily.SYSTEM_WIDE if self.event_id is None else WebhookFamily.EVENT


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


EndpointDetails = WebhookDetails | CallbackDetails
