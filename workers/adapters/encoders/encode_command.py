"""The command line of an encode: one process, a picture for each rendition, and a pipe for each track.

It names no address and no file: a source is a test picture, a device, or a descriptor that was opened for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from domain.configuration.encoder_settings import SAMPLE_RATE, EncodeSettings, RenditionPlan
from domain.media_event.values import AudioInput
from workers.adapters.encoders.tracks import TrackPlan

TEST_FPS: Final = 25.0
BITS: Final = 16
"""Of the number of the frame, which a test picture shows at its bottom as black and white blocks, the lowest at the left."""
REALTIME: Final = ("-re", "-readrate_initial_burst", "0.01")
"""A source is read as fast as it is shown. Without a burst, which would make the media run ahead of the time of day, so that a
further session would begin before the end of this one."""
_TONE: Final = 440
_FRAGMENT: Final = "500000"
_AUDIO_FRAGMENT: Final = "250000"
_MP4: Final = ("-f", "mp4", "-movflags")


@dataclass(frozen=True, slots=True)
class Input:
    """Arguments before the outputs. `sounds` are its audio streams that are sent, `rate` frames a second where they are known."""

    arguments: Sequence[str]
    sounds: Sequence[AudioInput]
    rate: float | None = None
    streams: Sequence[str] = ()
    """Where each sound is, as ffmpeg spells it."""


def encode_command(
    program: Path, source: Input, *, settings: EncodeSettings, progress: str, pipe: Callable[[TrackPlan], str]
) -> Sequence[str]:
    """`progress`: where it reports; `pipe` gives the output of a track."""
    command = [str(program), "-hide_banner", "-nostdin", "-loglevel", "level+warning", "-stats_period", "1", "-progress", progress]
    command += [*source.arguments, "-filter_complex", _pictures(settings.renditions)]
    for place, rendition in enumerate(settings.renditions):
        plan = TrackPlan(f"v{place}", rendition.bitrate, rendition.fps or source.rate)
        command += ["-map", f"[v{place}]", *_video(rendition, settings), *_MP4, "+cmaf+delay_moov+frag_keyframe"]
        command += ["-frag_duration", _FRAGMENT, pipe(plan)]
    for place, sound in enumerate(source.sounds):
        audio = TrackPlan(f"a{place}", settings.audio_bitrate, audio=sound)
        command += ["-map", source.streams[place], *_audio(settings), *_MP4, "+cmaf+delay_moov"]
        command += ["-frag_duration", _AUDIO_FRAGMENT, pipe(audio)]
    return command


def pattern_input(settings: EncodeSettings, *, sounds: Sequence[AudioInput]) -> Input:
    """A moving picture with the number of the frame, and a tone for each audio input, each higher than the one before."""
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
    return Input((*REALTIME, "-f", "lavfi", "-i", ";".join([graph, *tones])), sounds, rate, streams)


def largest_picture(settings: EncodeSettings) -> tuple[int, int, float | None]:
    """Width, height and frames a second of the rendition with the most lines; wide where it says no width."""
    largest = max(settings.renditions, key=lambda one: one.height)
    return largest.width or round(largest.height * 8 / 9) * 2, largest.height, largest.fps


def _pictures(renditions: Sequence[RenditionPlan]) -> str:
    splits = "".join(f"[s{place}]" for place in range(len(renditions)))
    scaled = [
        f"[s{place}]{f'fps={one.fps:g},' if one.fps else ''}scale={one.width or -2}:{one.height},setsar=1,format=yuv420p[v{place}]"
        for place, one in enumerate(renditions)
    ]
    return ";".join([f"[0:v:0]split={len(renditions)}{splits}", *scaled])


def _video(rendition: RenditionPlan, settings: EncodeSettings) -> Sequence[str]:
    """Key frames at the borders of segments in every rendition, and where `-g` of the Event asks for more."""
    given = settings.encode
    rate = str(rendition.bitrate)
    options = {
        "-preset": "veryfast",
        "-bf": "0",
        "-g": "9999",
        "-maxrate": rate,
        "-bufsize": str(rendition.bitrate * 2),
        **{name: value for name, value in given.items() if name in _OF_VIDEO},
    }
    borders = ("-force_key_frames", f"expr:gte(t,n_forced*{settings.segment:g})", "-sc_threshold", "0")
    return ("-c:v", "libx264", "-b:v", rate, *(part for pair in options.items() for part in pair), *borders)


def _audio(settings: EncodeSettings) -> Sequence[str]:
    given = {"-ac": "2", "-ar": str(SAMPLE_RATE), **{key: value for key, value in settings.encode.items() if key in ("-ac", "-ar")}}
    filled = ("-af", "aresample=async=1000:first_pts=0")
    return ("-c:a", "aac", "-b:a", str(settings.audio_bitrate), *(part for pair in given.items() for part in pair), *filled)


_OF_VIDEO: Final = frozenset({"-g", "-maxrate", "-bufsize", "-bf", "-refs", "-preset", "-tune", "-profile:v", "-level"})
