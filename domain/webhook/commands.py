"""Commands of webhooks and callbacks that other records do not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.webhook.callback import Callback
from domain.webhook.endpoint import SIGNING


@dataclass(frozen=True)
class NameCallback(Command[Callback]):
    """Create the callback for an address that a job of `client` names, or keep the existing one, disabled or not.

    `url` has neither user info nor query. `signing` is the secret of a new callback.
    """

    client: str
    url: str
    signing: EncryptedSecret
    new: bool = field(default=False, kw_only=True)

    def kind(self) -> type[Callback]:
        return Callback

    @property
    def creates(self) -> bool:
        """True if the look-up found no callback. If another request creates it meanwhile, the append fails and is tried again."""
        return self.new

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        return (self.signing,)

    def decide(self, root: Callback | None, *, at: datetime) -> Callback:
        values = {
            "client": self.client,
            "webhook_url": self.url,
            "named_on": at.date(),
            "secrets": {SIGNING: self.signing.ref},
        }
        if root is None:
            return Callback.register(self.key, at, values)
        if root.deleted:
            root.restore(at, values)
        else:
            root.name(at)
        return root
