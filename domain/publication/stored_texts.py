"""The stored form of a publicationJson: the text, its secrets in the vault, and its callbacks."""

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
from domain.webhook.callback import CallbackUrl
from domain.webhook.callback_naming import CallbackNaming


@dataclass(frozen=True, slots=True)
class SettledText:
    """The stored form of a text. `sealed` are its encrypted secrets, `named` the commands for its callbacks."""

    text: PublicationText
    sealed: Sequence[EncryptedSecret]
    named: Sequence[Command[Any]]


class PublicationTexts:
    """Checks a publicationJson, and converts it to its stored form."""

    def __init__(self, callbacks: CallbackNaming, vault: Vault) -> None:
        self._callbacks = callbacks
        self._vault = vault

    def parsed(self, text: str, *, field: str) -> SentText:
        """Parse a text. Raises `Malformed` with the path of what is wrong."""
        sent = parse_text(text, field=field)
        self._callbacks.checked("", sent.callback_urls)  # what is wrong with an address is so for every client
        return sent

    async def settle(self, sent: SentText, stored: PublicationText | None, *, key: UUID, client: str) -> SettledText:
        text_secrets = TextSecrets(self._vault, Publication.stream(key))
        addresses = self._callbacks.checked(client, sent.callback_urls)
        before = {} if stored is None else {callback.id: callback for callback in stored.callbacks}
        callbacks = tuple(
            before.get(name) if not url.has_secret_part and name in before else _callback(name, url, text_secrets)
            for name, url in addresses.items()
        )
        refs = text_secrets.of_options(sent.options, stored={} if stored is None else stored.secrets)
        text = PublicationText(
            title=sent.title,
            description=sent.description,
            options_json=sent.options.text,
            secrets=refs,
            callbacks=tuple(callback for callback in callbacks if callback is not None),
        )
        named = await self._callbacks.named(client, {name: url.shown for name, url in addresses.items()})
        return SettledText(text, tuple(text_secrets.encrypted), named)


def _callback(key: UUID, url: CallbackUrl, text_secrets: TextSecrets) -> NamedCallback:
    return NamedCallback(id=key, url=url.shown, sealed_url=text_secrets.sealed(url.whole) if url.has_secret_part else None)
