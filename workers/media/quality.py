"""The quality of a film: the measures of its picture and its sound from one pass of ffmpeg, and the verdict of a profile. These are
pure functions.

Filters write their results to files in ffmpeg's folder. A profile has limits; a measure beyond a limit is a reason, which makes the
film `warn` or `fail`. All times are in seconds from the first picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from workers.media.colours import Colours
from workers.media.filters import SOUND_LINE
from workers.media.loudness import LoudnessMeasure, meter, read_meter
from workers.media.packet_list import listed_packets

LARGEST_PROFILE: Final = 65_536
"""The largest size in bytes of a file with a profile."""
PICTURE: Final = "picture.txt"
LEVELS: Final = "levels.txt"
FRAMES: Final = "frames.txt"
_BLACK: Final = 0.5
"""Seconds: shorter black is a cut, and is not listed."""
_STILL: Final = 2.0
_SILENT: Final = 1.0
_STEADY: Final = 0.9
"""The share of frames with the same distance that gives a film a rate."""
_LONGEST_GAP: Final = 1.0
"""Seconds between two frames of a film without a rate."""
_MOST_LISTED: Final = 100


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"


class Check(StrEnum):
    """A measure that a profile may limit."""

    LOUDNESS = "loudness"
    TRUE_PEAK = "true_peak"
    BLACK = "black"
    FREEZE = "freeze"
    SILENCE = "silence"
    MISSING = "missing"
    DECODING = "decoding"
    LEVELS = "levels"
    COLOURS = "colours"


_Seconds = Annotated[float, Field(ge=0, le=86_400)]


class Profile(BaseModel):
    """The limits of a house. None means no limit. A measure beyond a limit in `warns` is a warning, beyond any other a failure.
    `keep_private` is True if a film that fails does not become public."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    loudness: Annotated[float, Field(ge=-70, le=0)] | None = Field(None, description="Integrated loudness, in LUFS.")
    tolerance: Annotated[float, Field(ge=0, le=20)] = Field(1.0, description="Tolerance of the loudness, in LU.")
    true_peak: Annotated[float, Field(ge=-60, le=20)] | None = Field(None, description="The largest true peak, in dBTP.")
    black_begin: _Seconds | None = Field(3.0, description="Seconds of black at the beginning.")
    black: _Seconds | None = Field(5.0, description="Seconds of continuous black after the beginning and before the end.")
    freeze: _Seconds | None = Field(20.0, description="Seconds for which the picture is frozen.")
    silence: _Seconds | None = Field(10.0, description="Seconds of continuous silence.")
    missing: _Seconds | None = Field(0.5, description="Seconds for which frames are missing, in total.")
    decoding: Annotated[int, Field(ge=0)] | None = Field(0, description="Errors of the decoders.")
    levels: Annotated[float, Field(ge=0, le=1)] | None = Field(0.05, description="Share of pixels outside of the limited range.")
    warns: tuple[Check, ...] = Field(
        (Check.FREEZE, Check.SILENCE, Check.LEVELS, Check.COLOURS), description="The checks that only warn."
    )
    keep_private: bool = Field(False, description="True if a film that fails does not become public.")


PROFILES: Final[Mapping[str, Profile]] = {
    "ebu-r128": Profile(name="ebu-r128", loudness=-23.0, tolerance=1.0, true_peak=-1.0),
    "a85": Profile(name="a85", loudness=-24.0, tolerance=2.0, true_peak=-2.0),
}


class Span(BaseModel):
    """A part of a film."""

    model_config = ConfigDict(frozen=True)

    begin: float
    end: float

    @property
    def lasts(self) -> float:
        return self.end - self.begin


class PictureMeasures(BaseModel):
    """The measures of a picture. `missing` are gaps between frames, `levels` is the share of pixels outside of the limited range,
    in a frame of each second."""

    model_config = ConfigDict(frozen=True)

    frames: int
    duration: float
    black: tuple[Span, ...]
    freeze: tuple[Span, ...]
    missing: tuple[Span, ...]
    levels: float | None
    matrix: str
    primaries: str
    transfer: str
    full_range: bool
    named: bool


class SoundMeasures(BaseModel):
    """The measures of an audio track: loudness in LUFS, `range` in LU, `true_peak` in dBTP. They are None if it is silent or too
    short."""

    model_config = ConfigDict(frozen=True)

    track: int
    language: str
    channels: int
    integrated: float | None
    range: float | None
    momentary: float | None
    short_term: float | None
    true_peak: float | None
    silence: tuple[Span, ...]


class Reason(BaseModel):
    """The reason for which a film does not pass."""

    model_config = ConfigDict(frozen=True)

    check: Check
    verdict: Verdict
    message: str


