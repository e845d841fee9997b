"""The callbacks of a request for infrastructure, from the URLs in the infrastructure profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from domain.kernel.encryption import EncryptedSecret, stored_or_new
from domain.kernel.errors import Malformed, Refused
from domain.kernel.named_callback import NamedCallback
from domain.kernel.ports import Vault
from domain.webhook.callback import CallbackUrl
from domain.webhook.callback_naming import CallbackNaming
from domain.webhook.commands import NameCallback

_FIELD: Final = "request.callbackUrls"


@dataclass(frozen=True, slots=True)
class RequestedCallbacks:
    """Callbacks with the commands that create or keep them, and the secrets of the request."""

    callbacks: tuple[NamedCallback, ...] = ()
    commands: Sequence[NameCallback] = ()
    sealed: Sequence[EncryptedSecret] = field(default=(), repr=False)


class ProvisionCallbacks:
    """Checks callback addresses as for jobs, and encrypts their secret parts for the vault."""

    def __init__(self, naming: CallbackNaming, vault: Vault) -> None:
        self._naming = naming
        self._vault = vault

    async def of(self, client: str, urls: Sequence[str], *, owner: str, before: Sequence[NamedCallback]) -> RequestedCallbacks:
        """Return the callbacks of these URLs. `owner` is the stream of the Provision Info, `before` are its present callbacks.
        Raises `Refused`."""
        if not urls:
            return RequestedCallbacks()
        try:
            addresses = self._naming.checked(client, [(f"{_FIELD}[{index}]", url) for index, url in enumerate(urls)])
        except Malformed as wrong:
            raise Refused(f"the infrastructure profile is not valid: {wrong}") from None
        existing = {callback.id: callback for callback in before}
        sealed = {key: self._vault.encrypt(url.whole, owner=owner) for key, url in addresses.items() if url.has_secret_part}
        callbacks = tuple(_named(key, url, sealed=sealed, existing=existing) for key, url in addresses.items())
        commands = await self._naming.named(client, {key: url.shown for key, url in addresses.items()})
        return RequestedCallbacks(callbacks, commands, tuple(sealed.values()))


def _named(
    key: UUID, url: CallbackUrl, *, sealed: Mapping[UUID, EncryptedSecret], existing: Mapping[UUID, NamedCallback]
) -> NamedCallback:
    """Return a callback. It keeps its previous secret reference if the secret is the same, because pending deliveries refer to
    it."""
    secret, before = sealed.get(key), existing.get(key)
    ref = None if secret is None else stored_or_new(before.sealed_url if before is not None else None, secret.ref)
    return NamedCallback(id=key, url=url.shown, sealed_url=ref)
