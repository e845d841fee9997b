"""The quality of a film: what is measured of its picture and its sound in one pass of ffmpeg, and what a profile says of it. Pure.

Filters write what they find to files of ffmpeg's folder. A profile has limits; what is beyond one is a reason, which makes the film
`warn` or `fail`. All times are in seconds from the first picture.
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
from workers.media.loudness import Loudness, meter, read_meter
from workers.media.packet_list import listed_packets

LARGEST_PROFILE: Final = 65_536
"""Bytes of a file with a profile."""
PICTURE: Final = "picture.txt"
LEVELS: Final = "levels.txt"
FRAMES: Final = "frames.txt"
_BLACK: Final = 0.5
"""Seconds: shorter black is a cut, and is not listed."""
_STILL: Final = 2.0
_SILENT: Final = 1.0
_STEADY: Final = 0.9
"""A film has a rate if at least this share of its frames has the same distance."""
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
    """The limits of a house. None is no limit. What is beyond one of `warns` is a warning, anything else a failure. `keep_private`:
    a film that fails does not become public."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    loudness: Annotated[float, Field(ge=-70, le=0)] | None = Field(None, description="Integrated loudness, in LUFS.")
    tolerance: Annotated[float, Field(ge=0, le=20)] = Field(1.0, description="How far from it, in LU.")
    true_peak: Annotated[float, Field(ge=-60, le=20)] | None = Field(None, description="The largest true peak, in dBTP.")
    black_begin: _Seconds | None = Field(3.0, description="Seconds of black at the begin.")
    black: _Seconds | None = Field(5.0, description="Seconds of black in one piece after the begin and before the end.")
    freeze: _Seconds | None = Field(20.0, description="Seconds in which the picture stands still.")
    silence: _Seconds | None = Field(10.0, description="Seconds of silence in one piece.")
    missing: _Seconds | None = Field(0.5, description="Seconds for which frames are missing, in all.")
    decoding: Annotated[int, Field(ge=0)] | None = Field(0, description="Errors of the decoders.")
    levels: Annotated[float, Field(ge=0, le=1)] | None = Field(0.05, description="Share of pixels outside of the limited range.")
    warns: tuple[Check, ...] = Field(
        (Check.FREEZE, Check.SILENCE, Check.LEVELS, Check.COLOURS), description="The checks that only warn."
    )
    keep_private: bool = Field(False, description="Whether a film that fails does not become public.")


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
    """`missing` are gaps between frames, `levels` the share of pixels outside of the limited range, in a frame of each second."""

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
    """Loudness in LUFS, `range` in LU, `true_peak` in dBTP. None: it is silent or too short."""

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
    """Why a film does not pass."""

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
    """A graph for the picture `source`, a label: `[frames]` has its frames, and `[levels]` one of each second. What is found is
    written to `PICTURE` and `LEVELS`. It remembers, so the picture must have one form."""
    found = f"blackdetect=d={_BLACK}:pic_th=0.98:pix_th=0.10,freezedetect=n=-60dB:d={_STILL},metadata=mode=print:file={PICTURE}"
    second = "select='isnan(prev_selected_t)+gte(t-prev_selected_t,1)'"
    levels = f"{second},signalstats=stat=brng,metadata=mode=print:key=lavfi.signalstats.BRNG:file={LEVELS}"
    return f"[{source}]split[all][some];[all]{found},scale=2:2:flags=neighbor[frames];[some]{levels}[levels]"


def sound_filters(track: int) -> str:
    """The filters for an audio track that has one form. What is found is written to its file."""
    return f"{SOUND_LINE},silencedetect=n=-60dB:d={_SILENT},{meter(sound_file(track), peaks=True)}"


def sound_file(track: int) -> str:
    return f"sound-{track}.txt"


def read_picture(folder: Path, *, colours: Colours) -> PictureMeasures | None:
    """Read the measures of the picture. None means that nothing of it could be decoded."""
    times, lasts = _frame_times(folder / FRAMES)
    if not times:
        return None
    end = times[-1] + lasts
    found = folder / PICTURE
    black = _spans(found, "lavfi.black_start", "lavfi.black_end", end=end, least=_BLACK)
    still = _spans(found, "lavfi.freezedetect.freeze_start", "lavfi.freezedetect.freeze_end", end=end, least=_STILL)
    shares = [float(value) for _, value in _values(folder / LEVELS) if isfinite(float(value))]
    return PictureMeasures(
        frames=len(times),
        duration=round(end, 3),
        black=_rounded_spans(black),
        freeze=_rounded_spans([one for one in still if not any(_covers(other, one) for other in black)]),
        missing=_rounded_spans(_gaps(times)),
        levels=None if not shares else round(sum(shares) / len(shares), 6),
        matrix=colours.matrix if colours.yuv else "rgb",
        primaries=colours.primaries,
        transfer=colours.transfer,
        full_range=colours.full,
        named=colours.named,
    )


def read_sound(folder: Path, track: int, *, end: float, language: str, channels: int) -> SoundMeasures:
    """Read the measures of an audio track. `end` is how long the picture lasts."""
    file = folder / sound_file(track)
    loud = read_meter(file)
    silent = _spans(file, "lavfi.silence_start", "lavfi.silence_end", end=end, least=_SILENT)
    rounded = {name: _rounded(getattr(loud, name)) for name in Loudness.__slots__}
    return SoundMeasures(track=track, language=language, channels=channels, silence=_rounded_spans(silent), **rounded)