class Report(BaseModel):
    """The contents of `quality.json`."""

    model_config = ConfigDict(frozen=True)

    file: str
    profile: Profile
    verdict: Verdict
    reasons: tuple[Reason, ...]
    picture: PictureMeasures
    sounds: tuple[SoundMeasures, ...]
    decoding_errors: int


def picture_filters(source: str) -> str:
    """Return a graph for the picture `source`, a label: `[frames]` has its frames, and `[levels]` one frame of each second. The
    results are written to `PICTURE` and `LEVELS`. The graph has a memory, so the picture must have a single form."""
    detectors = f"blackdetect=d={_BLACK}:pic_th=0.98:pix_th=0.10,freezedetect=n=-60dB:d={_STILL},metadata=mode=print:file={PICTURE}"
    second = "select='isnan(prev_selected_t)+gte(t-prev_selected_t,1)'"
    levels = f"{second},signalstats=stat=brng,metadata=mode=print:key=lavfi.signalstats.BRNG:file={LEVELS}"
    return f"[{source}]split[all][some];[all]{detectors},scale=2:2:flags=neighbor[frames];[some]{levels}[levels]"


def sound_filters(track: int) -> str:
    """Return the filters for an audio track in a single form. The results are written to its file."""
    return f"{SOUND_LINE},silencedetect=n=-60dB:d={_SILENT},{meter(sound_file(track), peaks=True)}"


def sound_file(track: int) -> str:
    return f"sound-{track}.txt"


def read_picture(folder: Path, *, colours: Colours) -> PictureMeasures | None:
    """Parse the measures of the picture; None if nothing of it could be decoded."""
    times, lasts = _frame_times(folder / FRAMES)
    if not times:
        return None
    end = times[-1] + lasts
    file = folder / PICTURE
    black = _spans(file, "lavfi.black_start", "lavfi.black_end", end=end, least=_BLACK)
    still = _spans(file, "lavfi.freezedetect.freeze_start", "lavfi.freezedetect.freeze_end", end=end, least=_STILL)
    shares = [float(value) for _, value in _values(folder / LEVELS) if isfinite(float(value))]
    return PictureMeasures(
        frames=len(times),
        duration=round(end, 3),
        black=_round_spans(black),
        freeze=_round_spans(
            [still_span for still_span in still if not any(_covers(black_span, still_span) for black_span in black)]
        ),
        missing=_round_spans(_gaps(times)),
        levels=None if not shares else round(sum(shares) / len(shares), 6),
        matrix=colours.matrix if colours.yuv else "rgb",
        primaries=colours.primaries,
        transfer=colours.transfer,
        full_range=colours.full,
        named=colours.named,
    )


def read_sound(folder: Path, track: int, *, end: float, language: str, channels: int) -> SoundMeasures:
    """Parse the measures of an audio track. `end` is the length of the picture."""
    file = folder / sound_file(track)
    loud = read_meter(file)
    silent = _spans(file, "lavfi.silence_start", "lavfi.silence_end", end=end, least=_SILENT)
    rounded = {name: _round(getattr(loud, name)) for name in LoudnessMeasure.__slots__}
    return SoundMeasures(track=track, language=language, channels=channels, silence=_round_spans(silent), **rounded)


def judge(
    file: str, profile: Profile, *, picture: PictureMeasures, sounds: Sequence[SoundMeasures], decoding_errors: int
) -> Report:
    """Return the report. Its verdict is that of the worst reason."""
    pairs = (*_of_sounds(profile, sounds), *_of_picture(profile, picture), *_of_decoding(profile, decoding_errors))
    reasons = tuple(
        Reason(check=check, verdict=Verdict.WARN if check in profile.warns else Verdict.FAIL, message=message)
        for check, message in pairs
    )
    verdicts = {reason.verdict for reason in reasons}
    verdict = next((candidate for candidate in (Verdict.FAIL, Verdict.WARN) if candidate in verdicts), Verdict.PASS)
    return Report(
        file=file,
        profile=profile,
        verdict=verdict,
        reasons=reasons,
        picture=picture,
        sounds=tuple(sounds),
        decoding_errors=decoding_errors,
    )


_Findings = Iterator[tuple[Check, str]]


