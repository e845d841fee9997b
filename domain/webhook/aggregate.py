"""Webhook: an address that is called for all Events, for one Event, or for the jobs of one client.

docs/reference/api/webhooks.md#families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.clock import to_milliseconds
from domain.kernel.encryption import SecretRef, kept_or_new
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.urls import check_url
from domain.records.record import Record
from domain.webhook.basic_auth import check_username
from domain.webhook.headers import headers_in, place, secret_name
from domain.webhook.secret import OVERLAP

SIGNING: Final = "signing"
PREVIOUS: Final = "previous"
URL: Final = "url"
_WITHOUT_HEADER: Final = (SIGNING, PREVIOUS, "password", URL)
_HEADERS: Final = "additional_properties_json"
CALLBACKS: Final = "client:"


class WebhookFamily(Enum):
    """Which changes a webhook is called for."""

    SYSTEM_WIDE = auto()
    EVENT = auto()
    CALLBACK = auto()


class WebhookDetails(BaseModel):
    """Fields of a webhook. A webhook of one Event has `event_id`, a callback `job_client`, a system-wide webhook neither.

    `additional_properties_json` is the text as it was sent, with null in place of each credential.

    `secrets` are references into the vault: `signing`; `previous`, which also signs until `previous_until`; `password`; `header:`
    and a name in lower case for each credential among the headers; and for a callback `url`, the whole address where `webhook_url`
    lacks its user info and query."""

    event_id: UUID | None = None
    job_client: str | None = None
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
        if self.job_client is not None:
            return WebhookFamily.CALLBACK
        return WebhookFamily.SYSTEM_WIDE if self.event_id is None else WebhookFamily.EVENT

    @property
    def listed_under(self) -> UUID | str | None:
        return self.event_id if self.job_client is None else callbacks_of(self.job_client)


def callbacks_of(client: str) -> str:
    """The parent that the callbacks of a client are listed under. No Event has such an id."""
    return f"{CALLBACKS}{client}"


class Webhook(Record):
    """The Event of a webhook may be deleted and restored, so the webhook has no link to it.

    `secrets` in a command are the sent ones, by their names. None clears a secret; one that is not named is kept."""

    KIND: ClassVar[str] = "webhook"
    DETAILS: ClassVar[type[BaseModel]] = WebhookDetails
    PARENT: ClassVar[str] = "listed_under"

    def rotate(self, signing: SecretRef, *, at: datetime) -> None:
        """Both secrets sign for `OVERLAP`. A secret from before the present one is forgotten."""
        self._check_not_deleted()
        kept = {**self.details.secrets, SIGNING: signing, PREVIOUS: self.details.secrets[SIGNING]}
        self._trigger(self._event(1), at=at, secrets=kept, previous_until=at + OVERLAP)

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        check_webhook(values, stored)
        kept = {**values, "secrets": _kept_secrets(values, stored)}
        disabled_at = values.get("disabled_at")
        if disabled_at is not None:  # to milliseconds, as a GET shows it: sent back, it changes nothing
            kept["disabled_at"] = to_milliseconds(disabled_at)
        return kept

    def secrets(self) -> frozenset[UUID]:
        if self.deleted:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())


def check_values(values: Mapping[str, Any]) -> None:
    """Checks that do not depend on other fields."""
    if (url := values.get("webhook_url")) is not None:
        check_url(url, field="webhookUrl")
    if (username := values.get("username")) is not None:
        check_username(username)


def check_webhook(values: Mapping[str, Any], stored: Any) -> None:
    """Check new values together with the stored details, which are None for a new webhook."""
    check_values(values)
    faults = [*_authentication_faults(values, stored), *_header_faults(values, stored)]
    if faults:
        raise Malformed(*faults)


def extra_headers(details: WebhookDetails, decrypted: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values in the order of the text. `decrypted` are the webhook's secrets by their names. A header whose credential
    is missing there is left out."""
    values = (
        (header.name, decrypted.get(secret_name(header.name)) if header.value is None else header.value)
        for header in headers_in(details.additional_properties_json)
    )
    return [(name, value) for name, value in values if value is not None]


def _authentication_faults(values: Mapping[str, Any], stored: Any) -> Iterator[FieldError]:
    if not _after("use_http_basic_authentication", values, stored):
        return
    if not _after("username", values, stored):
        yield FieldError("username", "is required for HTTP basic authentication")
    for index, header in enumerate(headers_in(_after(_HEADERS, values, stored))):
        if header.name.lower() == "authorization":
            field = place(index, "name") if _HEADERS in values else "useHttpBasicAuthentication"
            yield FieldError(field, "an Authorization header and HTTP basic authentication exclude each other")


def _header_faults(values: Mapping[str, Any], stored: Any) -> Iterator[FieldError]:
    names = {**_stored_secrets(stored), **values.get("secrets", {})}
    for index, header in enumerate(headers_in(values.get(_HEADERS))):
        if header.value is None and secret_name(header.name) not in names:
            yield FieldError(place(index, "value"), "is required; none is stored that null would keep")


def _kept_secrets(values: Mapping[str, Any], stored: Any) -> dict[str, SecretRef]:
    before = _stored_secrets(stored)
    after = {**before, **{name: kept_or_new(before.get(name), ref) for name, ref in values.get("secrets", {}).items()}}
    text = _after(_HEADERS, values, stored)
    used = {*_WITHOUT_HEADER, *(secret_name(header.name) for header in headers_in(text) if header.value is None)}
    return {name: ref for name, ref in after.items() if ref is not None and name in used}


def _after(name: str, values: Mapping[str, Any], stored: Any) -> Any:
    return values.get(name, getattr(stored, name, None))


def _stored_secrets(stored: Any) -> Mapping[str, SecretRef]:
    return stored.secrets if stored is not None else {}
