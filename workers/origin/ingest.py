"""Ingest: receives what encoders send, from the first byte to the index. docs/reference/api/origin.md documents the accepted
formats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic
from types import TracebackType
from typing import Final, TypeVar

from domain.channel.point_token import PointToken, Use
from workers.kernel.fair_places import FairPlaces, NoPlace, WorkPlace
from workers.media.errors import Unreadable
from workers.media.fragment_stream import FragmentStream
from workers.media.fragments import Fragment, Init, read_fragment
from workers.origin.incoming_playlist import MasterPlaylist, read_playlist
from workers.origin.limits import MOST_PLAYLIST, OriginLimits, RefusalReason, UploadRefused, session_replaced
from workers.origin.names import Upload
from workers.origin.publishing import Publishing
from workers.origin.recordings import INCOMING, Points, SessionRecording
from workers.origin.room import RecordingStorage

Pieces = AsyncIterator[bytes]

_FIRST: Final = 60.0
"""Seconds after which a body must arrive at the least rate."""


class UploadBody:
    """The body of one request to a publishing point, used as a context manager. `least` is the number of bytes a second that must
    arrive after the first minute; None for a stream, which may take any time. Its place may be given up for another publishing
    point: then the body ends with an error, at once if a caller is waiting for data."""

    def __init__(self, pieces: Pieces, *, places: FairPlaces, point: str, least: int | None) -> None:
        self._pieces = pieces
        self._places = places
        self._point = point
        self._least = least
        self._place: WorkPlace | None = None
        self._given_up = False
        self._waiting: asyncio.Timeout | None = None

    def __enter__(self) -> UploadBody:
        """Take a place. Raise `UploadRefused`."""
        try:
            self._place = self._places.take(self._point, self.give_up)
        except NoPlace:
            raise UploadRefused(RefusalReason.BUSY, "Too many uploads are in progress.") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._place is not None:
            self._places.leave(self._place)

    def give_up(self) -> None:
        self._given_up = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def __aiter__(self) -> Pieces:
        """Yield the pieces of the body. Raise `UploadRefused`."""
        begun, taken = asyncio.get_running_loop().time(), 0
        while True:
            until = None if self._least is None else begun + _FIRST + taken / self._least
            try:
                piece = await self._next(until)
            except StopAsyncIteration:
                return
            taken += len(piece)
            if self._place is not None:
                self._places.moved(self._place)
            yield piece

    async def _next(self, until: float | None) -> bytes:
        if not self._given_up:
            waiting = self._waiting = asyncio.timeout_at(until)
            try:
                async with waiting:
                    return await anext(self._pieces)
            except TimeoutError:
                if not waiting.expired():
                    raise
            finally:
                self._waiting = None
        if self._given_up:
            raise UploadRefused(RefusalReason.BUSY, "Too many uploads are in progress, and this publishing point has most of them.")
        raise UploadRefused(RefusalReason.SLOW, "The body arrives too slowly.")


T = TypeVar("T")
Body = AsyncIterator[bytes]
Runs = Callable[[int], Awaitable[bool]]

_BUFFER: Final = 256 * 1024
_FENCE_EVERY: Final = 0.5
_RETRY_EVERY: Final = 0.1
_TARGET: Final = 1.9
"""Seconds after which a segment of fragments may end."""
_THREADS: Final = 16


class Ingest:
    """Receives uploads to publishing points. `clock` returns Unix times; `runs` returns True while the session of an encoder that
    the product started has not ended."""

    def __init__(
        self, points: Points, *, limits: OriginLimits, storage: RecordingStorage, clock: Callable[[], float], runs: Runs
    ) -> None:
        self._points = points
        self._limits = limits
        self._storage = storage
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ingest")
        self._runs = runs
        self._sessions: dict[str, int] = {}
        self._revoked: dict[str, float] = {}
        self._streams: dict[tuple[str, str], object] = {}
        self._paces: dict[str, tuple[int, int]] = {}
        self.uploads = FairPlaces(limits.uploads)
        self.playlists = FairPlaces(limits.playlists)
        """The bytes of playlists in memory."""

    async def take(self, point: str, upload: Upload, *, writer: PointToken, body: Body, window: float | None = None) -> None:
        """Receive one upload. Raise `UploadRefused`."""
        self._keep_pace(point)
        least = None if upload.kind == "fragments" else self._limits.rate
        try:
            with UploadBody(body, places=self.uploads, point=point, least=least) as taken:
                await self._take(point, upload, writer=writer, body=taken, window=window)
        except Unreadable as fault:
            raise UploadRefused(RefusalReason.MALFORMED, f"The MP4 file cannot be read: {fault}.") from None
        except OSError as fault:
            if fault.errno in (28, 122):
                raise UploadRefused(RefusalReason.FULL, "The disk is full.") from None
            raise

    async def _take(self, point: str, upload: Upload, *, writer: PointToken, body: UploadBody, window: float | None) -> None:
        recording = await self._begin(point, writer, window)
        publishing = Publishing(self._points.get(point), writer.session, patience=self._limits.patience)
        match upload.kind:
            case "playlist":
                await self._playlist(publishing, upload, body, point=point)
            case "segment":
                await self._segment(publishing, recording, upload, body, fence=_Fence(self, point, writer))
            case _:
                await self._fragments(publishing, recording, upload, body, fence=_Fence(self, point, writer))

    async def end(self, point: str, writer: PointToken) -> None:
        """End the session, because the encoder has stopped: it may not send any more."""
        await self._check(writer)
        end = partial(self._points.get(point).end, writer.session, issued=writer.issued, now=self._clock())
        await self._in_thread(end)
        self._sessions[point] = max(writer.session + 1, self._sessions.get(point, -1))

    def refused_now(self, point: str, writer: PointToken) -> bool:
        return writer.session < self._sessions.get(point, -1) or writer.issued <= self._revoked.get(point, 0)

    async def _check(self, writer: PointToken) -> None:
        """Raise `UploadRefused` if the product started the encoder and has ended its session."""
        if writer.use is Use.ENCODER and not await self._runs(writer.session):
            raise UploadRefused(RefusalReason.FENCED, "The session of this token has ended.")

    async def look(self, point: str, writer: PointToken) -> None:
        """Read from disk if another process has started a later session, or the recordings were removed with the fence. A session
        that begins in this process meanwhile may be missing in the state that is read."""
        before = self._sessions.get(point, -1)
        state = await self._in_thread(self._points.get(point).state)
        stored, present = -1 if state is None else state.session, self._sessions.get(point, -1)
        self._sessions[point] = stored if present == before else max(stored, present)
        self._revoked[point] = 0.0 if state is None else state.revoked
        await self._check(writer)

    async def _begin(self, point: str, writer: PointToken, window: float | None) -> SessionRecording:
        await self._check(writer)
        await self._storage.check(point)
        session = writer.session
        begin = partial(self._points.get(point).begin, session, window=window, issued=writer.issued, now=self._clock())
        recording = await self._in_thread(begin)
        self._sessions[point] = max(session, self._sessions.get(point, -1))
        return recording

    async def _playlist(self, publishing: Publishing, upload: Upload, body: UploadBody, *, point: str) -> None:
        text = await self._text(body, point)
        playlist = read_playlist(text, upload.path)
        if isinstance(playlist, MasterPlaylist):
            await self._in_thread(partial(publishing.master, playlist))
        else:
            await self._publish(publishing, partial(publishing.playlist, upload, playlist, text=text.decode("utf-8-sig")))

    async def _text(self, body: UploadBody, point: str) -> bytes:
        """Return the text of a playlist. Its size counts towards the limit of all playlists in this process."""
        text, place = bytearray(), self.playlists.take(point, body.give_up, size=0)
        try:
            async for piece in body:
                text += piece
                if len(text) > MOST_PLAYLIST:
                    raise UploadRefused(RefusalReason.TOO_LARGE, f"A playlist has at most {MOST_PLAYLIST} bytes.")
                self.playlists.grow(place, len(piece))
            return bytes(text)
        except NoPlace:
            raise UploadRefused(RefusalReason.BUSY, "Too many playlists are being sent at the same time.") from None
        finally:
            self.playlists.leave(place)

    async def _segment(
        self, publishing: Publishing, recording: SessionRecording, upload: Upload, body: UploadBody, *, fence: _Fence
    ) -> None:
        with _draft(recording.folder / INCOMING) as draft:
            async for piece in body:
                await fence.check()
                await self._in_thread(partial(draft.write, piece, most=self._limits.segment))
            await self._in_thread(draft.close)
            await self._publish(publishing, partial(publishing.store, draft.path, upload, most=self._limits.unlisted))

    async def _publish(self, publishing: Publishing, publish: Callable[..., bool]) -> None:
        """Publish. If a segment waits for an earlier one, the request is answered only when that one has arrived or its wait has
        expired: there may be no later request that would check again."""
        while await self._in_thread(partial(publish, now=self._clock())):
            await asyncio.sleep(_RETRY_EVERY)
            publish = publishing.waiting

    async def _fragments(
        self, publishing: Publishing, recording: SessionRecording, upload: Upload, body: UploadBody, *, fence: _Fence
    ) -> None:
        """Receive a stream of fragments. A new request for a track ends the older one: the encoder has reconnected."""
        await self._in_thread(partial(publishing.begun, upload.track))
        key, mine = (str(recording.folder), upload.track), object()
        self._streams[key] = mine
        track = _Track(self, publishing, recording.folder / INCOMING, upload.track)
        try:
            async for piece in body:
                await fence.check()
                if self._streams.get(key) is not mine:
                    raise UploadRefused(RefusalReason.FENCED, "The encoder has reconnected.")
                await track.take(piece)
            await track.end()
        finally:
            track.close()
            if self._streams.get(key) is mine:
                del self._streams[key]

    def _keep_pace(self, point: str) -> None:
        second = int(monotonic())
        at, count = self._paces.get(point, (second, 0))
        count = count + 1 if at == second else 1
        if count == 1 and len(self._paces) > 10_000:
            self._paces.clear()
        self._paces[point] = (second, count)
        if count > self._limits.pace:
            raise UploadRefused(RefusalReason.TOO_FAST, f"A publishing point accepts {self._limits.pace} requests a second.")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Fence:
    """Decides if the session may still write. It is checked for every piece; changes by other processes are read twice a second,
    and before a refusal."""

    def __init__(self, ingest: Ingest, point: str, writer: PointToken) -> None:
        self._ingest = ingest
        self._point = point
        self._writer = writer
        self._looked = monotonic()

    async def check(self) -> None:
        if monotonic() - self._looked > _FENCE_EVERY or self._ingest.refused_now(self._point, self._writer):
            await self._ingest.look(self._point, self._writer)
            self._looked = monotonic()
        if self._ingest.refused_now(self._point, self._writer):
            raise session_replaced()


class _Draft:
    """A file that is being written. It is removed if it is not completed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".{token_hex(16)}"
        self.size = 0
        self._file = open(self.path, "xb", buffering=_BUFFER)  # noqa: SIM115 - closed by `drop`

    def write(self, piece: bytes, *, most: int) -> None:
        self.size += len(piece)
        if self.size > most:
            raise UploadRefused(RefusalReason.TOO_LARGE, f"A segment has at most {most} bytes.")
        self._file.write(piece)

    def close(self) -> None:
        self._file.close()

    def drop(self) -> None:
        with suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)


