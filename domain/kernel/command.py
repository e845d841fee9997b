"""A command: a request to change one aggregate, as a value. Its `decide` is pure and does not access storage.

Most commands are made from a decision of an aggregate: `MediaEvent.change_state.on(key, state, trigger=trigger)`. A command that
decides more has a class of its own, for instance if it adds an aggregate or changes an existing one, or if it checks its input
before it looks for the aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload
from uuid import UUID

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import NotFound, PlanOutdated

R = TypeVar("R", bound=AggregateRoot)
K = TypeVar("K")
P = ParamSpec("P")

Key = UUID | int | str
"""The key of an aggregate."""


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


@dataclass(frozen=True, repr=False)
class _Call(Command[R]):
    """A call of a method of the class `of`, to which the executor adds the time. The representation does not show the arguments,
    because they may be texts of clients."""

    of: type[R]
    method: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(hash=False)
    sealed: Sequence[EncryptedSecret] = ()

    def kind(self) -> type[R]:
        return self.of

    def with_secrets(self, sealed: Sequence[EncryptedSecret]) -> Self:
        """Return this command with encrypted secrets, to which the arguments refer."""
        return replace(self, sealed=sealed)

    def __repr__(self) -> str:
        return f"<{self.of.__name__}.{self.method.__name__} on {self.stream}>"


@dataclass(frozen=True, repr=False)
class DecisionCommand(_Call[R]):
    """A command that calls a decision of an existing aggregate."""

    ignore_missing_links: bool = False
    planned: bool = False
    version: int | None = None

    def as_planned(self, version: int | None = None) -> Self:
        """Return this command as a part of a plan that has read the aggregate. If the aggregate has another version than `version`
        or, without a version, no longer exists, the plan is made again (`PlanOutdated`). The version of no aggregate is 0."""
        return replace(self, planned=True, version=version)

    def decide(self, root: R | None, *, at: datetime) -> R:
        if self.version is not None and self.version != (0 if root is None else root.version):
            raise PlanOutdated(self.of.KIND, str(self.key))
        try:
            return super().decide(root, at=at)
        except NotFound:
            if self.planned and self.version is None:
                raise PlanOutdated(self.of.KIND, str(self.key)) from None
            raise

    def act(self, root: R, *, at: datetime) -> None:
        self.method(root, at, *self.arguments, **self.keywords)


@dataclass(frozen=True, repr=False)
class CreationCommand(_Call[R]):
    """A command that creates an aggregate. A key is made once, so an existing aggregate is the result of the same command."""

    @property
    def creates(self) -> bool:
        return True

    def decide(self, root: R | None, *, at: datetime) -> R:
        if root is not None:
            return root
        created: R = self.method(self.of, self.key, at, *self.arguments, **self.keywords)
        return created


class DecisionOf(Generic[R, P]):
    """A decision of an aggregate class, from which commands are made."""

    __slots__ = ("_ignore_missing_links", "_of", "method")

    def __init__(self, of: type[R], method: Callable[..., None], *, ignore_missing_links: bool) -> None:
        self._of = of
        self.method = method
        self._ignore_missing_links = ignore_missing_links

    def on(self, key: Key, /, *args: P.args, **kwargs: P.kwargs) -> DecisionCommand[R]:
        """Return the command that makes this decision on the aggregate with this key."""
        return DecisionCommand(key, self._of, self.method, args, kwargs, ignore_missing_links=self._ignore_missing_links)


class CreationOf(Generic[R, K, P]):
    """A class method that creates an aggregate, and from which commands are made."""

    __slots__ = ("_of", "method")

    def __init__(self, of: type[R], method: Callable[..., R]) -> None:
        self._of = of
        self.method = method

    def __call__(self, key: K, at: datetime, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.method(self._of, key, at, *args, **kwargs)

    def on(self, key: K, /, *args: P.args, **kwargs: P.kwargs) -> CreationCommand[R]:
        """Return the command that creates an aggregate with this new key."""
        return CreationCommand(key, self._of, self.method, args, kwargs)


class DecisionMethod(Generic[P]):
    """The descriptor that `decision` makes of a method."""

    def __init__(self, method: Callable[Concatenate[Any, datetime, P], None], *, ignore_missing_links: bool) -> None:
        self._method = method
        self._ignore_missing_links = ignore_missing_links
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[R]) -> DecisionOf[R, P]: ...

    @overload
    def __get__(self, instance: R, owner: type[R]) -> Callable[Concatenate[datetime, P], None]: ...

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return DecisionOf(owner, self._method, ignore_missing_links=self._ignore_missing_links)
        return self._method.__get__(instance, owner)


class CreationMethod(Generic[K, P]):
    """The descriptor that `creation` makes of a class method."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: object, owner: type[R]) -> CreationOf[R, K, P]:
        return CreationOf(owner, self._method)


_Decides = Callable[Concatenate[Any, datetime, P], None]


@overload
def decision(method: _Decides[P], /) -> DecisionMethod[P]: ...


@overload
def decision(*, ignore_missing_links: bool) -> Callable[[_Decides[P]], DecisionMethod[P]]: ...


def decision(method: Any = None, /, *, ignore_missing_links: bool = False) -> Any:
    """Decorate a public method of an aggregate that decides.

    The first argument is the time of the decision. An instance has the method as it is written. On the class, `on` makes a command
    without the time, which is added when the command is executed. With `ignore_missing_links` such a command accepts links to
    targets that no longer exist.
    """
    decorate = partial(DecisionMethod[Any], ignore_missing_links=ignore_missing_links)
    return decorate if method is None else decorate(method)


def creation(method: Callable[Concatenate[Any, K, datetime, P], AggregateRoot], /) -> CreationMethod[K, P]:
    """Decorate a class method that creates an aggregate. The first arguments are the key, which no aggregate has yet, and the time.
    `on` makes a command without the time."""
    return CreationMethod(cast("classmethod[Any, Any, Any]", method).__func__)
