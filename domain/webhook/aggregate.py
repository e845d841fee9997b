"""Webhook: an address that is called for changes of all Events, or of one.

docs/reference/api/webhooks.md#families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from domain.kernel.encryption import SecretRef, stored_or_new
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.urls import check_url, origin
from domain.webhook.basic_auth import check_username
from domain.webhook.details import WebhookDetails
from domain.webhook.endpoint import PREVIOUS, SIGNING, Endpoint
from domain.webhook.headers import headers_in, place, secret_name

_WITHOUT_HEADER: Final = (SIGNING, PREVIOUS, "password")
_HEADERS: Final = "additional_properties_json"


class Webhook(Endpoint[WebhookDetails]):
    """A webhook. Its Event may be deleted and restored, so the webhook has no link to it.

    `secrets` in a command are the sent ones, by their names. None clears a secret; one that is not named is kept.
    """

    KIND: ClassVar[str] = "webhook"
    PARENT: ClassVar[str] = "event_id"

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: WebhookDetails | None) -> Mapping[str, Any]:
        check_webhook(values, stored)
        return super().prepare_values({**values, "secrets": _kept_secrets(values, stored)}, stored)


def check_values(values: Mapping[str, Any]) -> None:
    """Check values without regard to other fields."""
    if (url := values.get("webhook_url")) is not None:
        check_url(url, field="webhookUrl")
    if (username := values.get("username")) is not None:
        check_username(username)


def check_webhook(values: Mapping[str, Any], stored: WebhookDetails | None) -> None:
    """Check new values together with the stored details, which are None for a new webhook."""
    check_values(values)
    faults = [*_authentication_faults(values, stored), *_header_faults(values, stored), *_origin_faults(values, stored)]
    if faults:
        raise Malformed(*faults)


def extra_headers(details: WebhookDetails, decrypted: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names and values in the order of the text. `decrypted` are the webhook's secrets by their names. A header whose
    credential is missing there is left out."""
    values = (
        (header.name, decrypted.get(secret_name(header.name)) if header.value is None else header.value)
        for header in headers_in(details.additional_properties_json)
    )
    return [(name, value) for name, value in values if value is not None]


def _authentication_faults(values: Mapping[str, Any], stored: WebhookDetails | None) -> Iterator[FieldError]:
    if not _after("use_http_basic_authentication", values, stored):
        return
    if not _after("username", values, stored):
        yield FieldError("username", "is required for HTTP basic authentication")
    for index, header in enumerate(headers_in(_after(_HEADERS, values, stored))):
        if header.name.lower() == "authorization":
            field = place(index, "name") if _HEADERS in values else "useHttpBasicAuthentication"
            yield FieldError(field, "an Authorization header and HTTP basic authentication exclude each other")


def _header_faults(values: Mapping[str, Any], stored: WebhookDetails | None) -> Iterator[FieldError]:
    names = {**_stored_secrets(stored), **values.get("secrets", {})}
    for index, header in enumerate(headers_in(values.get(_HEADERS))):
        if header.value is None and secret_name(header.name) not in names:
            yield FieldError(place(index, "value"), "is required; null is only allowed if a value is stored")


def _origin_faults(values: Mapping[str, Any], stored: WebhookDetails | None) -> Iterator[FieldError]:
    """Report stored credentials that would be sent to another origin than the one that they were given for. The signing secret
    is not sent."""
    url = values.get("webhook_url")
    if stored is None or url is None or origin(url) == origin(stored.webhook_url):
        return
    unsent = _kept_secrets(values, stored).keys() - values.get("secrets", {}).keys()
    headers = headers_in(_after(_HEADERS, values, stored))
    places = {secret_name(header.name): place(index, "value") for index, header in enumerate(headers)}
    for name in sorted(unsent - {SIGNING, PREVIOUS}):
        yield FieldError(places.get(name, name), "must be sent again, because the address has another scheme, host or port")


def _kept_secrets(values: Mapping[str, Any], stored: WebhookDetails | None) -> dict[str, SecretRef]:
    before = _stored_secrets(stored)
    after = {**before, **{name: stored_or_new(before.get(name), ref) for name, ref in values.get("secrets", {}).items()}}
    text = _after(_HEADERS, values, stored)
    used = {*_WITHOUT_HEADER, *(secret_name(header.name) for header in headers_in(text) if header.value is None)}
    return {name: ref for name, ref in after.items() if ref is not None and name in used}


def _after(name: str, values: Mapping[str, Any], stored: WebhookDetails | None) -> Any:
    return values.get(name, getattr(stored, name, None))


def _stored_secrets(stored: WebhookDetails | None) -> Mapping[str, SecretRef]:
    return stored.secrets if stored is not None else {}
