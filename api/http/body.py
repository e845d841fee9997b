"""Request bodies: reading them within limits, telling their type, and parsing JSON and forms alike into one model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, get_args

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header

from api.http.errors import BadRequest, BodyTooLarge, UnsupportedMediaType
from api.http.forms import FormPairs, decode_text, fold, gather, split_pairs
from api.http.model import STRANGE, SentFile, Wire
from api.http.parsing import JsonParser, Validator
from api.http.unknown_names import UnknownName, lists_of_objects, unknown_in_body

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Mapping[bytes, bytes]


class Disconnected(Exception):
    """The client disconnected before its request was complete: no response can be sent."""


@dataclass(frozen=True, slots=True)
class BodyType:
    """Media types that are parsed the same way."""

    media_types: tuple[str, ...]


JSON: Final = BodyType(("application/json",))
FORM: Final = BodyType(("application/x-www-form-urlencoded", "multipart/form-data"))
JSON_PATCH: Final = BodyType(("application/json-patch+json",))
PLAIN: Final = BodyType(("text/plain",))
XML: Final = BodyType(("application/xml", "text/xml"))

_MULTIPART = "multipart/form-data"
_URLENCODED = "application/x-www-form-urlencoded"


def check_length(headers: Headers, *, limit: int) -> None:
    """Before a byte is read: a body whose Content-Length is too large is not read at all."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise BodyTooLarge(limit)


async def read_body(receive: Receive, *, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge(limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class BodyParser:
    """Parses the body of one route. `accept` settles the content type (415), `parse` the content (400).

    An annotation of `bytes` passes the body unparsed, for routes that parse a format of their own. `typed`: the body must
    come with a Content-Type."""

    def __init__(
        self,
        annotation: Any,
        *,
        body_types: tuple[BodyType, ...],
        default: Any = ...,
        typed: bool = False,
    ) -> None:
        where = "body"
        self._raw = annotation is bytes
        self._where = where
        self._typed = typed
        self._default = None if default is ... and NoneType in get_args(annotation) else default
        self._annotation = annotation
        self._validator = Validator(annotation, where=where)
        self._model = annotation if isinstance(annotation, type) and issubclass(annotation, Wire) else None
        self._lists: frozenset[str] = frozenset() if self._model is None else self._model.lists()
        self._files = frozenset[str]() if self._model is None else self._model.sent_files()
        self._objects = {} if self._model is None else lists_of_objects(self._model)
        self._media_types = tuple(name for body_type in body_types for name in body_type.media_types)
        self._common = {
            (name + suffix).encode(): name
            for name in self._media_types
            if name != _MULTIPART
            for suffix in ("", "; charset=utf-8", ";charset=utf-8", "; charset=UTF-8", ";charset=UTF-8")
        }

    @property
    def media_types(self) -> tuple[str, ...]:
        return self._media_types

    @property
    def required(self) -> bool:
        return self._default is ...

    def accept(self, headers: Headers, *, empty: bool) -> str:
        """The body's media type. Without a Content-Type it is the first that the route declares, or an error where the
        route requires one."""
        if (headers.get(b"content-encoding") or b"identity").lower() != b"identity":
            raise UnsupportedMediaType("A compressed body is not accepted.")
        header = headers.get(b"content-type")
        if (not header and not self._typed) or (empty and not self.required):
            return self._media_types[0]
        if not header:
            raise self._wrong_type()
        return self._common.get(header) or self._look_closer(header)

    def _look_closer(self, header: bytes) -> str:
        kind, options = parse_options_header(header)
        media_type = kind.decode("latin-1").lower()
        if media_type not in self._media_types:
            raise self._wrong_type()
        charset = options.get(b"charset", b"utf-8").strip(b"\"'").lower()
        if charset not in (b"utf-8", b"utf8", b"us-ascii"):
            raise UnsupportedMediaType("The charset must be utf-8.")
        return media_type

    def _wrong_type(self) -> UnsupportedMediaType:
        return UnsupportedMediaType(f"The content type must be {' or '.join(self._media_types)}.")

    def parse(self, raw: bytes, media_type: str, *, headers: Headers, unknown: list[UnknownName], json: JsonParser) -> Any:
        """`unknown` gets the names that are no fields."""
        if not raw:
            if self._default is ...:
                raise BadRequest.at(self._where, "is required")
            return self._default
        if self._raw:
            return raw
        if media_type == _URLENCODED:
            return self._read_form(split_pairs(raw, where=self._where), unknown)
        if media_type == _MULTIPART:
            return self._read_form(_multipart_pairs(raw, headers[b"content-type"], where=self._where, files=self._files), unknown)
        if media_type in PLAIN.media_types:
            return self._validator.read(decode_text(raw, where=self._where))
        data = json(raw, where=self._where)
        strange: list[str] = []
        STRANGE.set(strange)
        try:
            return self._validator.read(data)
        finally:
            if strange:
                unknown.extend(unknown_in_body(self._annotation, data))

    def _read_form(self, pairs: FormPairs, unknown: list[UnknownName]) -> Any:
        """In a form the empty value is null. Two spellings of one name are an error, as in JSON."""
        seen: dict[str, str] = {}
        for name, _ in pairs:
            if seen.setdefault(name.lower(), name) != name:
                raise BadRequest.at(name, "is there twice, in two spellings")
        objects: dict[str, Any] = {}
        if self._model is not None and self._objects:
            pairs, objects = gather(pairs, objects=self._objects, model=self._model)
        folded = fold(pairs, lists=self._lists, model=self._model)
        data = {name: None if value == "" else value for name, value in folded.items()} | objects
        unknown.extend(unknown_in_body(self._annotation, data))
        return self._validator.read(data)


def _multipart_pairs(raw: bytes, content_type: bytes, *, where: str, files: frozenset[str]) -> FormPairs:
    """`files` are the names, in lower case, under which files may be sent."""
    pairs: list[tuple[str, str | SentFile]] = []

    def on_field(field: Field) -> None:
        name = decode_text(field.field_name or b"", where=where)
        pairs.append((name, decode_text(field.value or b"", where=name or where)))

    def on_file(file: File) -> None:
        name = decode_text(file.field_name or b"", where=where)
        if name.lower() not in files:
            raise BadRequest.at(name or where, "may not be a file")
        file.file_object.seek(0)
        pairs.append((name, SentFile(decode_text(file.file_name or b"", where=name), file.file_object.read())))

    boundary = parse_options_header(content_type)[1].get(b"boundary")
    ends: list[bool] = []
    try:
        in_memory = {"MAX_MEMORY_FILE_SIZE": len(raw) + 1}
        parser = FormParser(_MULTIPART, on_field, on_file, lambda: ends.append(True), boundary=boundary, config=in_memory)
        parser.write(raw)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise BadRequest.at(where, f"is not a form: {error}") from None
    if not ends:
        raise BadRequest.at(where, "is not a form: its last boundary is missing")
    return pairs
