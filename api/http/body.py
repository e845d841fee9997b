"""Bodies, forms and queries of requests: read within limits, and parsed into one model whatever their media type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from itertools import chain
from re import compile as regex
from types import NoneType
from typing import Any, Final, get_args
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header
from starlette.requests import ClientDisconnect

from api.http.errors import BadRequest, BodyTooLarge, UnsupportedMediaType
from api.http.model import STRANGE, SentFile, Wire
from api.http.parsing import JsonParser, Validator
from api.http.unknown_names import UnknownName, lists_of_objects, unknown_in_body, unknown_in_names

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Mapping[bytes, bytes]
Pairs = Sequence[tuple[str, str | SentFile]]


_MULTIPART: Final = "multipart/form-data"
_URLENCODED: Final = "application/x-www-form-urlencoded"
JSON: Final = ("application/json",)
FORM: Final = (_URLENCODED, _MULTIPART)
JSON_PATCH: Final = ("application/json-patch+json",)
PLAIN: Final = ("text/plain",)
XML: Final = ("application/xml", "text/xml")
"""Media types that are parsed the same way."""

_BLANK_FOR_PLUS: Final = regex(r"^([\dW-]+[Tt ]\d\d[\d:.,]*) (?=\d\d(?::?\d\d)?$)")
_ENTRY: Final = regex(r"(\w+)\[([0-9]{1,9})\](?:\.([^\[\].]+)|\[([^\[\]]+)\])")
_BAD_ESCAPE: Final = regex(r"%(?![0-9a-fA-F]{2})")


def check_length(headers: Headers, *, limit: int) -> None:
    """Raise `BodyTooLarge` for the Content-Length of a body that is too large, which is then not read at all."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise BodyTooLarge(limit)


async def read_body(receive: Receive, *, limit: int) -> bytes:
    """Read a whole body. Raises `BodyTooLarge` and `ClientDisconnect`."""
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
        size += len(chunks[-1])
        if size > limit:
            raise BodyTooLarge(limit)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class BodyParser:
    """Parses the bodies of one route: `accept` checks the media type (415), `data` the syntax, and `parse` the content (400).

    An annotation of `bytes` passes the body unparsed, for routes that parse a format of their own. With `typed` a body without a
    Content-Type is refused."""

    def __init__(self, annotation: Any, *, body_types: Iterable[Sequence[str]], default: Any = ..., typed: bool = False) -> None:
        self._raw = annotation is bytes
        self._typed = typed
        self._default = None if default is ... and NoneType in get_args(annotation) else default
        self._annotation = annotation
        self._validator = Validator(annotation, where="body")
        self._model = annotation if isinstance(annotation, type) and issubclass(annotation, Wire) else None
        self._objects = {} if self._model is None else lists_of_objects(self._model)
        self._media_types = tuple(chain.from_iterable(body_types))
        charsets = ("", "; charset=utf-8", ";charset=utf-8", "; charset=UTF-8", ";charset=UTF-8")
        self._usual = {(name + end).encode(): name for name in self._media_types if name != _MULTIPART for end in charsets}

    def accept(self, headers: Headers, *, empty: bool) -> str:
        """Return the media type of a body. Without a Content-Type it is the first that the route declares."""
        if (headers.get(b"content-encoding") or b"identity").lower() != b"identity":
            raise UnsupportedMediaType("A compressed body is not accepted.")
        header = headers.get(b"content-type")
        if (not header and not self._typed) or (empty and self._default is not ...):
            return self._media_types[0]
        if header in self._usual:
            return self._usual[header]
        kind, options = parse_options_header(header or b"")
        media_type = kind.decode("latin-1").lower()
        if media_type not in self._media_types:
            raise UnsupportedMediaType(f"The content type must be {' or '.join(self._media_types)}.")
        if options.get(b"charset", b"utf-8").strip(b"\"'").lower() not in (b"utf-8", b"utf8", b"us-ascii"):
            raise UnsupportedMediaType("The charset must be utf-8.")
        return media_type

    def data(self, raw: bytes, media_type: str, *, headers: Headers, json: JsonParser) -> Any:
        """Return what the bytes of a body mean, before it is validated. A form means the object whose members are its fields."""
        if self._raw:
            return raw
        if media_type == _URLENCODED:
            return self._object(split_pairs(raw, where="body"))
        if media_type == _MULTIPART:
            return self._object(_multipart_pairs(raw, headers[b"content-type"], model=self._model))
        return _decode(raw, where="body") if media_type in PLAIN else json(raw, where="body")

    def parse(self, raw: bytes, media_type: str, *, headers: Headers, unknown: list[UnknownName], json: JsonParser) -> Any:
        """Return the body as its type. The list `unknown` gets the names that are no fields."""
        if not raw:
            if self._default is ...:
                raise BadRequest.at("body", "is required")
            return self._default
        data, strange = self.data(raw, media_type, headers=headers, json=json), list[str]()
        STRANGE.set(strange)
        try:
            return data if self._raw else self._validator.read(data)
        finally:
            if strange or media_type in FORM:
                unknown.extend(unknown_in_body(self._annotation, data))

    def _object(self, pairs: Pairs) -> dict[str, Any]:
        """Return the object that a form means. An empty value is null. Two spellings of one name are an error, as in JSON."""
        spellings: dict[str, str] = {}
        for name, _ in pairs:
            if spellings.setdefault(name.lower(), name) != name:
                raise BadRequest.at(name, "is there twice, in two spellings")
        objects: dict[str, Any] = {}
        if self._model is not None and self._objects:
            pairs, objects = _gather(pairs, objects=self._objects, model=self._model)
        return {name: None if value == "" else value for name, value in _fold(pairs, self._model).items()} | objects


