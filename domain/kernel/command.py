"""A command: a request to change one aggregate, as a value. Its `decide` is pure and knows no storage."""

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
    """Base of all commands: `key` names the aggregate, `kind` is its class."""

    key: object

    @property
    def creates(self) -> bool:
        """Whether the key is new, made for this command: then there is no aggregate to load."""
        return False

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        """Encrypted secrets of the command. Those that the aggregate keeps are stored in the vault, in the same append."""
        return ()

    @property
    def ignore_missing_links(self) -> bool:
        """Whether links whose targets no longer exist are accepted, as for a command that restores an aggregate."""
        return False

    def kind(self) -> type[R]:
        raise NotImplementedError(type(self).__name__)

    @property
    def stream(self) -> str:
        return self.kind().stream(self.key)

    def decide(self, root: R | None, *, at: datetime) -> R:
        """Return the aggregate with its new events pending, or refuse with a `DomainError`."""
        if root is None:
            raise NotFound(self.kind().KIND, str(self.key))
        self.act(root, at=at)
        return root

    def act(self, root: R, *, at: datetime) -> None:
        """Change an existing aggregate. A command that may create one overrides `decide` instead."""
        raise NotImplementedError(type(self).__name__)
