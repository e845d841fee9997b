"""Services by type. The container makes a service from the types of its constructor's parameters, once, at its first use.

A class whose parameters are themselves services needs no entry here. `bind` names what makes any other type: a port, a type that
needs settings, or one whose module a process imports only if it needs it. `give` hands in an object that exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from inspect import Parameter, signature, unwrap
from pkgutil import resolve_name
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

S = TypeVar("S")


class _Parameter(NamedTuple):
    name: str
    kind: Any
    has_default: bool


class Container:
    """The services of one process. Each is made once; a `scope` makes its own."""

    def __init__(self, makers: Mapping[Any, Any] | None = None) -> None:
        self._makers: dict[Any, Any] = dict(makers or {})
        self._given: dict[Any, Any] = {Container: self}
        self._made: dict[Any, Any] = {}
        self._chain: list[Any] = []
        """The services under construction, each of which is made for the one before it."""

    def give(self, kind: Any, service: Any) -> None:
        """Hand in the object of this type, instead of what would make one."""
        self._given[kind] = service

    def bind(self, makers: Mapping[Any, Any]) -> None:
        """Name what makes the objects of types: a class, a function with services as parameters, or `module:name` of either. A key
        is a type, or `module:name` of a class that is imported only when it is needed."""
        for kind, maker in makers.items():
            if kind in self._makers:
                raise ValueError(f"there are two providers of {_name(kind)}")
            self._makers[kind] = maker

    def scope(self) -> Container:
        """Return a container with the same providers and given objects, which makes all other services itself."""
        scope = Container(self._makers)
        scope._given = {**self._given, Container: scope}
        return scope

    @property
    def made(self) -> Iterable[Any]:
        """The objects that this container has made, in the order in which they were made."""
        return self._made.values()

    @property
    def existing(self) -> dict[Any, Any]:
        """The given and the made objects by their types."""
        return {**self._made, **self._given}

    def get(self, kind: type[S]) -> S:
        """Return the service of this type. Raise `LookupError` if there is no provider of it, or of a service that it needs."""
        service: S = self._get(kind)
        return service

    def __getitem__(self, kind: Any) -> Any:
        return self._get(kind)

    def call(self, function: Callable[..., Any] | str, **arguments: Any) -> Any:
        """Call a class or function, or `module:name` of one, with services for all parameters that are not in `arguments`."""
        maker = _resolved(function)
        with self._making(maker):
            return self._call(maker, arguments)

    def _get(self, kind: Any) -> Any:
        if kind in self._given:
            return self._given[kind]
        if kind not in self._made:
            if kind in self._chain:
                raise LookupError(f"{self._names()} needs {_name(kind)}: they need each other")
            with self._making(kind):
                maker = self._maker(kind)
                self._made[kind] = self._get(maker) if isinstance(maker, type) and maker is not kind else self._call(maker, {})
        return self._made[kind]

    @contextmanager
    def _making(self, kind: Any) -> Iterator[None]:
        self._chain.append(kind)
        try:
            yield
        finally:
            self._chain.pop()

    def _names(self) -> str:
        return " needs ".join(map(_name, self._chain))

    def _maker(self, kind: Any) -> Any:
        for key in _keys(kind):
            if key in self._makers:
                return _resolved(self._makers[key])
        if not _can_be_constructed(kind):
            raise LookupError(f"{self._names()}: no provider")
        return kind

    def _call(self, maker: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        try:
            missing = [each for each in _parameters(maker) if each.name not in arguments]
        except NameError as error:
            raise LookupError(f"{self._names()}: {error}; its module must import it at run time") from None
        needed = [each for each in missing if not each.has_default or self._provides(each.kind)]
        return maker(**arguments, **{each.name: self._get(each.kind) for each in needed})

    def _provides(self, kind: Any) -> bool:
        return kind in self._given or any(key in self._makers for key in _keys(kind))


@cache
def _parameters(maker: Callable[..., Any]) -> list[_Parameter]:
    """Return the parameters that services may fill. A parameter with a default is filled only by what was given or bound."""
    if isinstance(maker, type):
        owner = next(each for each in maker.__mro__ if "__init__" in vars(each))
        if owner is object:
            return []
        function: Any = vars(owner)["__init__"]
    else:
        function = unwrap(maker)
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    parameters = [each for each in signature(maker).parameters.values() if each.kind not in variadic]
    written = {each.name: function.__annotations__.get(each.name, Any) for each in parameters}
    hints = get_type_hints(SimpleNamespace(__annotations__=written), globalns=function.__globals__)
    return [_Parameter(each.name, _without_none(hints[each.name]), each.default is not each.empty) for each in parameters]


def _without_none(kind: Any) -> Any:
    kinds = [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) in (Union, UnionType) else []
    return kinds[0] if len(kinds) == 1 else kind


def _keys(kind: Any) -> tuple[Any, ...]:
    return (kind, f"{kind.__module__}:{kind.__qualname__}") if isinstance(kind, type) else (kind,)


def _can_be_constructed(kind: Any) -> bool:
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or getattr(kind, "__abstractmethods__", None):
        return False
    return kind.__module__.partition(".")[0] not in sys.stdlib_module_names


def _resolved(maker: Any) -> Any:
    return resolve_name(maker) if isinstance(maker, str) else maker


def _name(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type | FunctionType) else str(kind)
