"""The file of a download. It is only continued with the rest of the same version: RFC 9110, 14.

Hosts ignore ranges, answer with other ranges, or send the rest of another version. Their answer is compared with the request before
a byte is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from re import compile as regex
from typing import Final

from workers.ports.outbound import DownloadStart, OutboundFailed

_CONTENT_RANGE: Final = regex(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_LENGTH: Final = regex(r"\d{1,18}")


class Receiving:
    """The file of one download, whatever redirects come before it."""

    def __init__(
        self,
        to: Path,
        *,
        offset: int,
        if_range: str | None,
        part: tuple[int, int] | None,
        most: int | None,
        began: Callable[[DownloadStart], None],
        seen: Callable[[bytes], None],
    ) -> None:
        self._to = to
        self._offset = offset
        self._if_range = if_range
        self._part = part
        self._most = most
        self._began = began
        self._seen = seen
        self._size = offset
        self._total: int | None = None

    @contextmanager
    def of(self, status: int, headers: Mapping[str, str]) -> Iterator[Callable[[bytes], None] | None]:
        """Return the function that takes the pieces of this answer; None if its body is not a file."""
        if status not in (200, 206):
            yield None
            return
        began = self._beginning(status, headers)
        self._size, self._total = began.offset, began.total
        self._bound(began.total)
        self._began(began)
        with self._to.open("r+b" if began.offset else "wb") as file:
            file.truncate(began.offset)
            file.seek(began.offset)

            def write(piece: bytes) -> None:
                self._bound(self._size + len(piece))
                file.write(piece)
                self._size += len(piece)
                self._seen(piece)

            yield write

    def ended(self) -> int:
        """Return the size of the file. Raises `OutboundFailed` if a complete answer is a smaller part than requested."""
        if self._total is not None and self._size != self._total:
            raise OutboundFailed("closed", "The host ended its answer before the end of the file.")
        return self._size

    def _beginning(self, status: int, headers: Mapping[str, str]) -> DownloadStart:
        if self._part is not None:
            first, size = self._part
            match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
            if status != 206 or match is None or (int(match[1]), int(match[2])) != (first, first + size - 1):
                raise OutboundFailed("protocol", "The host answered with another part than requested.")
            return DownloadStart(headers, 0, size)
        return self._continuation(headers) if status == 206 else DownloadStart(headers, 0, _length(headers))

    def _continuation(self, headers: Mapping[str, str]) -> DownloadStart:
        match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
        if self._if_range is None or match is None or int(match[1]) != self._offset or not self._same_version(headers):
            raise OutboundFailed("protocol", "The host answered with another part than requested.")
        return DownloadStart(headers, self._offset, None if match[3] == "*" else int(match[3]))

    def _same_version(self, headers: Mapping[str, str]) -> bool:
        """Return True for the same version. The entity tag must be repeated (RFC 9110, 15.3.7); a date need not be."""
        if self._if_range is not None and self._if_range.startswith('"'):
            return headers.get("etag") == self._if_range
        return headers.get("last-modified", self._if_range) == self._if_range

    def _bound(self, size: int | None) -> None:
        if self._most is not None and size is not None and size > self._most:
            raise OutboundFailed("size", f"The file has more than {self._most} bytes.")


def _length(headers: Mapping[str, str]) -> int | None:
    length = headers.get("content-length", "")
    return int(length) if _LENGTH.fullmatch(length) else None