def judge(
    file: str, profile: Profile, *, picture: PictureMeasures, sounds: Sequence[SoundMeasures], decoding_errors: int
) -> Report:
    """The verdict is that of the worst reason."""
    found = (*_of_sounds(profile, sounds), *_of_picture(profile, picture), *_of_decoding(profile, decoding_errors))
    reasons = tuple(
        Reason(check=check, verdict=Verdict.WARN if check in profile.warns else Verdict.FAIL, message=message)
        for check, message in found
    )
    verdicts = {reason.verdict for reason in reasons}
    verdict = next((one for one in (Verdict.FAIL, Verdict.WARN) if one in verdicts), Verdict.PASS)
    return Report(
        file=file,
        profile=profile,
        verdict=verdict,
        reasons=reasons,
        picture=picture,
        sounds=tuple(sounds),
        decoding_errors=decoding_errors,
    )


_Found = Iterator[tuple[Check, str]]


def _of_sounds(profile: Profile, sounds: Sequence[SoundMeasures]) -> _Found:
    for sound in sounds:
        who = f"Audio track {sound.track}" + (f" ({sound.language})" if sound.language else "")
        if profile.loudness is not None and sound.integrated is not None:
            off = sound.integrated - profile.loudness
            if abs(off) > profile.tolerance + 0.05:
                wanted = f"{profile.loudness:g} LUFS ± {profile.tolerance:g} LU"
                yield (
                    Check.LOUDNESS,
                    f"{who} is {'too loud' if off > 0 else 'too soft'}: {sound.integrated:.1f} LUFS, and not {wanted}.",
                )
        if profile.true_peak is not None and sound.true_peak is not None and sound.true_peak > profile.true_peak + 0.05:
            yield Check.TRUE_PEAK, f"{who} has a true peak of {sound.true_peak:.1f} dBTP, above {profile.true_peak:g} dBTP."
        if profile.silence is not None:
            yield from _each(Check.SILENCE, f"{who} is silent", sound.silence, most=profile.silence)


def _of_picture(profile: Profile, picture: PictureMeasures) -> _Found:
    first = [one for one in picture.black if one.begin <= _BLACK]
    within = [one for one in picture.black if one not in first and one.end < picture.duration - _BLACK]
    if profile.black_begin is not None:
        yield from _each(Check.BLACK, "The picture is black", first, most=profile.black_begin)
    if profile.black is not None:
        yield from _each(Check.BLACK, "The picture is black", within, most=profile.black)
    if profile.freeze is not None:
        yield from _each(Check.FREEZE, "The picture stands still", picture.freeze, most=profile.freeze)
    lost = sum(one.lasts for one in picture.missing)
    if profile.missing is not None and picture.missing and lost > profile.missing:
        at = ", ".join(f"{one.begin:.2f} s" for one in picture.missing[:5])
        yield Check.MISSING, f"Frames are missing for {lost:.2f} s, at {at}{' and more' if len(picture.missing) > 5 else ''}."
    if profile.levels is not None and picture.levels is not None and not picture.full_range and picture.levels > profile.levels:
        yield (
            Check.LEVELS,
            f"{picture.levels:.1%} of the pixels are outside of the limited range; {profile.levels:.1%} are allowed.",
        )
    if not picture.named:
        yield Check.COLOURS, "The picture does not name its matrix and its range; players guess them."


def _of_decoding(profile: Profile, errors: int) -> _Found:
    if profile.decoding is not None and errors > profile.decoding:
        yield Check.DECODING, f"The decoders found {errors} error{'' if errors == 1 else 's'}."


def _each(check: Check, what: str, spans: Sequence[Span], *, most: float) -> _Found:
    for one in spans:
        if one.lasts > most + 0.001:
            yield check, f"{what} for {one.lasts:.1f} s from {one.begin:.1f} s on; at most {most:g} s are allowed."


def _values(file: Path, *names: str) -> Iterator[tuple[str, str]]:
    with suppress(FileNotFoundError), file.open() as lines:
        for line in lines:
            name, _, value = line.rstrip("\n").partition("=")
            if value and (not names or name in names) and not name.startswith("frame:"):
                with suppress(ValueError):
                    float(value)
                    yield name, value


def _spans(file: Path, begin: str, end_name: str, *, end: float, least: float) -> list[Span]:
    """Read spans from a file of a detector. A span that has begun and not ended lasts until `end`."""
    found: list[Span] = []
    began: float | None = None
    for name, value in _values(file, begin, end_name):
        if name == begin:
            began = float(value) if began is None else began
        elif began is not None:
            found.append(Span(begin=began, end=float(value)))
            began = None
    if began is not None and end > began:
        found.append(Span(begin=began, end=end))
    return [one for one in found if one.lasts >= least - 0.001][:_MOST_LISTED]


def _frame_times(file: Path) -> tuple[list[float], float]:
    """When the frames are shown, by the list of ffmpeg's framecrc, and how long the last one lasts."""
    times: list[float] = []
    lasts = 0.0
    with suppress(FileNotFoundError), file.open() as lines:
        for frame in listed_packets(lines):
            times.append(frame.at)
            lasts = frame.lasts
    return times, lasts


def _gaps(times: Sequence[float]) -> list[Span]:
    """List where frames are missing. In a film with a rate that is a distance half as long again, else one from a second on."""
    between = [after - before for before, after in pairwise(times)]
    if not between:
        return []
    usual = median(between)
    steady = sum(abs(one - usual) <= max(usual * 0.1, 0.002) for one in between) >= _STEADY * len(between)
    longest = usual * 1.5 + 0.001 if steady else _LONGEST_GAP
    gaps = [Span(begin=before + usual, end=after) for before, after in pairwise(times) if after - before > longest]
    return gaps[:_MOST_LISTED]


def _covers(black: Span, still: Span) -> bool:
    common = min(black.end, still.end) - max(black.begin, still.begin)
    return common >= 0.9 * still.lasts


def _rounded_spans(spans: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(Span(begin=round(max(one.begin, 0.0), 3), end=round(one.end, 3)) for one in spans)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
