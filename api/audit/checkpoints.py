"""Checkpoints of the log, their proofs and tiles, and the export. docs/reference/api/audit.md."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import AUDIT
from api.kernel.pages import Whole
from api.kernel.request import Request
from api.kernel.surfaces import AuditRoute
from api.kernel.wire import Between, Instant, Integer, Wire
from domain.client.aggregate import Client
from domain.client.roles import Role
from domain.kernel.errors import Malformed, NotFound, Unavailable
from domain.kernel.ids import canonical
from domain.kernel.mapper import Catalogue
from projections.audit.checkpoints import Checkpoints, StoredCheckpoint
from projections.audit.log_export import MEDIA_TYPE, ExportSelection, export_log, export_stream
from projections.audit.stored_log import StoredLog
from projections.audit.tree import WIDTH, Tile

T = TypeVar("T")

routes = APIRouter(prefix="/api/audit", tags=["Audit"], route_class=AuditRoute)

Position = Annotated[Integer, Between(0)]

_TEXT: Final = "text/plain; charset=utf-8"
_BYTES: Final = "application/octet-stream"
_NUMBER: Final = re.compile(r"(?:(?!x000)(?:x[0-9]{3}/)+)?[0-9]{3}")
_FOREVER: Final = ("Cache-Control", "private, max-age=31536000, immutable")
_HIGHEST: Final = 63
_EXPORTS: Final = 2


class InclusionQuery(Wire):
    """Query of an inclusion proof: an event and the size of a tree."""

    position: Whole = Field(description="Position of the event.")
    size: Whole | None = Field(None, description="Number of commits of the tree; by default that of the last checkpoint.")


class ConsistencyQuery(Wire):
    """Query of a consistency proof: two sizes of the tree, in commits."""

    first: Annotated[Whole, Field(alias="from")] = Field(description="Size of the older tree: the second line of its checkpoint.")
    second: Annotated[Whole | None, Field(alias="to")] = Field(
        None, description="Size of the newer tree; by default that of the last checkpoint."
    )


class ExportQuery(Wire):
    """Query of an export: the part of the log to export; by default all of it."""

    after: Position = Field(0, description="Only positions greater than this: continue an interrupted download from here.")
    through: Whole | None = Field(None, description="Only positions up to this one.")
    recorded_from: Annotated[Instant | None, Field(alias="from")] = Field(None, description="Recorded at this time or later.")
    recorded_to: Annotated[Instant | None, Field(alias="to")] = Field(None, description="Recorded at this time or earlier.")
    aggregate: str | None = Field(
        None, description="Only this kind of aggregate. Such an export has gaps and cannot be verified, unless id is given too."
    )
    id: str | None = Field(
        None,
        description="With aggregate: all events of this aggregate, with proofs that they are in the log and none is missing.",
    )


class Inclusion(Wire):
    """The proof that an event is in the log: from its leaf to the root of its commit, and from there to the root of the tree."""

    position: int = Field(description="Position of the event.")
    leaf: str = Field(description="Hash of the event.")
    commit: int = Field(description="Number of its commit, from 1.")
    first: int = Field(description="Position of the first event of the commit.")
    count: int = Field(description="Number of events of the commit.")
    recorded_micros: int = Field(alias="recorded_micros", description="Recorded time, in microseconds since 1970.")
    path: list[str] = Field(description="Sibling hashes on the path from the leaf to the root of the commit, the lowest first.")
    size: int = Field(description="Number of commits of the tree.")
    tree: list[str] = Field(description="Sibling hashes on the path from the commit to the root of the tree, the lowest first.")


class Consistency(Wire):
    """The proof that one tree is the beginning of another."""

    first: int = Field(alias="from", description="Size of the older tree, in commits.")
    second: int = Field(alias="to", description="Size of the newer tree, in commits.")
    path: list[str] = Field(description="Hashes of the proof, as in RFC 6962.")


class LogProofs:
    """Read access to the sealed log. Each read runs in a thread on its own connection; few exports run at the same time."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._exports = asyncio.Semaphore(_EXPORTS)

    async def read(self, question: Callable[[Checkpoints], T]) -> T:
        """Run `question` on the checkpoints, in one snapshot of the database."""
        return await self.of_log(lambda stored: question(Checkpoints(stored)))

    async def of_log(self, question: Callable[[StoredLog], T]) -> T:
        """Run `question` on the stored log, in one snapshot of the database."""
        return await asyncio.to_thread(self._read, question)

    def _read(self, question: Callable[[StoredLog], T]) -> T:
        with StoredLog.connected(self._conninfo, purpose="proof") as stored, stored.transaction(one_moment=True):
            return question(stored)

    async def export(self, begin: Callable[[StoredLog], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """Begin an export and return its pieces. Errors of `begin` are raised here, before the first piece is sent. Raises
        `Unavailable` while too many exports run."""
        if self._exports.locked():
            raise Unavailable("other exports are running", retry_after=30)
        await self._exports.acquire()
        opened = ExitStack()
        try:
            pieces = await asyncio.to_thread(self._begin, begin, opened)
        except BaseException:
            self._close(opened)
            raise
        return _Export(pieces, partial(self._close, opened))

    def _begin(self, begin: Callable[[StoredLog], Iterator[bytes]], opened: ExitStack) -> Iterator[bytes]:
        pieces = begin(opened.enter_context(StoredLog.connected(self._conninfo, purpose="export")))
        opened.callback(pieces.close)  # type: ignore[attr-defined]
        return pieces

    def _close(self, opened: ExitStack) -> None:
        self._exports.release()
        opened.close()


class _Export:
    """A running export. Closing it releases its connection and its place, even before the first piece was read."""

    def __init__(self, pieces: Iterator[bytes], close: Callable[[], None]) -> None:
        self._pieces = pieces
        self._close: Callable[[], None] | None = close
        self._reading: asyncio.Future[bytes | None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while self._close is not None:
            self._reading = asyncio.get_running_loop().run_in_executor(None, next, self._pieces, None)
            piece = await asyncio.shield(self._reading)
            if piece:
                return piece
            if piece is None:
                await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Wait for a thread that is still reading, which owns the connection until then, and release the export."""
        close, self._close = self._close, None
        if self._reading is not None:
            await asyncio.wait({self._reading})
        if close is not None:
            close()


@routes.get("/checkpoint", dependencies=[AUDIT])
@rules(absent=404, media_type=_TEXT)
async def get_last_checkpoint(request: Request, proofs: Service[LogProofs]) -> Response:
    """The last signed checkpoint of the log, a C2SP signed note."""
    checkpoint = await proofs.read(_last)
    return Response(checkpoint.note.encode(), media_type=_TEXT)


@routes.get("/proof/inclusion", dependencies=[AUDIT], response_model=Inclusion)
@rules(absent=404)
async def get_inclusion_proof(request: Request, query: Annotated[InclusionQuery, Query()], proofs: Service[LogProofs]) -> Response:
    """The proof that an event is in the log of a checkpoint."""

    def prove(checkpoints: Checkpoints) -> dict[str, Any]:
        size = _size(checkpoints, query.size, "size")
        try:
            proof = checkpoints.included(query.position, size)
        except ValueError:
            raise NotFound("event", str(query.position), sentence=_NOT_YET) from None
        return {"position": proof.position, "leaf": proof.leaf.hex(), "size": size, **proof.shown()}

    return Response(await proofs.read(prove))


@routes.get("/proof/consistency", dependencies=[AUDIT], response_model=Consistency)
@rules(absent=404)
async def get_consistency_proof(
    request: Request, query: Annotated[ConsistencyQuery, Query()], proofs: Service[LogProofs]
) -> Response:
    """The proof that one checkpoint is the beginning of another."""

    def prove(checkpoints: Checkpoints) -> dict[str, Any]:
        size = _size(checkpoints, query.second, "to")
        if query.first > size:
            raise Malformed.at("from", "must not be greater than to")
        return {"from": query.first, "to": size, "path": [hash.hex() for hash in checkpoints.consistent(query.first, size)]}

    return Response(await proofs.read(prove))


@routes.get("/tile/{level}/{place:path}", dependencies=[AUDIT])
@rules(media_type=_BYTES)
async def get_tree_tile(request: Request, level: str, place: str, proofs: Service[LogProofs]) -> Response:
    """A tile of the tree over commits, in the format of C2SP tlog-tiles. The level `entries` holds the data of the leaves."""
    number, width = _tile(level, place)
    content = await proofs.read(lambda checkpoints: _content(checkpoints, level, number=number, width=width))
    if content is None:
        raise NotFound("tile", f"{level}/{place}")
    return Response(content, media_type=_BYTES, headers=(_FOREVER,))


@routes.get("/export", dependencies=[AUDIT])
@rules(absent=404, media_type=MEDIA_TYPE)
async def export_audit(
    request: Request, query: Annotated[ExportQuery, Query()], proofs: Service[LogProofs], catalogue: Service[Catalogue]
) -> Response:
    """The log as lines of JSON, which can be verified without the product. Only admins receive the hashes of API keys."""
    withholding = Role.ADMIN not in request.caller.roles
    if query.id is not None and query.aggregate is None:
        raise Malformed.at("id", "needs aggregate")
    if query.aggregate is not None and query.aggregate not in catalogue.aggregates:
        raise Malformed.at("aggregate", f"must be one of {', '.join(catalogue.aggregates)}")
    selection = ExportSelection(query.after, query.through, query.recorded_from, query.recorded_to, query.aggregate)
    if query.id is None:
        return Response(
            await proofs.export(lambda stored: export_log(stored, selection, withholding=withholding)), media_type=MEDIA_TYPE
        )
    if query.after or query.through or query.recorded_from or query.recorded_to:
        raise Malformed.at("id", "exports the whole history and cannot be combined with after, through, from or to")
    name = f"{query.aggregate}:{query.id if query.aggregate == Client.KIND else canonical(query.id)}"
    return Response(await proofs.export(lambda stored: export_stream(stored, name, withholding=withholding)), media_type=MEDIA_TYPE)


_NOT_YET: Final = "No checkpoint includes it yet. The log is sealed every minute in which an event was written."


def _last(checkpoints: Checkpoints) -> StoredCheckpoint:
    checkpoint = checkpoints.last()
    if checkpoint is None:
        raise NotFound("checkpoint", "last", sentence=_NOT_YET)
    return checkpoint


def _size(checkpoints: Checkpoints, requested: int | None, name: str) -> int:
    newest = _last(checkpoints).content.commits
    if requested is not None and requested > newest:
        raise Malformed.at(name, f"must not be greater than {newest}, the size of the last checkpoint")
    return newest if requested is None else requested


def _tile(level: str, place: str) -> tuple[int, int]:
    """Return the number and the width of a tile: `x001/x234/067` is tile 1234067, and a final `.p/8` selects its first eight
    hashes."""
    number, partial, width = place.partition(".p/")
    plain = level == "entries" or (level.isascii() and level.isdecimal() and int(level) <= _HIGHEST and level == str(int(level)))
    if not plain or not _NUMBER.fullmatch(number) or len(number) > WIDTH:
        raise NotFound("tile", f"{level}/{place}")
    if partial and not (width.isascii() and width.isdecimal() and 0 < int(width) < WIDTH and width == str(int(width))):
        raise NotFound("tile", f"{level}/{place}")
    return int(number.replace("x", "").replace("/", "")), int(width) if partial else WIDTH


def _content(checkpoints: Checkpoints, level: str, *, number: int, width: int) -> bytes | None:
    """Return the content of a tile, or None if the tile is not complete yet."""
    if number >> 62:
        return None
    if level == "entries":
        commits = _last(checkpoints).content.commits
        first = number * WIDTH
        if first + width > commits:
            return None
        return b"".join(len(entry).to_bytes(2, "big") + entry for entry in checkpoints.entries(first + 1, first + width))
    content = checkpoints.tile(Tile(int(level), number))
    return None if content is None or len(content) < width * 32 else content[: width * 32]