class QueryParser:
    """Parses the query strings of one route. Two spellings of one name are the same name sent twice.

    With `empty_is_absent` a parameter that may be absent and is sent empty counts as absent, as a search form sends it."""

    __slots__ = ("_date_times", "_documented", "_model", "_of_nothing", "_optional", "_validator")

    def __init__(self, model: type[Wire], *, empty_is_absent: bool = False) -> None:
        self._model = model
        self._optional = model.optional() if empty_is_absent and not model.EMPTY_IS_SENT else frozenset()
        self._date_times = model.date_times()
        self._documented = frozenset(model.spellings().values())
        self._validator = Validator(model, where="query")
        self._of_nothing: Any = None
        """The result for a request without any parameters. Models cannot be changed, so all such requests share it."""
        if all(each.default_factory is None and not each.is_required() for each in model.model_fields.values()):
            with suppress(BadRequest):
                self._of_nothing = self._validator.read({})

    def data(self, raw: bytes) -> dict[str, Any]:
        """Return the values by the documented names of the parameters, before they are validated."""
        pairs = split_pairs(raw, where="query") if raw else ()
        if self._optional:
            pairs = [(name, value) for name, value in pairs if value or name.lower() not in self._optional]
        values = _fold(pairs, self._model)
        for name in self._date_times & values.keys():
            if " " in values[name]:
                values[name] = _BLANK_FOR_PLUS.sub(r"\1+", values[name])
        return values

    def parse(self, raw: bytes, unknown: list[UnknownName]) -> Any:
        """Return the query as the model. The list `unknown` gets the names that are no parameters."""
        if not raw and self._of_nothing is not None:
            return self._of_nothing
        values = self.data(raw)
        if not values.keys() <= self._documented:
            unknown.extend(unknown_in_names(values, self._model))
        return self._validator.read(values)


def split_pairs(raw: bytes, *, where: str) -> list[tuple[str, str]]:
    """Return the names and values of a query or a form. Unlike `parse_qsl` it refuses escapes and bytes that mean no text."""
    text = _decode(raw, where=where)
    if _BAD_ESCAPE.search(text):
        raise BadRequest.at(where, "has a % that is not followed by two hexadecimal digits")
    if "%00" in text:
        raise BadRequest.at(where, "may not have a NUL character")
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest.at(where, "is not UTF-8") from None


def _decode(raw: bytes, *, where: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest.at(where, "is not UTF-8") from None
    if "\0" in text:
        raise BadRequest.at(where, "may not have a NUL character")
    return text


def _fold(pairs: Iterable[tuple[str, str | SentFile]], model: type[Wire] | None) -> dict[str, Any]:
    """Return one value for each name, in the model's spelling: a list where the model has one, else the last value."""
    spellings, lists = ({}, frozenset[str]()) if model is None else (model.spellings(), model.lists())
    folded: dict[str, Any] = {}
    for sent, value in pairs:
        name = spellings.get(sent.lower(), sent)
        if name in lists:
            folded.setdefault(name, []).append(value)
        else:
            folded[name] = value
    return folded


def _gather(pairs: Pairs, *, objects: Mapping[str, Mapping[str, str]], model: type[Wire]) -> tuple[Pairs, dict[str, Any]]:
    """Take the members of objects in lists out of the pairs of a form. Each is a field such as `Tags[0].name` or `Tags[0][name]`.

    Return the other pairs, and the lists by the names of their fields. The numbers order a list, and need not be without gaps."""
    spellings = model.spellings()
    others: list[tuple[str, str | SentFile]] = []
    lists: dict[str, dict[int, dict[str, str | SentFile | None]]] = {}
    sent: dict[tuple[str, int, str], str] = {}
    for name, value in pairs:
        entry = _ENTRY.fullmatch(name)
        field = spellings.get(entry[1].lower()) if entry else None
        if entry is None or field is None or field not in objects:
            others.append((name, value))
            continue
        index, spelled = int(entry[2]), entry[3] or entry[4]
        member = objects[field].get(spelled.lower(), spelled)
        if sent.setdefault((field, index, member), name) != name:
            raise BadRequest.at(name, "is there twice, in two spellings")
        lists.setdefault(field, {}).setdefault(index, {})[member] = value or None
    for name, _ in others:
        if spellings.get(name.lower()) in lists:
            raise BadRequest.at(name, "is there twice, as one field and as several")
    return others, {name: [entries[index] for index in sorted(entries)] for name, entries in lists.items()}


def _multipart_pairs(raw: bytes, content_type: bytes, *, model: type[Wire] | None) -> Pairs:
    files = frozenset[str]() if model is None else model.sent_files()
    pairs: list[tuple[str, str | SentFile]] = []

    def on_field(field: Field) -> None:
        name = _decode(field.field_name or b"", where="body")
        pairs.append((name, _decode(field.value or b"", where=name or "body")))

    def on_file(file: File) -> None:
        name = _decode(file.field_name or b"", where="body")
        if name.lower() not in files:
            raise BadRequest.at(name or "body", "may not be a file")
        file.file_object.seek(0)
        pairs.append((name, SentFile(_decode(file.file_name or b"", where=name), file.file_object.read())))

    boundary = parse_options_header(content_type)[1].get(b"boundary")
    ends: list[bool] = []
    try:
        in_memory = {"MAX_MEMORY_FILE_SIZE": len(raw) + 1}
        parser = FormParser(_MULTIPART, on_field, on_file, lambda: ends.append(True), boundary=boundary, config=in_memory)
        parser.write(raw)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise BadRequest.at("body", f"is not a form: {error}") from None
    if not ends:
        raise BadRequest.at("body", "is not a form: its last boundary is missing")
    return pairs