@contextmanager
def _draft(folder: Path) -> Iterator[_Draft]:
    try:
        draft = _Draft(folder)
    except FileNotFoundError:
        raise session_replaced() from None
    try:
        yield draft
    finally:
        draft.drop()


class _Track:
    """A stream of fragments that is cut into segments, each of which begins with a key frame."""

    def __init__(self, ingest: Ingest, publishing: Publishing, folder: Path, name: str) -> None:
        self._ingest = ingest
        self._publishing = publishing
        self._folder = folder
        self._name = name
        self._stream = FragmentStream(most=ingest._limits.segment)
        self._init: Init | None = None
        self._whole = False
        """True if the request has the initialization section."""
        self._draft: _Draft | None = None
        self._fragment: Fragment | None = None
        self._synced = 0
        """The number of fragments in a row that began with a key frame: after two, each is made a segment at once."""
        self.published = 0

    async def take(self, data: bytes) -> None:
        for piece in self._stream.take(data):
            match piece.kind:
                case "init":
                    self._whole = True
                    self._init = await self._ingest._in_thread(partial(self._publishing.init, self._name, piece.data))
                case "moof":
                    await self._begin(piece.data)
                case "data":
                    await self._write(piece.data)
                case "done":
                    if self._synced >= 2 and self._seconds >= _TARGET / 4:
                        await self._publish()

    async def end(self) -> None:
        """Handle the end of the request, as opposed to a lost connection. It is also the end of the stream if the stream says so,
        or if the request was a whole stream and not a single fragment."""
        if not self._stream.clean:
            raise UploadRefused(RefusalReason.MALFORMED, "The stream ended within a fragment.")
        await self._publish()
        if self._stream.final or (self._whole and self.published > 1):
            await self._ingest._in_thread(partial(self._publishing.ended, self._name))

    def close(self) -> None:
        if self._draft is not None:
            self._draft.drop()

    @property
    def _seconds(self) -> float:
        return 0.0 if self._fragment is None or self._init is None else self._fragment.lasts / self._init.main.timescale

    async def _begin(self, moof: bytes) -> None:
        if self._init is None:
            self._init = await self._ingest._in_thread(partial(self._publishing.stored_init, self._name))
        fragment = read_fragment(memoryview(moof)[8:], self._init)
        self._synced = self._synced + 1 if fragment.sync else 0
        if self._init.main.kind == "audio":
            self._synced = 2 if self._seconds + fragment.lasts / self._init.main.timescale >= _TARGET else 0
        if fragment.sync and self._seconds >= (_TARGET if self._init.main.kind == "audio" else _TARGET / 4):
            await self._publish()
        if self._fragment is None:
            await self._ingest._storage.check(self._publishing.point)
            self._draft, self._fragment = _Draft(self._folder), fragment
        else:
            self._fragment = Fragment(self._fragment.time, self._fragment.lasts + fragment.lasts, self._fragment.sync)
        await self._write(moof)

    async def _write(self, data: bytes) -> None:
        if self._draft is not None:
            await self._ingest._in_thread(partial(self._draft.write, data, most=self._ingest._limits.segment))

    async def _publish(self) -> None:
        if self._draft is None or self._fragment is None or self._init is None:
            return
        draft, fragment = self._draft, self._fragment
        self._draft = self._fragment = None
        try:
            await self._ingest._in_thread(draft.close)
            publish = partial(
                self._publishing.fragments,
                self._name,
                fragment,
                file=draft.path,
                timescale=self._init.main.timescale,
                now=self._ingest._clock(),
            )
            await self._ingest._in_thread(publish)
            self.published += 1
        finally:
            draft.drop()
