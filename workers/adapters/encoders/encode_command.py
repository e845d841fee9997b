"""The command line of an encode: one process, a picture for each rendition, and a pipe for each track.

It contains no address and no file name: a source is a test picture, a device, or a descriptor that was opened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from domain.channel.encoder_settings import SAMPLE_RATE, EncodeSettings, RenditionPlan
from domain.event.values import AudioInput
from workers.adapters.encoders.tracks import TrackPlan
from workers.media.colours import DRAWN, UNNAMED, Colours
from workers.media.filters import FilteredTrack, FormedTracks, fitted, key_frames, sound_form, sound_line

TEST_FPS: Final = 25.0
BITS: Final = 16
"""The number of bits of the frame number that a test picture shows at its bottom as black and white blocks, the lowest bit at the
left."""
REALTIME: Final = ("-re", "-readrate_initial_burst", "0.01")
"""Options to read a source as fast as it is shown, without an initial burst. A burst would make the media run ahead of the time of
day, so that a further session would begin before the end of this one."""
_TONE: Final = 440
_HD_PATTERNS: Final = frozenset({"smptehdbars"})
_FRAGMENT: Final = "500000"
_AUDIO_FRAGMENT: Final = "250000"
_MP4: Final = ("-f", "mp4", "-movflags")
LONGEST_GAP: Final = 60
"""The longest gap that is filled, in seconds. A longer gap in the times of a track is a jump of the source's clock, which ffmpeg
removes. A shorter one is a missing part or a still picture, and is filled. This bounds how much is filled at once."""
JUMPS: Final = ("-dts_delta_threshold", str(LONGEST_GAP))
_JUMPS: Final = (*JUMPS, "-dts_error_threshold", str(LONGEST_GAP))
_STRETCH: Final = 1_000
"""Samples per second by which sound is stretched or squeezed, because the audio clocks of devices and senders differ from their
video clocks."""
_HARD: Final = 0.05
_RATES: Final = (
    *map(Fraction, (24, 25, 30, 48, 50, 60)),
    *(Fraction(rate * 1000, 1001) for rate in (24, 30, 48, 60)),
)


@dataclass(frozen=True, slots=True)
class Input:
    """The arguments before the outputs. `sounds` are the audio streams that are sent, `rate` is in frames per second, None if it is
    unknown."""

    arguments: Sequence[str]
    sounds: Sequence[AudioInput]
    rate: float | None = None
    streams: Sequence[str] = ()
    """The stream specifier of each sound, in ffmpeg's notation."""
    shape: float | None = None
    """The initial width of the picture divided by its height, as displayed. None if the picture keeps its size to the end."""
    picture: str = "0:v:0"
    colours: Colours = UNNAMED
    """The colours of the picture of the input."""


def encode_command(
    program: Path, source: Input, *, settings: EncodeSettings, progress: str, pipe: Callable[[TrackPlan], str]
) -> Sequence[str]:
    """Return the command. `progress` is the output for reports of progress; `pipe` returns the output of a track.

    ffmpeg rebuilds a filter graph whenever its source changes, and the new graph begins without state. So a separate graph brings
    each sound to one form, its output is written nowhere, and it is decoded for the graph that keeps the time. Pictures need no
    state: their times are absolute, and missing frames are filled after the graph (`-fps_mode cfr`).
    """
    command = [str(program), "-hide_banner", "-nostdin", "-loglevel", "level+warning", "-stats_period", "1", "-progress", progress]
    command += [*_JUMPS, *source.arguments]
    rate = int(settings.encode.get("-ar", SAMPLE_RATE))
    form = sound_form(int(settings.encode.get("-ac", 2)), rate=rate)
    formed = FormedTracks(tuple(FilteredTrack(stream, form, is_picture=False) for stream in source.streams))
    line = sound_line(rate=rate, stretch=_STRETCH, hard=_HARD)
    command += formed.options() if source.streams else ()
    command += ["-filter_complex", _pictures(source, settings.renditions)]
    for place in range(len(source.streams)):
        command += ["-filter_complex", f"[{formed.label(place)}]{line}[a{place}]"]
    for place, rendition in enumerate(settings.renditions):
        plan = TrackPlan(f"v{place}", rendition.bitrate, rendition.fps or source.rate)
        command += ["-map", f"[v{place}]", *_video(rendition, settings), *_MP4, "+cmaf+delay_moov+frag_keyframe"]
        command += ["-frag_duration", _FRAGMENT, pipe(plan)]
    for place, sound in enumerate(source.sounds):
        audio = TrackPlan(f"a{place}", settings.audio_bitrate, audio=sound)
        command += ["-map", f"[a{place}]", "-c:a", "aac", "-b:a", str(settings.audio_bitrate), *_MP4, "+cmaf+delay_moov"]
        command += ["-frag_duration", _AUDIO_FRAGMENT, pipe(audio)]
    return command


