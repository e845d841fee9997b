"""Names that are not documented, in bodies and queries: where they stand, and which name may have been meant.

Whether they are refused is the surface's rule and the caller's preference: docs/reference/api/conventions.md#unknown-names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin
from urllib.parse import quote, unquote_to_bytes

from api.http.errors import FieldError
from api.http.model import Wire, wire_names

MOST: Final = 20
"""Names that are told; a hostile body may have thousands."""
_LONGEST: Final = 40
_BEGINNING: Final = 8
_CLOSE: Final = 0.7
_CACHED: Final = 1024
_LISTS: Final = (list, tuple, set, frozenset)
_IN_QUOTES: Final = " !#$&'()*+,/:;<=>?@[]^`{|}"


class UnknownName(NamedTuple):
    """`place` is where it stands, such as `tags[2].nam`."""

    place: str
    meant: str | None

    @property
    def error(self) -> FieldError:
        return FieldError(self.place, "is unknown" if self.meant is None else f"is unknown; did you mean {self.meant}?")


def warning(names: Iterable[UnknownName]) -> tuple[bytes, bytes]:
    """The header Warning, in ASCII: a name comes from a request, so it must not end the quotes, nor the line."""
    told = (name.place if name.meant is None else f"{name.place} (did you mean {name.meant}?)" for name in names)
    return b"warning", f'299 - "unknown: {quote("; ".join(told), safe=_IN_QUOTES)}"'.encode("ascii")


def unknown_in_names(names: Iterable[str], spellings: Mapping[str, str]) -> list[UnknownName]:
    """Of a query or a form."""
    return [_unknown(name, "", spellings) for name in names if name.lower() not in spellings][:MOST]


def names_of_query(raw: bytes) -> list[str]:
    """The names in a query of a route that has no parameters. What is wrong with it otherwise does not matter there."""
    parts = raw.replace(b"+", b" ").split(b"&", MOST + 1)[: MOST + 1]
    return [unquote_to_bytes(part.partition(b"=")[0]).decode("utf-8", "replace") for part in parts if part]


def unknown_in_body(annotation: Any, data: Any) -> list[UnknownName]:
    """Walks along what was sent and the models that it was read as."""
    found: list[UnknownName] = []
    _walk(annotation, data, place="", found=found)
    return found


def lists_of_objects(model: type[Wire]) -> Mapping[str, Mapping[str, str]]:
    """The fields of a model that hold lists of objects, with the accepted spellings of the members of these objects."""
    found: dict[str, dict[str, str]] = {}
    for name, annotation in _fields(model).items():
        for item in _models(_items(annotation)):
            found.setdefault(name, {}).update(item.spellings())
    return found


def _walk(annotation: Any, data: Any, *, place: str, found: list[UnknownName]) -> None:
    if isinstance(data, list):
        items = _items(annotation)
        for index, item in enumerate(data if items else ()):
            if len(found) >= MOST:
                return
            _walk(items, item, place=f"{place}[{index}]", found=found)
    elif isinstance(data, dict) and (models := _models(annotation)):
        known: dict[str, str] = {}
        for model in models:
            known.update(model.spellings())
        for key, value in data.items():
            if len(found) >= MOST:
                return
            documented = known.get(key.lower())
            if documented is not None:
                inner = tuple(_fields(model).get(documented) for model in models)
                _walk(inner, value, place=f"{place}.{documented}" if place else documented, found=found)
            elif all(model.model_config.get("extra") == "ignore" for model in models):
                found.append(_unknown(key, place, known))


def _unknown(key: str, place: str, known: Mapping[str, str]) -> UnknownName:
    """What is long is no misspelled name, and may be a secret in the wrong place."""
    shown = key if len(key) <= _LONGEST else f"{key[:_BEGINNING]}... ({len(key)} characters)"
    close = get_close_matches(key.lower(), known, 1, _CLOSE) if len(key) <= _LONGEST else []
    return UnknownName(f"{place}.{shown}" if place else shown, known[close[0]] if close else None)


@lru_cache(_CACHED)
def _fields(model: type[Wire]) -> Mapping[str, Any]:
    return {wire_names(model, name)[0]: field.annotation for name, field in model.model_fields.items()}


@lru_cache(_CACHED)
def _models(annotation: Any) -> tuple[type[Wire], ...]:
    """The models that an object may be read as."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return (annotation,)
    return tuple(dict.fromkeys(model for part in _choices(annotation) for model in _models(part)))


@lru_cache(_CACHED)
def _items(annotation: Any) -> tuple[Any, ...]:
    """What the items of a list may be read as."""
    if (get_origin(annotation) or annotation) in _LISTS:
        return get_args(annotation)
    return tuple(item for part in _choices(annotation) for item in _items(part))


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The parts of a union, and what is annotated. A tuple stands for a union too."""
    if isinstance(annotation, tuple):
        return annotation
    origin = get_origin(annotation)
    if origin in (*_LISTS, dict):
        return ()
    arguments = get_args(annotation)
    return arguments[:1] if origin is Annotated else arguments
