"""A command: what somebody wants of one aggregate, as a value. Its `decide` is pure and knows no storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.errors import NotFound
from domain.kernel.sealed import Sealed

R = TypeVar("R", bound=AggregateRoot)


@dataclass(frozen=True)
class Command(Generic[R]):
    """Base of all commands: `key` names the aggregate that is meant, `kind` its class."""

    key: object

    @property
    def fresh(self) -> bool:
        """Whether the key was made for this very command, so that there can be nothing to load under it."""
        return False

    @property
    def sealed(self) -> Sequence[Sealed]:
        """Secrets that came with the command; those that the aggregate takes are kept in the vault, in the same append."""
        return ()

    @property
    def forgiving(self) -> bool:
        """Whether links to what is gone are let be: something comes back as it was."""
        return False

    def kind(self) -> type[R]:
        raise NotImplementedError(type(self).__name__)

    @property
    def stream(self) -> str:
        return self.kind().stream(self.key)

    def decide(self, root: R | None, *, at: datetime) -> R:
        """Give the aggregate back with what happened pending on it, or refuse with a `DomainError`."""
        if root is None:
            raise NotFound(self.kind().KIND, str(self.key))
        self.act(root, at=at)
        return root

    def act(self, root: R, *, at: datetime) -> None:
        """What a command on something that exists does; one that may create overrides `decide` instead."""
        raise NotImplementedError(type(self).__name__)
