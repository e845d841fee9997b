"""The resource that one request of a stream fetches: a file, or a range of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urljoin

from workers.media.errors import Unreadable


class ResourceRange(NamedTuple):
    """A range of bytes."""

    first: int
    size: int


@dataclass(frozen=True, slots=True)
class MediaResource:
    """A file, or a part of it."""

    url: str
    part: ResourceRange | None = None

    @property
    def digest(self) -> str:
        return sha256(repr((self.url, self.part)).encode()).hexdigest()[:32]


def joined(base: str, url: str) -> str:
    """Resolve an address, which may be relative to that of the text that contains it. Raise `Unreadable`."""
    try:
        return urljoin(base, url)
    except ValueError:
        raise Unreadable("an address in it cannot be read") from None
