"""All that can be asked of a content key. spec/1, "What the service does"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.content_key.aggregate import Answers, ContentKey, Purpose
from domain.kernel.command import Command
from domain.kernel.sealed import Sealed


@dataclass(frozen=True)
class _ContentKeyCommand(Command[ContentKey]):
    key: UUID

    def kind(self) -> type[ContentKey]:
        return ContentKey


@dataclass(frozen=True)
class IssueContentKey(_ContentKeyCommand):
    """A first request, or a key brought along. Who comes second finds the key that is there and takes nothing from it.

    A request is answered with the key that it issues, for `systems`, in `speke_version`; that is recorded at once."""

    purpose: Purpose
    iv: bytes
    secret: Sealed
    imported: bool = False
    systems: tuple[str, ...] = ()
    speke_version: str = ""

    @property
    def fresh(self) -> bool:
        """It was looked for and not found. Who was overtaken since is told by the stream, and looks again."""
        return True

    @property
    def sealed(self) -> Sequence[Sealed]:
        return (self.secret,)

    def decide(self, root: ContentKey | None, *, at: datetime) -> ContentKey:
        if root is None:
            made = ContentKey.issue(self.key, self.purpose, iv=self.iv, sealed_key=self.secret.ref, imported=self.imported, at=at)
            if self.speke_version:
                made.record(Answers(1, at, at, self.systems, (self.speke_version,)), at=at)
            return made
        root.must_be_of(self.purpose.content_id)
        return root


@dataclass(frozen=True)
class RecordAnswers(_ContentKeyCommand):
    """The key was given out, some times since this was last recorded."""

    answers: Answers

    def act(self, root: ContentKey, *, at: datetime) -> None:
        root.record(self.answers, at=at)
