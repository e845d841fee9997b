"""The text `publicationJson`: a JSON object with `title`, `description`, `callbackUrls`, and members that only the target
interprets.

Its secrets are encrypted and stored apart, and so are addresses of callbacks with user info or a query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as hidden
from typing import Any, Final

from domain.channel.secrets import Split, merge_secrets, opened, split
from domain.destination.targets import SECRETS
from domain.kernel.encryption import EncryptedSecret, SecretRef, stored_or_new
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.json_document import json_object
from domain.kernel.ports import Vault
from domain.publication.values import PublicationText

LONGEST_TEXT: Final = 64 * 1024
_SHARED: Final = ("title", "description")
_CALLBACKS: Final = "callbackUrls"


@dataclass(frozen=True, slots=True)
class SentText:
    """A checked publicationJson. `field` is its path in the request; each of `callback_urls` comes with the path of its field."""

    field: str
    title: str
    description: str
    callback_urls: Sequence[tuple[str, str]] = hidden(repr=False)
    options: Split = hidden(repr=False)

    def all_options(self) -> dict[str, Any]:
        """Return the options with the secrets that were sent."""
        document = opened(self.options.text, self.options.sent, members=SECRETS)
        return document if isinstance(document, dict) else {}


def parse_text(text: str, *, field: str) -> SentText:
    """Parse a text. Raises `Malformed` with the path of what is wrong."""
    if len(text) > LONGEST_TEXT:
        raise Malformed.at(field, f"must have at most {LONGEST_TEXT} characters")
    members = json_object(text, field=field)
    split(text, field=field, members=SECRETS)
    for name in _SHARED:
        if not isinstance(members.get(name) or "", str):
            raise Malformed.at(f"{field}.{name}", "must be a string")
    urls = members.get(_CALLBACKS) or []
    if not isinstance(urls, list):
        raise Malformed.at(f"{field}.{_CALLBACKS}", "must be an array")
    faults = [index for index, url in enumerate(urls) if not isinstance(url, str)]
    if faults:
        raise Malformed(*(FieldError(f"{field}.{_CALLBACKS}[{index}]", "must be a string") for index in faults))
    options = {name: value for name, value in members.items() if name not in (*_SHARED, _CALLBACKS)}
    return SentText(
        field,
        members.get("title") or "",
        members.get("description") or "",
        [(f"{field}.{_CALLBACKS}[{index}]", url) for index, url in enumerate(urls)],
        split(json.dumps(options, ensure_ascii=False), field=field, members=SECRETS),
    )


class TextSecrets:
    """Encrypts the secrets of one publication. The command that stores it passes `encrypted` to the vault."""

    def __init__(self, vault: Vault, owner: str) -> None:
        self._vault = vault
        self._owner = owner
        self.encrypted: list[EncryptedSecret] = []

    def sealed(self, secret: str) -> SecretRef:
        self.encrypted.append(self._vault.encrypt(secret, owner=self._owner))
        return self.encrypted[-1].ref

    def of_options(self, sent: Split, *, stored: Mapping[str, SecretRef]) -> dict[str, SecretRef]:
        """Return the secrets after a write. A secret that is null or absent stays while its object exists, and "" clears it."""
        refs = {
            path: stored_or_new(stored.get(path), self.sealed(secret)) if secret else None for path, secret in sent.sent.items()
        }
        return merge_secrets(stored, refs, holders=sent.holders)


async def options_with_secrets(text: PublicationText, vault: Vault, *, owner: str) -> dict[str, Any]:
    """Return the options with their secrets."""
    read = {place: await vault.read(ref.reference, owner=owner) for place, ref in text.secrets.items()}
    secrets = {place: secret for place, secret in read.items() if secret is not None}
    document = opened(text.options_json, secrets, members=SECRETS)
    return document if isinstance(document, dict) else {}
