"""Names that encoders choose: of a publishing point, and of what they send there. None of them becomes the name of a file."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from posixpath import normpath
from re import compile as regex
from typing import Final

from workers.origin.limits import RefusalReason, UploadRefused

_SEGMENT: Final = regex(r"[A-Za-z0-9._-]{1,64}")
_STREAMS: Final = regex(r"[Ss]treams\(([A-Za-z0-9._-]{1,64})\)")
_MOST_PARTS: Final = 4
_MOST_NAME: Final = 96
_CMAF: Final = (".cmfv", ".cmfa", ".cmft", ".mp4", ".m4s", ".ismv", ".isma", ".m4v", ".m4a")
_SEGMENTS: Final = (".m4s", ".mp4", ".m4v", ".m4a", ".cmfv", ".cmfa", ".ts")


def is_point(name: str) -> bool:
    return _SEGMENT.fullmatch(name) is not None and not name.startswith(".")


@dataclass(frozen=True, slots=True)
class Upload:
    """The kind and the name of an upload: a playlist, a segment of one, or a stream of fragments."""

    kind: str
    path: str

    @property
    def digest(self) -> str:
        """The name of the file in which the upload is stored."""
        return sha256(self.path.encode()).hexdigest()[:40]

    @property
    def track(self) -> str:
        """The name of the track that a playlist or a stream of fragments is, as readers see it."""
        stem = self.path.rpartition(".")[0] or self.path
        return stem.replace("/", "-").strip(".")[:_MOST_NAME] or "track"


def upload(path: str) -> Upload:
    """Parse the path of an upload. Raise `UploadRefused`."""
    streams = _STREAMS.fullmatch(path)
    if streams is not None:
        name = streams[1]
        lowered = name.lower()
        return Upload("fragments", name if lowered.endswith(_CMAF) else f"{name}.cmaf")
    parts = path.split("/")
    if len(parts) > _MOST_PARTS or not all(_SEGMENT.fullmatch(part) and not part.startswith(".") for part in parts):
        raise UploadRefused(
            RefusalReason.MALFORMED,
            "A name has at most four parts of 1 to 64 letters, digits, dots, dashes and underscores; none begins with a dot.",
        )
    lowered = parts[-1].lower()
    if lowered.endswith(".m3u8"):
        return Upload("playlist", path)
    if lowered.endswith(_SEGMENTS):
        return Upload("segment", path)
    raise UploadRefused(
        RefusalReason.NOT_MEDIA, "Accepted are .m3u8 playlists with .ts, .m4s and .mp4 segments, and fragments below Streams(NAME)."
    )


def relative(playlist: str, uri: str) -> Upload:
    """Resolve a URI of a playlist. Raise `UploadRefused` if it is not below the same publishing point."""
    folder = playlist.rpartition("/")[0]
    return upload(normpath(f"{folder}/{uri}" if folder else uri))
