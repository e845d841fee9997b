"""Cues in samples of MP4 tracks: WebVTT in boxes (`wvtt`), and documents of TTML (`stpp`). ISO/IEC 14496-30."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from workers.media.boxes import boxes
from workers.media.captions.cues import Cue, UnreadableCaptions, clean, clean_settings, in_order
from workers.media.captions.reading import MOST_BYTES, MOST_CUES, Captions, read
from workers.media.errors import Unreadable

_BOXED: Final = (b"vttc", b"vtte", b"vtta")


class CaptionSample(NamedTuple):
    """A sample. `at` and `lasts` are seconds."""

    at: float
    lasts: float
    data: bytes


def read_samples(samples: Iterable[CaptionSample]) -> Captions:
    """Return the cues of a track, on its time line. Raise `UnreadableCaptions`."""
    cues: dict[Cue, None] = {}
    remarks: list[str] = []
    size = 0
    name = "WebVTT"
    for sample in samples:
        size += len(sample.data)
        if size > MOST_BYTES:
            raise UnreadableCaptions(f"The captions have more than {MOST_BYTES // 1024 // 1024} MiB.")
        if sample.data[4:8] in _BOXED:
            cues |= dict.fromkeys(_read_boxes(sample))
        elif sample.data.strip():
            try:
                document = read(sample.data)
            except UnreadableCaptions as fault:
                remarks.append(f"{fault} A part of the track is left out.")
                continue
            name = document.format
            cues |= dict.fromkeys(document.cues)
            remarks += document.remarks
        if len(cues) > MOST_CUES:
            raise UnreadableCaptions(f"The captions have more than {MOST_CUES} cues.")
    if not cues:
        raise UnreadableCaptions("There is no cue in the track.")
    return Captions(name, _merge_parts(in_order(cues)), list(dict.fromkeys(remarks))[:10])


def _read_boxes(sample: CaptionSample) -> Iterator[Cue]:
    begin, end = round(sample.at * 1000), round((sample.at + sample.lasts) * 1000)
    try:
        for box in boxes(memoryview(sample.data)):
            if box.kind != b"vttc":
                continue
            inside = {inner.kind: bytes(inner.body).decode(errors="replace") for inner in boxes(box.body)}
            text = clean(inside.get(b"payl", ""))
            if text and end > begin:
                yield Cue(begin, end, text, clean_settings(inside.get(b"sttg", "")))
    except Unreadable:
        return


def _merge_parts(cues: Iterable[Cue]) -> list[Cue]:
    """Merge the parts of cues. A cue over the border of two segments is in both, in two parts. The cues are in the order of their
    begin."""
    merged: list[Cue] = []
    places: dict[tuple[str, str], int] = {}
    for cue in cues:
        at = places.get((cue.text, cue.settings))
        if at is not None and merged[at].end >= cue.begin - 1:
            merged[at] = replace(merged[at], end=max(merged[at].end, cue.end))
        else:
            places[cue.text, cue.settings] = len(merged)
            merged.append(cue)
    return merged
