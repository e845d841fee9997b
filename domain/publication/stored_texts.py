"""What is stored of a publicationJson: the text, its secrets in the vault, and its callbacks under names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.named_callback import NamedCallback
from domain.kernel.ports import Vault
from domain.publication.aggregate import Publication
from domain.publication.texts import SentText, TextSecrets, parse_text
from domain.publication.values import PublicationText
from domain.webhook.callback_url import CallbackUrl
from domain.webhook.naming import CallbackNaming


@dataclass(frozen=True, slots=True)
class SettledText:
    """What is stored of a text: `sealed` are its encrypted secrets, `named` the commands for its callbacks."""

    text: PublicationText
    sealed: Sequence[EncryptedSecret]
    named: Sequence[Command[Any]]


class PublicationTexts:
    """Checks a publicationJson, and makes of it what is stored."""

    def __init__(self, callbacks: CallbackNaming, vault: Vault) -> None:
        self._callbacks = callbacks
        self._vault = vault

    def parsed(self, text: str, *, field: str) -> SentText:
        """Raises `Malformed` with the path of what is wrong."""
        sent = parse_text(text, field=field)
        self._callbacks.checked("", sent.callback_urls)  # what is wrong with an address is so for every client
        return sent

    async def settle(self, sent: SentText, stored: PublicationText | None, *, key: UUID, client: str) -> SettledText:
        held = TextSecrets(self._vault, Publication.stream(key))
        addresses = self._callbacks.checked(client, sent.callback_urls)
        before = {} if stored is None else {callback.id: callback for callback in stored.callbacks}
        callbacks = tuple(
            before.get(name) if not url.has_secret_part and name in before else _callback(name, url, held)
            for name, url in addresses.items()
        )
        refs = held.of_options(sent.options, stored={} if stored is None else stored.secrets)
        text = PublicationText(
            title=sent.title,
            description=sent.description,
            options_json=sent.options.text,
            secrets=refs,
            callbacks=tuple(callback for callback in callbacks if callback is not None),
        )
        named = await self._callbacks.named(client, {name: url.shown for name, url in addresses.items()})
        return SettledText(text, tuple(held.encrypted), named)


def _callback(key: UUID, url: CallbackUrl, held: TextSecrets) -> NamedCallback:
    return NamedCallback(id=key, url=url.shown, sealed_url=held.sealed(url.whole) if url.has_secret_part else None)
