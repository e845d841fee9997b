"""Names and values from a query string or a form: strict percent-decoding, names in any case, repeats for lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from api.http.errors import BadRequest
from api.http.model import Wire
from api.http.parsing import Validator
from api.http.unknown_names import UnknownName, unknown_in_names

Pairs = list[tuple[str, str]]
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


def split_pairs(raw: bytes, *, where: str) -> Pairs:
    """`a=1&b=x+y&c`: `+` is a space, a name without `=` has the empty value, empty parts do not count."""
    pairs: Pairs = []
    for part in raw.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((_decode(name, where), _decode(value, where)))
    return pairs


def _decode(raw: bytes, where: str) -> str:
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        if not _well_escaped(raw):
            raise BadRequest.at(where, "has a % that is not followed by two hexadecimal digits")
        raw = unquote_to_bytes(raw)
    return decode_text(raw, where=where)


def decode_text(raw: bytes, *, where: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest.at(where, "is not UTF-8") from None
    if "\0" in text:
        raise BadRequest.at(where, "may not have a NUL character")
    return text


def _well_escaped(raw: bytes) -> bool:
    return all(len(rest) >= 2 and rest[0] in _HEX and rest[1] in _HEX for rest in raw.split(b"%")[1:])


def fold(pairs: Iterable[tuple[str, str]], *, lists: frozenset[str], model: type[Wire] | None) -> dict[str, Any]:
    """One value per name: a list where the model wants one, else the last. Names in the model's own spelling if it has them."""
    spellings = {} if model is None else model.spellings()
    folded: dict[str, Any] = {}
    for name, value in pairs:
        known = spellings.get(name.lower(), name)
        if known in lists:
            folded.setdefault(known, []).append(value)
        else:
            folded[known] = value
    return folded


class QueryParser:
    """A query string as a `Wire` model. Two spellings of one name are the same name sent twice."""

    __slots__ = ("_documented", "_lists", "_model", "_validator")

    def __init__(self, model: type[Wire]) -> None:
        self._model = model
        self._lists = model.lists()
        self._documented = frozenset(model.spellings().values())
        self._validator = Validator(model, where="query")

    def parse(self, raw: bytes, unknown: list[UnknownName]) -> Any:
        """`unknown` gets the names that are no parameters."""
        if not raw:
            return self._validator.read({})
        folded = fold(split_pairs(raw, where="query"), lists=self._lists, model=self._model)
        if not folded.keys() <= self._documented:
            unknown.extend(unknown_in_names(folded, self._model.spellings()))
        return self._validator.read(folded)
