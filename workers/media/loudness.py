"""Measures the loudness of sound by EBU R 128 and ITU-R BS.1770 with the meter of ffmpeg.

A meter restarts when the form of the sound changes: sound must be converted to a single form before it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import isfinite, log10
from pathlib import Path
from typing import Final

SOFTEST: Final = -65.0
"""The loudness in LUFS below which sound counts as silence: otherwise noise would be amplified."""
_INTEGRATED: Final = "lavfi.r128.I"
_MOMENTARY: Final = "lavfi.r128.M"
_SHORT_TERM: Final = "lavfi.r128.S"
_RANGE: Final = "lavfi.r128.LRA"
_PEAKS: Final = "lavfi.r128.true_peaks_ch"
_LARGEST: Final = (_MOMENTARY, _SHORT_TERM)


@dataclass(frozen=True, slots=True)
class LoudnessMeasure:
    """The loudness of a track in LUFS; `range` in LU, `true_peak` in dBTP. `momentary` and `short_term` are the largest values. A
    value is None if the track is silent, or too short: 0.4 s are needed, 3 s for `short_term`. Without `peaks` only `integrated` is
    measured."""

    integrated: float | None = None
    range: float | None = None
    momentary: float | None = None
    short_term: float | None = None
    true_peak: float | None = None


def meter(file: str, *, peaks: bool = False) -> str:
    """Return the filter that writes the values for `read_meter` to a file in the folder of ffmpeg. With `peaks` it measures all
    values of `LoudnessMeasure`, which takes longer."""
    if peaks:
        return f"ebur128=metadata=1:peak=true,ametadata=mode=print:file={file}"
    return f"ebur128=metadata=1,ametadata=mode=print:key={_INTEGRATED}:file={file}"


def read_meter(file: Path) -> LoudnessMeasure:
    """Parse the output of the meter. The values are None if no sound reached it."""
    last: dict[str, float] = {}
    largest: dict[str, float] = {}
    with suppress(FileNotFoundError), file.open() as lines:
        for line in lines:
            name, _, text = line.partition("=")
            if not name.startswith("lavfi.r128."):
                continue
            with suppress(ValueError):
                last[name] = value = float(text)
                if isfinite(value) and (name in _LARGEST or name.startswith(_PEAKS)):
                    largest[name] = max(value, largest.get(name, value))
    peaks = [value for name, value in largest.items() if name.startswith(_PEAKS)]
    return LoudnessMeasure(
        integrated=_audible(last.get(_INTEGRATED)),
        range=last.get(_RANGE),
        momentary=_audible(largest.get(_MOMENTARY)),
        short_term=_audible(largest.get(_SHORT_TERM)),
        true_peak=20 * log10(max(peaks)) if peaks and max(peaks) > 0 else None,
    )


def _audible(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) and value > SOFTEST else None
