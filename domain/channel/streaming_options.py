"""The options of an Event for its encoders: a list of allowed options, each with a check of its value.

The text looks like a command line but is never executed as one. An option that is not in the list, or whose value is not valid, is
left out and reported. No option of an operator can therefore make a program read a file, reach an address or start something.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

LONGEST: Final = 4_096
MOST: Final = 64
LONGEST_DVR: Final = 7 * 24 * 3600
_SHOWN: Final = re.compile(r"[^A-Za-z0-9:._-]")
_SIZES: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_PRESETS: Final = "ultrafast superfast veryfast faster fast medium slow"
_TUNES: Final = "film animation grain stillimage fastdecode zerolatency"
_PROFILES: Final = "baseline main high"
_LEVELS: Final = "3.0 3.1 3.2 4.0 4.1 4.2 5.0 5.1 5.2 30 31 32 40 41 42 50 51 52"

Check = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """Options of an encoder. Lengths are in seconds, bitrates in bits per second; None is the default of the encoder."""

    dvr_length: int | None = None
    min_bitrate: int | None = None
    max_bitrate: int | None = None
    archive: bool | None = None
    """True if the publishing points keep media that is older than the window."""
    segment_length: float | None = None
    encode: Mapping[str, str] = field(default_factory=dict)
    """Checked options of the encode itself, by their names with a hyphen."""
    ignored: Sequence[str] = ()
    """Names of options that were left out, without values, which may be secret."""


def encoder_options(
    text: str, *, dvr_length: int | None = None, min_bitrate: int | None = None, max_bitrate: int | None = None
) -> EncoderOptions:
    """Return the options of an Event. Options in the text override the Event's other values."""
    taken: dict[str, str] = {}
    ignored: list[str] = []
    for name, value in _pairs(text, ignored):
        check = _ALLOWED.get(name)
        passed = check(value) if check is not None else None
        if passed is None or len(taken) >= MOST:
            ignored.append(_named(name))
        else:
            taken[name] = passed
    window = taken.get("--dvr_window_length")
    archive = taken.get("--archive")
    segment = taken.get("--hls.minimum_fragment_length")
    return EncoderOptions(
        dvr_length=int(window) if window is not None else dvr_length,
        min_bitrate=min_bitrate,
        max_bitrate=max_bitrate,
        archive=None if archive is None else archive == "true",
        segment_length=None if segment is None else float(Fraction(segment)),
        encode={name: value for name, value in taken.items() if not name.startswith("--")},
        ignored=tuple(dict.fromkeys(ignored)),
    )


def _pairs(text: str, ignored: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value, "" if it has none."""
    try:
        tokens = shlex.split(text[:LONGEST]) if len(text) <= LONGEST else []
    except ValueError:
        ignored.append("(quotation marks do not match)")
        return
    if len(text) > LONGEST:
        ignored.append("(too long)")
    while tokens:
        token = tokens.pop(0)
        if not _is_option(token):
            ignored.append("(a value without an option)")
            continue
        name, equals, value = token.partition("=")
        if not equals and tokens and not _is_option(tokens[0]):
            value = tokens.pop(0)
        yield name, value


def _is_option(token: str) -> bool:
    return re.match(r"--?[A-Za-z]", token) is not None


def _named(name: str) -> str:
    return _SHOWN.sub("?", name[:40])


def _whole(least: int, most: int) -> Check:
    def check(value: str) -> str | None:
        return str(int(value)) if re.fullmatch(r"\d{1,9}", value, re.ASCII) and least <= int(value) <= most else None

    return check


def _rate(least: int, most: int) -> Check:
    """Return a check for bits per second, also in thousands and millions: `800k`, `4.5M`."""

    def check(value: str) -> str | None:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([kKmM]?)", value, re.ASCII)
        rate = int(Fraction(match[1]) * _SIZES[match[2].casefold()]) if match else -1
        return str(rate) if least <= rate <= most else None

    return check


def _one_of(names: str) -> Check:
    allowed = names.split()
    return lambda value: value if value in allowed else None


def _switch(value: str) -> str | None:
    return {"": "true", "1": "true", "true": "true", "0": "false", "false": "false"}.get(value.casefold())


def _fraction(least: float, most: float) -> Check:
    """Return a check for a number, or a fraction as in `48/25`."""

    def check(value: str) -> str | None:
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?|\d{1,6}/[1-9]\d{0,5}", value, re.ASCII):
            return None
        return value if least <= Fraction(value) <= most else None

    return check


_BITRATE: Final = _rate(32_000, 100_000_000)
_ALLOWED: Final[Mapping[str, Check]] = {
    "--dvr_window_length": _whole(0, LONGEST_DVR),
    "--archive": _switch,
    "--hls.minimum_fragment_length": _fraction(0.5, 20),
    "-g": _whole(1, 2_400),
    "-b:v": _BITRATE,
    "-maxrate": _BITRATE,
    "-bufsize": _rate(32_000, 400_000_000),
    "-b:a": _rate(16_000, 512_000),
    "-r": _fraction(1, 120),
    "-bf": _whole(0, 4),
    "-refs": _whole(1, 8),
    "-preset": _one_of(_PRESETS),
    "-tune": _one_of(_TUNES),
    "-profile:v": _one_of(_PROFILES),
    "-level": _one_of(_LEVELS),
    "-ac": _whole(1, 8),
    "-ar": _one_of("32000 44100 48000"),
}
ALLOWED: Final = tuple(_ALLOWED)
