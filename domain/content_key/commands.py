"""Commands on content keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.content_key.aggregate import ContentKey, Purpose, Usage
from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret


@dataclass(frozen=True)
class IssueContentKey(Command[ContentKey]):
    """Issue a key, or import one. An existing key stays as it is.

    With a `speke_version` the first use, for `systems`, is recorded too.
    """

    key: UUID
    purpose: Purpose
    iv: bytes
    secret: EncryptedSecret
    imported: bool = False
    systems: tuple[str, ...] = ()
    speke_version: str = ""

    def kind(self) -> type[ContentKey]:
        return ContentKey

    @property
    def creates(self) -> bool:
        """True because the handler has not found the key. If it was issued since, the append fails and the key is loaded."""
        return True

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        return (self.secret,)

    def decide(self, root: ContentKey | None, *, at: datetime) -> ContentKey:
        if root is None:
            issued = ContentKey.issue(self.key, at, self.purpose, iv=self.iv, sealed_key=self.secret.ref, imported=self.imported)
            if self.speke_version:
                issued.record_usage(at, Usage(1, at, at, self.systems, (self.speke_version,)))
            return issued
        root.check_content_id(self.purpose.content_id)
        return root
