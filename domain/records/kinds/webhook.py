"""Webhook: an address that is told of what happens to all Events, to one, or to the jobs of a client. Document 2, "Webhook
objects"; document 3, "Job engine"; decisions.md, "Webhooks"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.command import Command
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.sealed import Sealed, SecretRef
from domain.records.configured import known_again
from domain.records.record import Record
from domain.webhook.address import check_url, check_username
from domain.webhook.headers import headers_in, place, secret_name
from domain.webhook.secret import OVERLAP

SIGNING: Final = "signing"
PREVIOUS: Final = "previous"
URL: Final = "url"
_OF_ITSELF: Final = (SIGNING, PREVIOUS, "password", URL)
_HEADERS: Final = "additional_properties_json"
CALLBACKS: Final = "client:"


class WebhookDetails(BaseModel):
    """`event_id` is that of the one Event that it is about. With `job_client` it is a callback, of those jobs of this client that
    name it. With neither it is about all Events. `additional_properties_json` is the text as it was sent, with null in place of
    every credential.

    `secrets` says where what must not be shown lies: `signing` and, until `previous_until`, `previous`, with which deliveries are
    signed; `password`; the credentials among the headers, each as `header:` and its name in lower case; and of a callback `url`,
    the whole address where `webhook_url` is without its user info and query."""

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
    def listed_under(self) -> UUID | str | None:
        return self.event_id if self.job_client is None else callbacks_of(self.job_client)


def callbacks_of(client: str) -> str:
    """What the callbacks of a client are listed under: no Event has such an id."""
    return f"{CALLBACKS}{client}"


class Webhook(Record):
    """Its Event may be deleted and restored without it, so that link binds nobody.

    In a write, `secrets` are those that were sent, by their names; None clears one. What is not sent is kept."""

    KIND: ClassVar[str] = "webhook"
    DETAILS: ClassVar[type[BaseModel]] = WebhookDetails
    PARENT: ClassVar[str] = "listed_under"

    def rotate(self, signing: SecretRef, *, at: datetime) -> None:
        """The secret so far signs along for a while; the one before it is forgotten."""
        self._must_stand()
        kept = {**self.details.secrets, SIGNING: signing, PREVIOUS: self.details.secrets[SIGNING]}
        self._trigger(self._event(1), at=at, secrets=kept, previous_until=at + OVERLAP)

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        check(values, stored)
        kept = {**values, "secrets": _kept(values, stored)}
        disabled_at = values.get("disabled_at")
        if disabled_at is not None:  # as a GET shows it, so that what it shows can be sent back
            kept["disabled_at"] = disabled_at.replace(microsecond=disabled_at.microsecond // 1000 * 1000)
        return kept

    def secrets(self) -> frozenset[UUID]:
        if self.withdrawn:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())


def check_values(values: Mapping[str, Any]) -> None:
    """What no webhook may hold, whatever else it holds."""
    if (url := values.get("webhook_url")) is not None:
        check_url(url)
    if (username := values.get("username")) is not None:
        check_username(username)


def check(values: Mapping[str, Any], stored: Any) -> None:
    """What a webhook may not be, beside the details that are stored (None: there are none)."""
    check_values(values)
    faults = [*_authentication_faults(values, stored), *_header_faults(values, stored)]
    if faults:
        raise Malformed(*faults)


def extra_headers(details: WebhookDetails, opened: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a delivery sends along, in the order of the text. `opened` are the webhook's secrets in the clear, by their names; a
    credential that is not among them is left out with its header."""
    headers = headers_in(details.additional_properties_json)
    found = ((one.name, opened.get(secret_name(one.name)) if one.value is None else one.value) for one in headers)
    return [(name, value) for name, value in found if value is not None]


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
    known = {**_stored_secrets(stored), **values.get("secrets", {})}
    for index, header in enumerate(headers_in(values.get(_HEADERS))):
        if header.value is None and secret_name(header.name) not in known:
            yield FieldError(place(index, "value"), "is required; none is stored that null would keep")


def _kept(values: Mapping[str, Any], stored: Any) -> dict[str, SecretRef]:
    held = _stored_secrets(stored)
    after = {**held, **{name: known_again(held.get(name), ref) for name, ref in values.get("secrets", {}).items()}}
    text = _after(_HEADERS, values, stored)
    wanted = {*_OF_ITSELF, *(secret_name(header.name) for header in headers_in(text) if header.value is None)}
    return {name: ref for name, ref in after.items() if ref is not None and name in wanted}


def _after(name: str, values: Mapping[str, Any], stored: Any) -> Any:
    return values.get(name, getattr(stored, name, None))


def _stored_secrets(stored: Any) -> Mapping[str, SecretRef]:
    return stored.secrets if stored is not None else {}


@dataclass(frozen=True)
class RotateWebhookSecret(Command[Webhook]):
    """POST /webhook/{id}/secret/ (ours). `signing` is the new secret, sealed for the webhook's stream."""

    signing: Sealed

    def kind(self) -> type[Webhook]:
        return Webhook

    @property
    def sealed(self) -> Sequence[Sealed]:
        return (self.signing,)

    def act(self, root: Webhook, *, at: datetime) -> None:
        root.rotate(self.signing.ref, at=at)


@dataclass(frozen=True)
class EnsureCallback(Command[Webhook]):
    """A job of `client` names an address: its webhook is made where it does not stand. One that stands, also a disabled one, is
    left as it is.

    `signing` is the secret of a new one. `whole` is the address with its user info and query, if it has any; `url` has none."""

    client: str
    url: str
    signing: Sealed
    whole: Sealed | None = None

    def kind(self) -> type[Webhook]:
        return Webhook

    @property
    def fresh(self) -> bool:
        """It was looked for and not found. Who was overtaken since is told by the stream, and looks again."""
        return True

    @property
    def sealed(self) -> Sequence[Sealed]:
        return (self.signing,) if self.whole is None else (self.signing, self.whole)

    def decide(self, root: Webhook | None, *, at: datetime) -> Webhook:
        if root is None:
            return Webhook.register(self.key, self._values(), at=at)
        if root.withdrawn:
            root.reinstate(self._values(), at=at)
        return root

    def _values(self) -> Mapping[str, Any]:
        secrets = {SIGNING: self.signing.ref, **({} if self.whole is None else {URL: self.whole.ref})}
        return {"job_client": self.client, "webhook_url": self.url, "secrets": secrets}
