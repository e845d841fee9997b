"""Names and values from a query string or a form: strict percent-decoding, names in any case, repeats for lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from re import compile as regex
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from api.http.errors import BadRequest
from api.http.model import SentFile, Wire
from api.http.parsing import Validator
from api.http.unknown_names import UnknownName, unknown_in_names

Pairs = list[tuple[str, str]]
FormPairs = Sequence[tuple[str, str | SentFile]]
_BLANK_FOR_PLUS: Final = regex(r"^([\dW-]+[Tt ]\d\d[\d:.,]*) (?=\d\d(?::?\d\d)?$)")
_ENTRY: Final = regex(r"(\w+)\[([0-9]{1,9})\](?:\.([^\[\].]+)|\[([^\[\]]+)\])")
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


def fold(pairs: Iterable[tuple[str, str | SentFile]], *, lists: frozenset[str], model: type[Wire] | None) -> dict[str, Any]:
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


def gather(pairs: FormPairs, *, objects: Mapping[str, Mapping[str, str]], model: type[Wire]) -> tuple[FormPairs, dict[str, Any]]:
    """Take the members of objects in lists out of the pairs of a form. Each is a field such as `Tags[0].name` or `Tags[0][name]`.

    Return the other pairs, and the lists by the names of their fields. The numbers order a list, and need not be without gaps."""
    spellings = model.spellings()
    rest: list[tuple[str, str | SentFile]] = []
    lists: dict[str, dict[int, dict[str, str | SentFile | None]]] = {}
    sent: dict[tuple[str, int, str], str] = {}
    for name, value in pairs:
        entry = _ENTRY.fullmatch(name)
        known = spellings.get(entry[1].lower()) if entry else None
        if entry is None or known is None or known not in objects:
            rest.append((name, value))
            continue
        index, spelled = int(entry[2]), entry[3] or entry[4]
        member = objects[known].get(spelled.lower(), spelled)
        if sent.setdefault((known, index, member), name) != name:
            raise BadRequest.at(name, "is there twice, in two spellings")
        lists.setdefault(known, {}).setdefault(index, {})[member] = value or None
    for name, _ in rest:
        if spellings.get(name.lower()) in lists:
            raise BadRequest.at(name, "is there twice, as one field and as several")
    return rest, {name: [entries[index] for index in sorted(entries)] for name, entries in lists.items()}


class QueryParser:
    """A query string as a `Wire` model. Two spellings of one name are the same name sent twice.

    With `empty_is_absent` a parameter that may be absent and is sent empty is absent, as a search form sends it."""

    __slots__ = ("_date_times", "_documented", "_lists", "_model", "_optional", "_validator")

    def __init__(self, model: type[Wire], *, empty_is_absent: bool = False) -> None:
        self._model = model
        self._optional = model.optional() if empty_is_absent and not model.EMPTY_IS_SENT else frozenset()
        self._date_times = model.date_times()
        self._lists = model.lists()
        self._documented = frozenset(model.spellings().values())
        self._validator = Validator(model, where="query")

    def parse(self, raw: bytes, unknown: list[UnknownName]) -> Any:
        """`unknown` gets the names that are no parameters."""
        if not raw:
            return self._validator.read({})
        pairs = split_pairs(raw, where="query")
        if self._optional:
            pairs = [(name, value) for name, value in pairs if value or name.lower() not in self._optional]
        folded = fold(pairs, lists=self._lists, model=self._model)
        for name in self._date_times & folded.keys():
            if " " in folded[name]:
                folded[name] = _BLANK_FOR_PLUS.sub(r"\1+", folded[name])
        if not folded.keys() <= self._documented:
            unknown.extend(unknown_in_names(folded, self._model.spellings()))
        return self._validator.read(folded)
