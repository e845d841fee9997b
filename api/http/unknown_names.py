"""Names that are not documented, in bodies and queries: where they stand, and which name may have been meant.

The surface and the caller's preference decide if they are refused: docs/reference/api/conventions.md#unknown-names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin
from urllib.parse import parse_qsl, quote

from api.http.errors import FieldError
from api.http.model import Wire

MOST: Final = 20
"""The number of names that are reported; a hostile body may have thousands."""
_LONGEST: Final = 40
_BEGINNING: Final = 8
_CACHED: Final = 1024
"""The number of answers that each function here remembers."""
_CLOSE: Final = 0.7
_LISTS: Final = (list, tuple, set, frozenset)
_IN_QUOTES: Final = " !#$&'()*+,/:;<=>?@[]^`{|}"


class UnknownName(NamedTuple):
    """An unknown name. `place` is where it stands, such as `tags[2].nam`, and `meant` a similar name that is documented."""

    place: str
    meant: str | None

    @property
    def error(self) -> FieldError:
        return FieldError(self.place, "is unknown" if self.meant is None else f"is unknown; did you mean {self.meant}?")


def warning(names: Iterable[UnknownName]) -> tuple[bytes, bytes]:
    """Return the header Warning, in ASCII: a name comes from a request, so it must not end the quotes, nor the line."""
    texts = (name.place if name.meant is None else f"{name.place} (did you mean {name.meant}?)" for name in names)
    return b"warning", f'299 - "unknown: {quote("; ".join(texts), safe=_IN_QUOTES)}"'.encode("ascii")


def unknown_in_names(names: Iterable[str], *models: type[Wire]) -> list[UnknownName]:
    """Return the unknown names of a query that is read as one of the models."""
    return [_unknown(name, "", models) for name in names if name.lower() not in _spellings(models)][:MOST]


def names_of_query(raw: bytes) -> list[str]:
    """Return the names in a query of a route that has no parameters. Other faults of such a query do not matter."""
    beginning = b"&".join(raw.split(b"&", MOST + 1)[: MOST + 1])
    return [name for name, _ in parse_qsl(beginning.decode("utf-8", "replace"), keep_blank_values=True)]


def unknown_in_body(annotation: Any, data: Any) -> list[UnknownName]:
    """Return the unknown names of a body. `data` is what was sent, and `annotation` the type that it was read as."""
    unknown: list[UnknownName] = []
    _walk(annotation, data, place="", unknown=unknown)
    return unknown


def lists_of_objects(model: type[Wire]) -> Mapping[str, Mapping[str, str]]:
    """Return the fields of a model that hold lists of objects, with the accepted spellings of the members of these objects."""
    lists: dict[str, Mapping[str, str]] = {}
    for name, field in model.by_name().items():
        annotation: Any = field.annotation
        if items := _models(_items(annotation)):
            lists[name] = _spellings(items)
    return lists


def _walk(annotation: Any, data: Any, *, place: str, unknown: list[UnknownName]) -> None:
    if isinstance(data, list):
        items = _items(annotation)
        for index, item in enumerate(data if items else ()):
            if len(unknown) >= MOST:
                return
            _walk(items, item, place=f"{place}[{index}]", unknown=unknown)
    elif isinstance(data, dict) and (models := _models(annotation)):
        spellings = _spellings(models)
        for key, value in data.items():
            if len(unknown) >= MOST:
                return
            documented = spellings.get(key.lower())
            if documented is not None:
                inner = tuple(model.by_name()[documented].annotation for model in models if documented in model.by_name())
                _walk(inner, value, place=f"{place}.{documented}" if place else documented, unknown=unknown)
            elif all(model.model_config.get("extra") == "ignore" for model in models):
                unknown.append(_unknown(key, place, models))


def _unknown(key: str, place: str, models: tuple[type[Wire], ...]) -> UnknownName:
    """Return an unknown name, of which a long one is cut: it is no misspelled name, and may be a secret in the wrong place."""
    is_long = len(key) > _LONGEST
    shown = f"{key[:_BEGINNING]}... ({len(key)} characters)" if is_long else key
    return UnknownName(f"{place}.{shown}" if place else shown, None if is_long else _meant(key.lower(), models))


@lru_cache(_CACHED)
def _meant(key: str, models: tuple[type[Wire], ...]) -> str | None:
    """Return the documented name that is most like an unknown one. Clients repeat their mistakes in each request."""
    spellings = _spellings(models)
    close = get_close_matches(key, spellings, 1, _CLOSE)
    return spellings[close[0]] if close else None


@lru_cache(_CACHED)
def _spellings(models: tuple[type[Wire], ...]) -> Mapping[str, str]:
    return {spelling: name for model in models for spelling, name in model.spellings().items()}


@lru_cache(_CACHED)
def _models(annotation: Any) -> tuple[type[Wire], ...]:
    """Return the models that an object may be read as."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return (annotation,)
    return tuple(dict.fromkeys(model for part in _choices(annotation) for model in _models(part)))


@lru_cache(_CACHED)
def _items(annotation: Any) -> tuple[Any, ...]:
    """Return the types that the items of a list may be read as."""
    if (get_origin(annotation) or annotation) in _LISTS:
        return get_args(annotation)
    return tuple(item for part in _choices(annotation) for item in _items(part))


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the parts of a union, or the type that is annotated. A tuple stands for a union too."""
    if isinstance(annotation, tuple):
        return annotation
    origin = get_origin(annotation)
    if origin in (*_LISTS, dict):
        return ()
    arguments = get_args(annotation)
    return arguments[:1] if origin is Annotated else arguments