def _of_sounds(profile: Profile, sounds: Sequence[SoundMeasures]) -> _Findings:
    for sound in sounds:
        name = f"Audio track {sound.track}" + (f" ({sound.language})" if sound.language else "")
        if profile.loudness is not None and sound.integrated is not None:
            off = sound.integrated - profile.loudness
            if abs(off) > profile.tolerance + 0.05:
                wanted = f"{profile.loudness:g} LUFS ± {profile.tolerance:g} LU"
                yield (
                    Check.LOUDNESS,
                    f"{name} is {'too loud' if off > 0 else 'too soft'}: {sound.integrated:.1f} LUFS, and not {wanted}.",
                )
        if profile.true_peak is not None and sound.true_peak is not None and sound.true_peak > profile.true_peak + 0.05:
            yield Check.TRUE_PEAK, f"{name} has a true peak of {sound.true_peak:.1f} dBTP, above {profile.true_peak:g} dBTP."
        if profile.silence is not None:
            yield from _each(Check.SILENCE, f"{name} is silent", sound.silence, most=profile.silence)


def _of_picture(profile: Profile, picture: PictureMeasures) -> _Findings:
    first = [span for span in picture.black if span.begin <= _BLACK]
    within = [span for span in picture.black if span not in first and span.end < picture.duration - _BLACK]
    if profile.black_begin is not None:
        yield from _each(Check.BLACK, "The picture is black", first, most=profile.black_begin)
    if profile.black is not None:
        yield from _each(Check.BLACK, "The picture is black", within, most=profile.black)
    if profile.freeze is not None:
        yield from _each(Check.FREEZE, "The picture stands still", picture.freeze, most=profile.freeze)
    lost = sum(span.lasts for span in picture.missing)
    if profile.missing is not None and picture.missing and lost > profile.missing:
        at = ", ".join(f"{span.begin:.2f} s" for span in picture.missing[:5])
        yield Check.MISSING, f"Frames are missing for {lost:.2f} s, at {at}{' and more' if len(picture.missing) > 5 else ''}."
    if profile.levels is not None and picture.levels is not None and not picture.full_range and picture.levels > profile.levels:
        yield (
            Check.LEVELS,
            f"{picture.levels:.1%} of the pixels are outside of the limited range; {profile.levels:.1%} are allowed.",
        )
    if not picture.named:
        yield Check.COLOURS, "The picture does not name its matrix and its range; players guess them."


def _of_decoding(profile: Profile, errors: int) -> _Findings:
    if profile.decoding is not None and errors > profile.decoding:
        yield Check.DECODING, f"The decoders found {errors} error{'' if errors == 1 else 's'}."


def _each(check: Check, what: str, spans: Sequence[Span], *, most: float) -> _Findings:
    for span in spans:
        if span.lasts > most + 0.001:
            yield check, f"{what} for {span.lasts:.1f} s from {span.begin:.1f} s on; at most {most:g} s are allowed."


def _values(file: Path, *names: str) -> Iterator[tuple[str, str]]:
    with suppress(FileNotFoundError), file.open() as lines:
        for line in lines:
            name, _, value = line.rstrip("\n").partition("=")
            if value and (not names or name in names) and not name.startswith("frame:"):
                with suppress(ValueError):
                    float(value)
                    yield name, value


def _spans(file: Path, begin: str, end_name: str, *, end: float, least: float) -> list[Span]:
    """Parse spans from the file of a detector. A span that has begun and not ended lasts until `end`."""
    spans: list[Span] = []
    began: float | None = None
    for name, value in _values(file, begin, end_name):
        if name == begin:
            began = float(value) if began is None else began
        elif began is not None:
            spans.append(Span(begin=began, end=float(value)))
            began = None
    if began is not None and end > began:
        spans.append(Span(begin=began, end=end))
    return [span for span in spans if span.lasts >= least - 0.001][:_MOST_LISTED]


def _frame_times(file: Path) -> tuple[list[float], float]:
    """Return the times of the frames from the list of ffmpeg's framecrc, and the duration of the last frame."""
    times: list[float] = []
    lasts = 0.0
    with suppress(FileNotFoundError), file.open() as lines:
        for frame in listed_packets(lines):
            times.append(frame.at)
            lasts = frame.lasts
    return times, lasts


def _gaps(times: Sequence[float]) -> list[Span]:
    """Return the spans in which frames are missing: in a film with a rate, distances half as long again; in others, those of a
    second or more."""
    between = [after - before for before, after in pairwise(times)]
    if not between:
        return []
    usual = median(between)
    steady = sum(abs(distance - usual) <= max(usual * 0.1, 0.002) for distance in between) >= _STEADY * len(between)
    longest = usual * 1.5 + 0.001 if steady else _LONGEST_GAP
    gaps = [Span(begin=before + usual, end=after) for before, after in pairwise(times) if after - before > longest]
    return gaps[:_MOST_LISTED]


def _covers(black: Span, still: Span) -> bool:
    common = min(black.end, still.end) - max(black.begin, still.begin)
    return common >= 0.9 * still.lasts


def _round_spans(spans: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(Span(begin=round(max(span.begin, 0.0), 3), end=round(span.end, 3)) for span in spans)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
