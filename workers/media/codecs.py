"""Names of codecs, as playlists and manifests write them: RFC 6381."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from workers.media.boxes import Fields, boxes
from workers.media.errors import Unreadable

_SEQUENCE, _PICTURE = 7, 8
_MOST: Final = 31
"""The largest number of sequence parameter sets that a configuration can hold."""
_LONGEST: Final = 0xFFFF


def configuration(sample: bytes | memoryview, before: bytes) -> bytes:
    """Return the configuration for a sample whose units begin with lengths of four bytes. It is that of `before`, unless the sample
    has other parameter sets."""
    sets = [bytes(unit) for unit in _units(memoryview(sample)) if unit[0] & 0x1F in (_SEQUENCE, _PICTURE)]
    sequences = [unit for unit in dict.fromkeys(sets) if unit[0] & 0x1F == _SEQUENCE and len(unit) > 3]
    pictures = [unit for unit in dict.fromkeys(sets) if unit[0] & 0x1F == _PICTURE]
    if not sequences or not pictures or all(unit in before for unit in (*sequences, *pictures)):
        return before
    if len(sequences) > _MOST or len(pictures) > 0xFF or max(map(len, sets)) > _LONGEST:
        return before
    begin = bytes((1, *sequences[0][1:4], 0xFF, 0xE0 | len(sequences)))
    return b"".join((begin, *map(_with_length, sequences), bytes((len(pictures),)), *map(_with_length, pictures)))


def _with_length(unit: bytes) -> bytes:
    return len(unit).to_bytes(2) + unit


def _units(data: memoryview) -> Iterator[memoryview]:
    at = 0
    while at + 5 <= len(data):
        size = int.from_bytes(data[at : at + 4])
        if not size or at + 4 + size > len(data):
            return
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


# AAC as a stream of frames that state their own length: ADTS, ISO/IEC 13818-7, 6.2. Such streams can be concatenated.

SAMPLES: Final = 1024
"""The number of samples in a frame."""
_HEAD: Final = 7


def frames(stream: bytes) -> Iterator[bytes]:
    """Yield the frames of a stream. Raise `Unreadable` if it is not such a stream."""
    at = 0
    while at < len(stream):
        head = stream[at : at + _HEAD]
        size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5 if len(head) == _HEAD else 0
        if size < _HEAD or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or at + size > len(stream):
            raise Unreadable("its frames of sound are broken")
        yield stream[at : at + size]
        at += size


_VISUAL: Final = 78
"""The size in bytes of a visual sample entry before its boxes."""
_AUDIO: Final = 28


def is_visual(kind: bytes) -> bool:
    return kind in _VIDEO


def inner_at(kind: bytes) -> int:
    """Return the offset of the boxes of a sample entry."""
    return _VISUAL if is_visual(kind) else _AUDIO


def codec_name(kind: bytes, entry: memoryview) -> str:
    """Return the name of the codec of a sample entry. Raise `Unreadable` for a codec without such a name."""
    name = _VIDEO.get(kind) or _SOUND.get(kind)
    if name is None:
        raise Unreadable("its codec is not supported")
    inner = {box.kind: box.body for box in boxes(entry[inner_at(kind) :])}
    return name(kind.decode("ascii"), inner)


def decoder_configuration(kind: bytes, entry: memoryview) -> bytes:
    """Return the configuration that a decoder of H.264 or AAC needs before the media; empty for other codecs. Raise
    `Unreadable`."""
    inner = {box.kind: box.body for box in boxes(entry[inner_at(kind) :])}
    if kind in (b"avc1", b"avc3"):
        return bytes(_config(inner, b"avcC").rest())
    return _decoder_config(inner)[1] if kind == b"mp4a" else b""


def _avc(kind: str, inner: dict[bytes, memoryview]) -> str:
    config = _config(inner, b"avcC")
    config.skip(1)
    return f"{kind}.{config.whole(3):06x}"


def _hevc(kind: str, inner: dict[bytes, memoryview]) -> str:
    """ISO/IEC 14496-15, E.3."""
    config = _config(inner, b"hvcC")
    config.skip(1)
    first, compatible, constraints, level = config.whole(1), config.whole(4), config.whole(6), config.whole(1)
    space, tier, profile = ("", "A", "B", "C")[first >> 6], "HL"[not first & 0x20], first & 0x1F
    reversed_bits = int(f"{compatible:032b}"[::-1], 2)
    flags = constraints.to_bytes(6, "big").rstrip(b"\0")
    return ".".join([kind, f"{space}{profile}", f"{reversed_bits:x}", f"{tier}{level}", *(f"{flag:x}" for flag in flags)])


def _av1(kind: str, inner: dict[bytes, memoryview]) -> str:
    config = _config(inner, b"av1C")
    config.skip(1)
    first, second = config.whole(1), config.whole(1)
    depth = 8 if not second & 0x40 else 12 if second & 0x20 else 10
    return f"{kind}.{first >> 5}.{first & 0x1F:02d}{'HM'[not second & 0x80]}.{depth:02d}"


def _vp9(kind: str, inner: dict[bytes, memoryview]) -> str:
    config = _config(inner, b"vpcC")
    config.skip(4)
    profile, level, third = config.whole(1), config.whole(1), config.whole(1)
    return f"{kind}.{profile:02d}.{level:02d}.{third >> 4:02d}"


def _aac(kind: str, inner: dict[bytes, memoryview]) -> str:
    object_type, specific = _decoder_config(inner)
    if len(specific) < 2:
        return f"{kind}.{object_type or 0x40:x}.2"
    first = int.from_bytes(specific[:2], "big")
    audio = first >> 11
    return f"{kind}.{object_type:x}.{audio if audio != 31 else 32 + (first >> 5 & 0x3F)}"


def _decoder_config(inner: dict[bytes, memoryview]) -> tuple[int, bytes]:
    """Return the object type, and AudioSpecificConfig. ISO/IEC 14496-1, 7.2.6: descriptors within descriptors."""
    config = _config(inner, b"esds")
    config.skip(4)
    object_type = 0
    while config.remaining >= 2:
        tag = config.whole(1)
        size = _length(config)
        if tag == 0x03:
            config.skip(2)
            flags = config.whole(1)
            config.skip((2 if flags & 0x80 else 0) + (2 if flags & 0x20 else 0))
            if flags & 0x40:
                config.skip(config.whole(1))
        elif tag == 0x04:
            object_type = config.whole(1)
            config.skip(12)
        elif tag == 0x05:
            return object_type, bytes(config.take(size))
        else:
            break
    return object_type, b""


def _length(config: Fields) -> int:
    size = 0
    for _ in range(4):
        byte = config.whole(1)
        size = size << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    return size


def _plain(name: str) -> Callable[[str, dict[bytes, memoryview]], str]:
    return lambda kind, inner: name


def _config(inner: dict[bytes, memoryview], kind: bytes) -> Fields:
    if kind not in inner:
        raise Unreadable(f"it has no {kind.decode()}")
    return Fields(inner[kind])


_VIDEO: Final = {b"avc1": _avc, b"avc3": _avc, b"hvc1": _hevc, b"hev1": _hevc, b"av01": _av1, b"vp09": _vp9}
_SOUND: Final = {b"mp4a": _aac, b"Opus": _plain("opus"), b"ac-3": _plain("ac-3"), b"ec-3": _plain("ec-3"), b"fLaC": _plain("fLaC")}
