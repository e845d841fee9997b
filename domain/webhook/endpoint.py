"""Endpoint: base of the records of addresses that are called with signed requests, which are webhooks and callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.clock import to_milliseconds
from domain.kernel.encryption import SecretRef
from domain.records.record import Record
from domain.webhook.secret import OVERLAP

SIGNING: Final = "signing"
PREVIOUS: Final = "previous"


class Endpoint(Record):
    """The details of a kind have `webhook_url`, `disabled_at`, and `secrets`, references into the vault: `signing`, and `previous`,
    which also signs until `previous_until`."""

    def rotate(self, signing: SecretRef, *, at: datetime) -> None:
        """Both secrets sign for `OVERLAP`. A secret from before the present one is forgotten."""
        self._check_not_deleted()
        kept = {**self.details.secrets, SIGNING: signing, PREVIOUS: self.details.secrets[SIGNING]}
        self._trigger(self._event(1), at=at, secrets=kept, previous_until=at + OVERLAP)

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        """`disabled_at` is kept to milliseconds, as a GET shows it: sent back, it changes nothing."""
        disabled_at = values.get("disabled_at")
        return values if disabled_at is None else {**values, "disabled_at": to_milliseconds(disabled_at)}

    def secrets(self) -> frozenset[UUID]:
        if self.deleted:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())
