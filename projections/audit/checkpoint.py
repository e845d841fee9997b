"""A checkpoint: the state of the log up to a position, in the form of C2SP tlog-checkpoint. This module does no input or output."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

_ORIGIN: Final = "medialedger/"


class NoCheckpoint(Exception):
    """Raised when a text is not a checkpoint of this product."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of the log after the first `commits` commits, with `events` events.

    `root` is the root of the tree over the commits; `streams_root` that of the map of all `streams`. A checkpoint that hands over
    to a new key names it in `next_key`, and both keys sign it.
    """

    log_id: UUID
    commits: int
    root: bytes
    events: int
    epoch: int
    time: datetime
    chain_hash: bytes
    streams: int
    streams_root: bytes
    next_key: str | None = None

    @property
    def origin(self) -> str:
        return origin(self.log_id)

    def text(self) -> str:
        lines = [
            self.origin,
            str(self.commits),
            _base64(self.root),
            f"events {self.events}",
            f"epoch {self.epoch}",
            f"time {self.time.isoformat(timespec='microseconds').replace('+00:00', 'Z')}",
            f"chain {_base64(self.chain_hash)}",
            f"streams {self.streams} {_base64(self.streams_root)}",
            *([] if self.next_key is None else [f"key {self.next_key}"]),
        ]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        try:
            name, commits, root, *rest = text.splitlines()
            named = dict(line.split(" ", 1) for line in rest)
            streams, streams_root = named["streams"].split(" ")
            return cls(
                log_id=UUID(name.removeprefix(_ORIGIN)),
                commits=int(commits),
                root=b64decode(root, validate=True),
                events=int(named["events"]),
                epoch=int(named["epoch"]),
                time=datetime.fromisoformat(named["time"]),
                chain_hash=b64decode(named["chain"], validate=True),
                streams=int(streams),
                streams_root=b64decode(streams_root, validate=True),
                next_key=named.get("key"),
            )
        except (ValueError, KeyError):
            raise NoCheckpoint("it is not a checkpoint of this product") from None


def origin(log_id: UUID) -> str:
    """Return the first line of a checkpoint, which is also the name of its key."""
    return f"{_ORIGIN}{log_id}"


def _base64(hash: bytes) -> str:
    return b64encode(hash).decode()