def pattern_input(settings: EncodeSettings, *, sounds: Sequence[AudioInput]) -> Input:
    """Return a moving test picture with the frame number, and a tone for each audio input, each tone higher than the one before."""
    width, height, fps = largest_picture(settings)
    rate = fps or TEST_FPS
    counter = max(8, height // 12 // 2 * 2)
    pattern = settings.source.pattern or "testsrc2"
    blocks = "lum='if(mod(floor(N/pow(2\\,X))\\,2)\\,235\\,16)'"
    graph = (
        f"{pattern}=s={width}x{height}:r={rate:g},format=yuv420p[p];"
        f"nullsrc=s={BITS}x1:r={rate:g},format=gray,geq={blocks},scale={width}:{counter}:flags=neighbor[c];"
        f"[p][c]overlay=0:{height - counter}[out0]"
    )
    tones = [f"sine=frequency={_TONE * (place + 1)}:sample_rate={SAMPLE_RATE}[out{place + 1}]" for place in range(len(sounds))]
    streams = [f"0:a:{place}" for place in range(len(sounds))]
    arguments = (*REALTIME, "-f", "lavfi", "-i", ";".join([graph, *tones]))
    return Input(arguments, sounds, rate, streams, colours=UNNAMED if pattern in _HD_PATTERNS else DRAWN)


def largest_picture(settings: EncodeSettings) -> tuple[int, int, float | None]:
    """Return width, height and frames per second of the rendition with the most lines. A rendition without a width is 16:9."""
    largest = max(settings.renditions, key=lambda rendition: rendition.height)
    return largest.width or round(largest.height * 8 / 9) * 2, largest.height, largest.fps


def exact_rate(fps: float, *, within: float = 0.0002) -> Fraction:
    """Return the nearest standard rate if it is within this relative tolerance, such as 30000/1001 for 29.97; otherwise the rate
    itself."""
    nearest = min(_RATES, key=lambda rate: abs(rate - fps))
    return nearest if abs(nearest - fps) <= fps * within else Fraction(fps).limit_denominator(1001)


def _pictures(source: Input, renditions: Sequence[RenditionPlan]) -> str:
    splits = "".join(f"[s{place}]" for place in range(len(renditions)))
    scaled = [f"[s{place}]{_picture(source, rendition)}[v{place}]" for place, rendition in enumerate(renditions)]
    once = ",".join((*source.colours.converted(), f"split={len(renditions)}"))
    return ";".join([f"[{source.picture}]{once}{splits}", *scaled])


def _picture(source: Input, rendition: RenditionPlan) -> str:
    rate = rendition.fps or source.rate
    timed = f"fps={exact_rate(rate)}:eof_action=pass," if rate else ""
    width = rendition.width or (source.shape and max(2, round(rendition.height * source.shape / 2) * 2))
    coded = source.colours.film.coded
    size = fitted(width, rendition.height, coded=coded) if width else f"scale=-2:{rendition.height}:{coded},setsar=1"
    return f"{timed}{size}"


def _video(rendition: RenditionPlan, settings: EncodeSettings) -> Sequence[str]:
    """Return the video options. Every rendition has key frames at the borders of segments, and more often if `-g` of the Event
    demands it."""
    encode_options = settings.encode
    rate = str(rendition.bitrate)
    options = {
        "-preset": "veryfast",
        "-bf": "0",
        "-g": "9999",
        "-maxrate": rate,
        "-bufsize": str(rendition.bitrate * 2),
        **{name: value for name, value in encode_options.items() if name in _OF_VIDEO},
    }
    borders = key_frames(every=settings.segment)
    return ("-c:v", "libx264", "-b:v", rate, *borders, *(part for pair in options.items() for part in pair), "-fps_mode", "cfr")


_OF_VIDEO: Final = frozenset({"-g", "-maxrate", "-bufsize", "-bf", "-refs", "-preset", "-tune", "-profile:v", "-level"})
