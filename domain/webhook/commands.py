"""Commands of webhooks that other records do not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.webhook.aggregate import SIGNING, URL, Webhook


@dataclass(frozen=True)
class RotateWebhookSecret(Command[Webhook]):
    """Replace the signing secret. `signing` is the new one, encrypted for the webhook's stream."""

    signing: EncryptedSecret

    def kind(self) -> type[Webhook]:
        return Webhook

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        return (self.signing,)

    def act(self, root: Webhook, *, at: datetime) -> None:
        root.rotate(self.signing.ref, at=at)


@dataclass(frozen=True)
class EnsureCallback(Command[Webhook]):
    """Make the callback of an address that a job of `client` names. An existing one, disabled or not, is left as it is.

    `signing` is the secret of a new callback. `whole` is the address with its user info and query; None when it has neither. `url`
    has none of both."""

    client: str
    url: str
    signing: EncryptedSecret
    whole: EncryptedSecret | None = None

    def kind(self) -> type[Webhook]:
        return Webhook

    @property
    def creates(self) -> bool:
        """The look-up found no callback. Where another request makes it meanwhile, the append fails and is tried again."""
        return True

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        return (self.signing,) if self.whole is None else (self.signing, self.whole)

    def decide(self, root: Webhook | None, *, at: datetime) -> Webhook:
        if root is None:
            return Webhook.register(self.key, self._values(), at=at)
        if root.deleted:
            root.restore(self._values(), at=at)
        return root

    def _values(self) -> Mapping[str, Any]:
        secrets = {SIGNING: self.signing.ref, **({} if self.whole is None else {URL: self.whole.ref})}
        return {"job_client": self.client, "webhook_url": self.url, "secrets": secrets}
