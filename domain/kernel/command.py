"""A command: a request to change one aggregate, as a value. Its `decide` is pure and does not access storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import NotFound

R = TypeVar("R", bound=AggregateRoot)


@dataclass(frozen=True)
class Command(Generic[R]):
    """Base of all commands. `key` names the aggregate, and `kind` returns its class."""

    key: object

    @property
    def creates(self) -> bool:
        """True if the key was generated for this command, so there is no aggregate to load."""
        return False

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        """Encrypted secrets of the command. The append stores those that the aggregate references in the vault."""
        return ()

    @property
    def ignore_missing_links(self) -> bool:
        """True if links to targets that no longer exist are accepted, as for a command that restores an aggregate."""
        return False

    def kind(self) -> type[R]:
        raise NotImplementedError(type(self).__name__)

    @property
    def stream(self) -> str:
        return self.kind().stream(self.key)

    def decide(self, root: R | None, *, at: datetime) -> R:
        """Return the aggregate with its new events pending, or raise a `DomainError`."""
        if root is None:
            raise NotFound(self.kind().KIND, str(self.key))
        self.act(root, at=at)
        return root

    def act(self, root: R, *, at: datetime) -> None:
        """Change an existing aggregate. A command that may create one overrides `decide` instead."""
        raise NotImplementedError(type(self).__name__)
