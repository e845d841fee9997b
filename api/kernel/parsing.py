"""The framework's parsers for code outside of route parameters. Their errors are the domain's `Malformed`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api.http import parsing as http
from api.http.errors import BadRequest
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.strict_json import NotStrict, path_inside, strict_json


def parse_body(raw: bytes | str, *, where: str = "body") -> Any:
    """Parse strict JSON for the framework. Raise `BadRequest`, which names the member, or `where` for the whole body."""
    try:
        return strict_json(raw)
    except NotStrict as fault:
        raise BadRequest.at(path_inside("", fault.steps) or where, fault.message) from None


def parse_json(raw: bytes | str, *, where: str = "body") -> Any:
    with _malformed():
        return parse_body(raw, where=where)


class Validator:
    """The validation of a type, built once."""

    __slots__ = ("_inner",)

    def __init__(self, annotation: Any, *, where: str) -> None:
        self._inner = http.Validator(annotation, where=where)

    def read(self, data: Any) -> Any:
        with _malformed():
            return self._inner.read(data)


@contextmanager
def _malformed() -> Iterator[None]:
    try:
        yield
    except BadRequest as wrong:
        raise Malformed(*(FieldError(error.field, error.message) for error in wrong.errors)) from None
