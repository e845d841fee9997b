"""Kinds of source: small films with flashes and beeps, each made by ffmpeg as a device, a program or a broadcaster makes them.

The times of a kind's flashes and beeps count from the first picture that a decoder shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.sources import films
from tests.support.sources.captioned import Line21, captioned, triples
from tests.support.sources.films import (
    AAC,
    AC3,
    CHANGES,
    H264,
    H264_B,
    HEVC,
    MP2,
    MPEG2,
    OPUS,
    PERIOD,
    VP8,
    Coding,
    Form,
    ffmpeg,
    flashing,
)
from tests.support.sources.numbered_frames import probed

_SECONDS: Final = 8.0
_ROUNDS: Final = 3
_LONG: Final = Form(seconds=_SECONDS)
_WRAP: Final = 2**33 / 90_000
"""Seconds after which the clock of a transport stream begins again."""
_MP4: Final = ("mp4", "mov")


@dataclass(frozen=True)
class Kind:
    """A kind of source. `make` writes it to a path. `streamed` is its form as an HLS stream: segments of MPEG-TS that are cut
    out of it, or fragments of MP4 that are copied; empty if it is not streamed. `refused` is a part of the reason with which it
    must be refused. `shape` is the width of its picture for a height of 1, as a viewer sees it."""

    name: str
    file: str
    make: Callable[[Path], object]
    seconds: float = _SECONDS
    rate: float = 25.0
    flashes: Sequence[float] | None = None
    beeps: Sequence[float] | None = None
    heard: float | None = None
    """The seconds of sound, if the sound is not as long as the picture."""
    shape: float = 16 / 9
    streamed: str = ""
    refused: str = ""
    direct: str = ""
    """A part of the reason with which clips and stills directly of the source must be refused."""
    picture: str = "v:0"
    """The video track to use, if there are several."""
    repeated: bool = False
    """True if the picture is a still: the product has more frames than the source."""
    white: float = 0.0
    """The end of the first flash in seconds, if it is a slide."""
    added: float = 0.0
    """The seconds of black that a film has before the first picture of the source."""
    damaged: bool = False
    rounds: int = 0
    """The number of times that its ingest is timed and compared with the same work by hand."""

    @property
    def shown_flashes(self) -> Sequence[float]:
        return even(self.seconds) if self.flashes is None else self.flashes

    @property
    def heard_beeps(self) -> Sequence[float]:
        return even(self.seconds) if self.beeps is None else self.beeps

    @property
    def frame(self) -> float:
        return 1 / self.rate

    @property
    def sound_lasts(self) -> float:
        return self.seconds if self.heard is None else self.heard


def even(seconds: float) -> list[float]:
    return [PERIOD * number for number in range(int((seconds - 0.001) // PERIOD) + 1)]


def _film(*options: str, form: Form = _LONG, video: Coding = H264_B, audio: Coding = AAC) -> Callable[[Path], object]:
    return lambda path: films.film(path, form, *options, video=video, audio=audio)


def _copied(*options: str, before: Sequence[str] = (), form: Form = _LONG) -> Callable[[Path], None]:
    """Return a function that writes a film of a phone or an editor: its metadata is changed without encoding."""

    def make(path: Path) -> None:
        whole = path.with_name(f"{path.stem}-whole.mp4")
        films.film(whole, form, video=H264_B)
        ffmpeg(*before, "-i", str(whole), "-c", "copy", *options, str(path))
        whole.unlink()

    return make


def _recorder(path: Path) -> None:
    """Write a film as the MediaRecorder of a browser does: to an output that cannot seek back."""
    ffmpeg(*flashing(_LONG), *VP8, *OPUS, "-live", "1", "-f", "webm", "-cluster_time_limit", "1000", str(path))


def _eight_mono(path: Path) -> None:
    """Write XDCAM: MPEG-2 in 4:2:2 with eight tracks of one channel."""
    form = Form(seconds=_SECONDS, channels=1)
    tracks = [option for _ in range(8) for option in ("-map", "1:a")]
    coded = ("-c:v", "mpeg2video", "-pix_fmt", "yuv422p", "-q:v", "3", "-g", "12", "-bf", "2", "-c:a", "pcm_s16le")
    ffmpeg(*flashing(form), "-map", "0:v", *tracks, *coded, str(path))


def _one_frame(path: Path) -> None:
    ffmpeg(*flashing(Form(seconds=1)), "-frames:v", "1", "-t", "0.04", *H264, "-pix_fmt", "yuv420p", *AAC, str(path))


def _hdr(transfer: str) -> Coding:
    parameters = f"colorprim=bt2020:transfer={transfer}:colormatrix=bt2020nc:keyint=50:min-keyint=50:scenecut=0:log-level=none"
    return ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", parameters, "-tag:v", "hvc1")


def _captions(path: Path) -> None:
    frames = int(_SECONDS * 25)
    line = Line21().pop_on(50, "HELLO", until=100)
    captioned(path, triples(frames, line), coded=("-g", "50", "-sc_threshold", "0"), inputs=flashing(_LONG))


def _damaged(path: Path) -> None:
    """Write a film that lacks packets in its middle, between two flashes."""
    films.film(path, Form(seconds=_SECONDS), video=("-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bf", "0"))
    data = bytearray(path.read_bytes())
    for packet in probed(path, "-select_streams", "v", "-show_entries", "packet=pos,size,pts_time")["packets"]:
        if 4.4 <= float(packet["pts_time"]) < 5.0:
            at, size = int(packet["pos"]), int(packet["size"])
            data[at : at + size] = bytes(size)
    path.write_bytes(data)


def _half(path: Path) -> None:
    films.film(path, _LONG, "-movflags", "+faststart")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


_X264: Final = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-sc_threshold", "0")
_INTERLACED: Final = (*MPEG2, "-flags", "+ildct+ilme", "-top", "1")
_OPEN: Final = (0.12, 2.12, 4.12)
"""The times of flashes; the first picture that is shown is a little earlier than a flash."""
_JUMPS: Final = "what is after that cannot be looked up"
_PARTS: Final = (Form(), Form(size=(240, 180), channels=1, sample_rate=44_100), Form())


def _rate(rate: str) -> Callable[[Path], object]:
    return _film(form=Form(seconds=_SECONDS, rate=rate))


KINDS: Final[Sequence[Kind]] = (
    Kind("MP4, H.264 and AAC", "film.mp4", _film(), streamed="fmp4", rounds=_ROUNDS),
    Kind("MP4, HEVC", "film.mp4", _film("-tag:v", "hvc1", video=HEVC), streamed="fmp4", rounds=_ROUNDS),
    Kind("WebM, VP9 and Opus", "film.webm", _film(video=("-c:v", "libvpx-vp9", "-cpu-used", "8", "-g", "50"), audio=OPUS)),
    Kind("WebM of MediaRecorder, without duration", "film.webm", _recorder),
    Kind("MPEG-TS, MPEG-2 and MP2", "film.ts", _film(video=MPEG2, audio=MP2), streamed="ts", rounds=_ROUNDS),
    Kind("MPEG-TS, AC-3 in 5.1", "film.ts", _film(form=Form(seconds=_SECONDS, channels=6), audio=AC3), streamed="ts"),
    Kind(
        "QuickTime, ProRes and PCM",
        "film.mov",
        _film(form=Form(seconds=_SECONDS, pixels="yuv422p10le"), video=("-c:v", "prores_ks"), audio=("-c:a", "pcm_s24le")),
        rounds=_ROUNDS,
    ),
    Kind(
        "QuickTime, RGB",
        "film.mov",
        _film(form=Form(seconds=_SECONDS, pixels="rgb24"), video=("-c:v", "qtrle"), audio=("-c:a", "pcm_s16le")),
    ),
    Kind("MXF, eight mono tracks", "film.mxf", _eight_mono),
    Kind("FLV", "film.flv", _film()),
    Kind("AVI with B-frames", "film.avi", _film(video=("-c:v", "mpeg4", "-q:v", "4", "-g", "50", "-bf", "2"), audio=MP2)),
    Kind("Matroska, sound begins late", "film.mkv", partial(films.late, sound=3.0), beeps=(4, 6), heard=5.0),
    Kind(
        "Matroska, picture begins late",
        "film.mkv",
        partial(films.late, picture=3.0),
        seconds=5.0,
        flashes=(1, 3),
        beeps=(1, 3),
        added=3.0,
    ),
    Kind(
        "MP4 with an edit list",
        "film.mp4",
        _copied(before=("-ss", "0.48")),
        seconds=_SECONDS - 0.48,
        flashes=(1.52, 3.52, 5.52),
        beeps=(1.52, 3.52, 5.52),
        streamed="",
    ),
    Kind("MP4, sound before the picture", "film.mp4", films.sound_first, beeps=(1.6, 3.6, 5.6), heard=7.6, streamed="fmp4"),
    Kind("sound ends early", "film.mkv", _film("-af", "atrim=end=7"), heard=7.0, streamed="ts-copied"),
    Kind("a hole in the sound", "film.mkv", _film("-af", "aselect='not(between(t,2.5,5.5))'"), beeps=(0, 2, 6), heard=5.0),
    Kind("turned by 90°", "film.mp4", _copied(before=("-display_rotation", "90")), shape=9 / 16, streamed="fmp4"),
    Kind("turned by 180°", "film.mp4", _copied(before=("-display_rotation", "180")), streamed="fmp4"),
    Kind("pixels of 4:3", "film.mp4", _film(form=Form(size=(240, 180), seconds=_SECONDS, sar="4/3")), streamed="fmp4"),
    Kind(
        "4:3, anamorphic",
        "film.ts",
        _film(form=Form(size=(352, 288), seconds=_SECONDS, sar="12/11"), video=MPEG2, audio=MP2),
        shape=4 / 3,
    ),
    Kind(
        "odd sizes in 4:4:4",
        "film.mkv",
        _film(form=Form(size=(319, 179), pixels="yuv444p", seconds=_SECONDS), video=_X264),
        shape=319 / 179,
    ),
    Kind("10 bit, HLG", "film.mp4", _film(form=Form(pixels="yuv420p10le", seconds=_SECONDS), video=_hdr("arib-std-b67"))),
    Kind("10 bit, PQ", "film.mp4", _film(form=Form(pixels="yuv420p10le", seconds=_SECONDS), video=_hdr("smpte2084"))),
    Kind("interlaced, 25 frames", "film.ts", _film(video=_INTERLACED, audio=MP2), streamed="ts"),
    Kind("23.976 frames", "film.mp4", _rate("24000/1001"), rate=24000 / 1001, streamed="fmp4"),
    Kind("29.97 frames", "film.mp4", _rate("30000/1001"), rate=30000 / 1001, streamed="fmp4"),
    Kind("50 frames", "film.mp4", _rate("50"), rate=50.0, streamed="fmp4"),
    Kind("59.94 frames", "film.mp4", _rate("60000/1001"), rate=60000 / 1001, streamed="fmp4"),
    Kind(
        "variable frame rate of a phone",
        "film.mp4",
        _film("-vf", "select=mod(n-1\\,3)", "-fps_mode", "vfr", form=Form(rate="30", seconds=_SECONDS)),
        rate=30.0,
        streamed="fmp4",
    ),
    Kind(
        "still slides",
        "film.mp4",
        films.slides,
        seconds=16.0,
        flashes=(0,),
        repeated=True,
        white=5.0,
    ),
    Kind("a picture that stands still", "film.mkv", films.still, seconds=16.0, rate=30.0, flashes=(0, 2, 14), repeated=True),
    Kind("one frame", "film.mp4", _one_frame, seconds=0.04),
    Kind(
        "size changes",
        "film.ts",
        partial(films.changing, forms=(Form(), Form(size=(240, 180)), Form(size=(160, 90)))),
        seconds=12.0,
        streamed="ts",
    ),
    Kind(
        "layout of sound changes",
        "film.ts",
        partial(films.changing, forms=(Form(channels=6), Form(), Form(channels=1))),
        seconds=12.0,
        streamed="ts",
    ),
    Kind("everything changes", "film.ts", partial(films.changing, forms=CHANGES), seconds=12.0, streamed="ts", rounds=_ROUNDS),
    Kind("an advertisement", "film.ts", partial(films.changing, forms=_PARTS), seconds=12.0, streamed="ts"),
    Kind(
        "begins between keys, MPEG-2",
        "film.ts",
        partial(films.between_keys, video=MPEG2, audio=MP2),
        seconds=6.12,
        flashes=_OPEN,
        beeps=_OPEN,
        streamed="ts",
    ),
    Kind("begins between keys, H.264", "film.ts", partial(films.between_keys, video=H264_B, audio=AAC), seconds=6.0, streamed="ts"),
    Kind("begins between keys, HEVC", "film.ts", partial(films.between_keys, video=HEVC, audio=AAC), seconds=6.0, streamed="ts"),
    Kind("clock jumps forward", "film.ts", films.clock_jump, direct=_JUMPS, streamed="ts"),
    Kind("clock jumps back", "film.ts", partial(films.clock_jump, jump=-3000.0), direct=_JUMPS, streamed="ts"),
    Kind("clock begins again (wraps)", "film.ts", _film("-output_ts_offset", f"{_WRAP - 5.4:.3f}"), streamed="ts"),
    Kind("two programmes", "film.ts", films.two_programmes, seconds=6.0, picture="v:1"),
    Kind("a subtitle that ends late", "film.mkv", films.late_subtitle, seconds=6.0),
    Kind("captions within the picture", "film.mp4", _captions, streamed="fmp4"),
    Kind("damaged in the middle", "film.mp4", _damaged, damaged=True),
    Kind("half of a file", "film.mp4", _half, refused="it is not whole"),
)

BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}
