"""Callbacks that a client names by their addresses: the checks of the addresses, and the commands that create or keep callbacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ports import Vault
from domain.record.ports import RecordLookup
from domain.webhook.callback import MOST_CALLBACKS, Callback, CallbackUrl, callback_key, parse_callback_url
from domain.webhook.commands import NameCallback


class NewSigningSecret(Protocol):
    """Makes the secret with which the notices to a callback are signed."""

    def __call__(self) -> str: ...


class CallbackNaming:
    """Names callbacks. `new_signing_secret` draws the secret of a callback that does not exist yet."""

    def __init__(self, vault: Vault, records: RecordLookup, *, clock: Clock, new_signing_secret: NewSigningSecret) -> None:
        self._vault = vault
        self._records = records
        self._clock = clock
        self._new_signing_secret = new_signing_secret

    def checked(self, client: str, urls: Sequence[tuple[str, str]]) -> dict[UUID, CallbackUrl]:
        """Return the addresses by the ids of their callbacks.

        Each of `urls` comes after the path of its field. Raises `Malformed` with every invalid one.
        """
        addresses: dict[UUID, CallbackUrl] = {}
        errors: list[FieldError] = []
        for path, text in urls:
            try:
                url = parse_callback_url(text, field=path)
            except Malformed as refusal:
                errors.extend(refusal.errors)
                continue
            if addresses.setdefault(callback_key(client=client, url=url.shown), url) != url:
                errors.append(FieldError(path, "differs from another callback in its user info or query only"))
            if len(addresses) > MOST_CALLBACKS:
                errors.append(FieldError(path, f"exceeds the limit of {MOST_CALLBACKS} callbacks"))
                break
        if errors:
            raise Malformed(*errors)
        return addresses

    async def named(self, client: str, urls: Mapping[UUID, str]) -> Sequence[NameCallback]:
        """Return the commands that name these callbacks. A callback that was named today needs none."""
        if not urls:
            return ()
        existing = {UUID(row.id): row.details.named_on for row in await self._records.by_ids(Callback, urls)}
        today = self._clock().date()
        return [self._command(key, client, url, new=key not in existing) for key, url in urls.items() if existing.get(key) != today]

    def _command(self, key: UUID, client: str, url: str, *, new: bool) -> NameCallback:
        signing = self._vault.encrypt(self._new_signing_secret(), owner=Callback.stream(key))
        return NameCallback(key, client, url, signing, new=new)
