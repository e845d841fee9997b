"""Endpoint: the base of webhooks and callbacks, which are addresses that are called with signed requests."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Generic
from uuid import UUID

from typing_extensions import TypeVar

from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.clock import to_milliseconds
from domain.kernel.command import decision
from domain.kernel.encryption import SecretRef
from domain.record.record import Record
from domain.webhook.details import EndpointDetails

BYTES: Final = 32
OVERLAP: Final = timedelta(hours=24)
"""The time during which requests also carry a signature of the replaced secret."""

_PREFIX: Final = "whsec_"


def encode_secret(key: bytes) -> str:
    """Return the text of a secret, which the subscriber gets once."""
    return _PREFIX + b64encode(key).decode()


def decode_secret(secret: str) -> bytes:
    """Return the bytes to sign with."""
    return b64decode(secret.removeprefix(_PREFIX), validate=True)


SIGNING: Final = "signing"
PREVIOUS: Final = "previous"


E_co = TypeVar("E_co", bound=EndpointDetails, covariant=True, default=EndpointDetails)


class Endpoint(Record[E_co], Generic[E_co]):
    """An address that is called. Its details have `webhook_url`, `disabled_at`, and `secrets`, references into the vault:
    `signing`, and `previous`, which also signs until `previous_until`."""

    @decision
    def rotate(self, at: datetime, /, signing: SecretRef) -> None:
        """Replace the signing secret. Both secrets sign for `OVERLAP`; an older secret is forgotten."""
        self._check_not_deleted()
        new_secrets = {**self.details.secrets, SIGNING: signing, PREVIOUS: self.details.secrets[SIGNING]}
        self._trigger(self.EVENTS.amended, at=at, secrets=new_secrets, previous_until=at + OVERLAP)

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        """Truncate `disabled_at` to milliseconds, as a GET shows it, so that sending it back changes nothing."""
        disabled_at = values.get("disabled_at")
        return values if disabled_at is None else {**values, "disabled_at": to_milliseconds(disabled_at)}

    def secrets(self) -> frozenset[UUID]:
        if self.deleted:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())
