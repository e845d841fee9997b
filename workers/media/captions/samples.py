"""Cues in samples of MP4 tracks: WebVTT in boxes (`wvtt`), and documents of TTML (`stpp`). ISO/IEC 14496-30."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from workers.media.boxes import boxes
from workers.media.captions.cues import Cue, clean, clean_settings
from workers.media.captions.faults import UnreadableCaptions
from workers.media.captions.reading import MOST_BYTES, MOST_CUES, Captions, read
from workers.media.errors import Unreadable

_BOXED: Final = (b"vttc", b"vtte", b"vtta")


class Sample(NamedTuple):
    """`at` and `lasts` are seconds."""

    at: float
    lasts: float
    data: bytes


def read_samples(samples: Iterable[Sample]) -> Captions:
    """The cues of a track, on its time line. Raises `UnreadableCaptions`."""
    found: dict[Cue, None] = {}
    remarks: list[str] = []
    size = 0
    name = "WebVTT"
    for sample in samples:
        size += len(sample.data)
        if size > MOST_BYTES:
            raise UnreadableCaptions(f"The captions have more than {MOST_BYTES // 1024 // 1024} MiB.")
        if sample.data[4:8] in _BOXED:
            found |= dict.fromkeys(_boxed(sample))
        elif sample.data.strip():
            try:
                document = read(sample.data)
            except UnreadableCaptions as fault:
                remarks.append(f"{fault} A part of the track is left out.")
                continue
            name = document.format
            found |= dict.fromkeys(document.cues)
            remarks += document.remarks
        if len(found) > MOST_CUES:
            raise UnreadableCaptions(f"The captions have more than {MOST_CUES} cues.")
    if not found:
        raise UnreadableCaptions("There is no cue in the track.")
    return Captions(name, list(_whole(sorted(found))), list(dict.fromkeys(remarks))[:10])


def _boxed(sample: Sample) -> Iterator[Cue]:
    begin, end = round(sample.at * 1000), round((sample.at + sample.lasts) * 1000)
    try:
        for box in boxes(memoryview(sample.data)):
            if box.kind != b"vttc":
                continue
            inside = {one.kind: bytes(one.body).decode(errors="replace") for one in boxes(box.body)}
            text = clean(inside.get(b"payl", ""))
            if text and end > begin:
                yield Cue(begin, end, text, clean_settings(inside.get(b"sttg", "")))
    except Unreadable:
        return


def _whole(cues: Iterable[Cue]) -> Iterator[Cue]:
    """A cue over the border of two segments is in both, in two parts."""
    waiting: dict[tuple[str, str], Cue] = {}
    ended: list[Cue] = []
    for cue in cues:
        before = waiting.get((cue.text, cue.settings))
        if before is not None and before.end >= cue.begin - 1:
            waiting[cue.text, cue.settings] = replace(before, end=max(before.end, cue.end))
            continue
        if before is not None:
            ended.append(before)
        waiting[cue.text, cue.settings] = cue
    return iter(sorted((*ended, *waiting.values())))
