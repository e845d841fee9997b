"""Trials of ffmpeg and ffprobe: small runs of the operations that the product needs, on generated media, with measured results.
They run like steps of jobs: without the network, and with no files but their own, so that missing libraries show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from json import dumps, loads
from pathlib import Path
from typing import Any, Final

from workers.adapters.encoders.encode_command import REALTIME
from workers.adapters.ffmpeg import libraries
from workers.kernel.confinement import Confinement
from workers.media.colours import JPEG, Colours
from workers.media.filters import PICTURE_TIMES, SOUND_LINE, FilteredTrack, FormedTracks, fitted, key_frames, sound_form, steady
from workers.media.outputs import GIF, MP4, TRACKS, jpeg

_SECONDS: Final = 120.0
_RUN: Final = (
    "import json, os, sys; from workers.kernel.confinement import *; "
    "confine(Confinement(**json.loads(sys.argv[1]))); os.execv(sys.argv[2], sys.argv[2:])"
)
_ENCODERS: Final = ("libx264", "aac", "mjpeg", "gif", "rawvideo", "pcm_s16le", "pcm_f32le", "wrapped_avframe")
_DECODERS: Final = ("h264", "hevc", "mpeg2video", "vp8", "vp9", "mjpeg", "aac", "ac3", "eac3", "mp2", "mp3", "opus", "flac")
_MUXERS: Final = ("mp4", "mpegts", "adts", "gif", "image2", "nut", "rawvideo", "s16le", "framecrc", "framehash", "null")
_DEMUXERS: Final = ("mov", "mpegts", "matroska", "flv", "avi", "mxf", "ogg", "wav", "rawvideo", "s16le")
_FILTERS: Final = (
    *("alimiter", "ametadata", "apad", "aresample", "asetpts", "aformat", "atrim", "bwdif", "crop", "ebur128", "fps", "hstack"),
    *("format", "pad", "palettegen", "paletteuse", "scale", "select", "setparams", "setpts", "setsar", "settb", "showinfo"),
    *("sidedata", "split", "streamselect", "thumbnail", "tile", "tpad", "trim", "volume", "lut", "lutrgb", "colorchannelmixer"),
)
_BITSTREAM_FILTERS: Final = ("aac_adtstoasc", "h264_mp4toannexb", "hevc_mp4toannexb", "noise", "null")
_PROTOCOLS: Final = ("file", "pipe", "fd")
_EXTRAS: Final = {
    "encoders": ("h264_nvenc", "hevc_nvenc", "h264_vaapi", "h264_qsv", "h264_amf", "h264_v4l2m2m", "libx265", "libsvtav1"),
    "filters": ("libvmaf", "drawtext", "zscale"),
    "protocols": ("srt", "rist"),
}
_NAME: Final = re.compile(r"^ *[A-Z.|]{1,8} +([a-z0-9_,]+)|^ *([a-z0-9_]+)$", re.MULTILINE)
_SHOWN: Final = re.compile(r"pts_time:\s*(-?[\d.]+).*?mean:\[(\d+)")
_FLASHES: Final = "color=black:s={size}:r={rate}:d={lasts},drawbox=c=white:t=fill:enable='lt(mod(t+0.0001,2),0.1)'"
_BEEPS: Final = "aevalsrc='{waves}':s={rate}:d={lasts}"
_WAVE: Final = "0.7*sin(2*PI*1000*t)*lt(mod(t\\,2)\\,0.1)"
_APART: Final = 0.06
_CODED: Final = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac")
_TS: Final = ("-muxdelay", "0", "-muxpreload", "0", "-mpegts_flags", "+initial_discontinuity", "-f", "mpegts")
_LIMITS: Final = ("-protocol_whitelist", "file", "-format_whitelist", "mov,mp4,mpegts,nut,matroska,webm")


class TrialFailed(Exception):
    """Raised when a trial fails. Its message is one sentence."""


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    run: Callable[[Stage], None]


@dataclass(frozen=True)
class Stage:
    """The programs under trial, and a folder for their files."""

    ffmpeg: Path
    ffprobe: Path
    folder: Path

    @cached_property
    def _confinement(self) -> str:
        programs = (self.ffmpeg, self.ffprobe)
        run = [str(folder) for program in programs for folder in (program.resolve().parent, *libraries(program))]
        return dumps(asdict(Confinement(network=False, run=run, write=(str(self.folder),))))

    def do(
        self, *arguments: str, program: str = "ffmpeg", quiet: bool = True, given: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        path = self.ffmpeg if program == "ffmpeg" else self.ffprobe
        own = (
            ("-hide_banner", "-nostdin", "-nostats", "-y", *(("-v", "error") if quiet else ()))
            if program == "ffmpeg"
            else ("-v", "error")
        )
        command = [sys.executable, "-c", _RUN, self._confinement, str(path), *own, *arguments]
        environment = {
            "PATH": os.defpath,
            "LC_ALL": "C",
            "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path))),
        }
        try:
            done = subprocess.run(  # noqa: S603 - a program that the operator installed, confined
                command, cwd=self.folder, env=environment, input=given, capture_output=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise TrialFailed("it does not end") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ends with status {done.returncode}"]
            reason = next(
                (line for line in lines if re.search(r"(?i)unrecognized|unknown|no such|not found|invalid|error", line)), lines[-1]
            )
            raise TrialFailed(reason.strip()[:300])
        return done

    def path(self, name: str) -> Path:
        return self.folder / name

    def film(self, name: str, *options: str, size: str = "320x180", rate: int = 25, sound: int = 48_000, channels: int = 2) -> str:
        """Generate a film of four seconds that flashes and beeps at 0 and 2 s."""
        picture = _FLASHES.format(size=size, rate=rate, lasts=4)
        beeps = _BEEPS.format(waves="|".join([_WAVE] * channels), rate=sound, lasts=4)
        if not self.path(name).exists():
            self.do("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", beeps, *_CODED, *options, name)
        return name

    def changing_stream(self) -> str:
        """Generate a stream of eight seconds whose second half has another size, rate and sound."""
        parts = (
            self.film("a.ts", *_TS),
            self.film("b.ts", "-output_ts_offset", "4", *_TS, size="240x180", sound=44_100, channels=1),
        )
        self.path("changing.ts").write_bytes(b"".join(self.path(part).read_bytes() for part in parts))
        return "changing.ts"

    def probe(self, name: str, *show: str) -> dict[str, Any]:
        shown = self.do(*_LIMITS, *(show or ("-show_format", "-show_streams")), "-of", "json", "-i", name, program="ffprobe")
        document = loads(shown.stdout)
        return document if isinstance(document, dict) else {}

    def measure(self, name: str, *, seconds: int, sound: str | None = None) -> None:
        """Raise `TrialFailed` unless there is a flash and a beep at every second second."""
        expected = [float(time) for time in range(0, seconds, 2)]
        output = self.do("-i", name, "-map", "0:v:0", "-vf", "scale=2:2,format=gray,showinfo", "-f", "null", "-", quiet=False)
        bright = [(float(match[1]), int(match[2]) > 128) for match in _SHOWN.finditer(output.stderr.decode(errors="replace"))]
        flashes = [time for (time, on), (_, before) in zip(bright, [(0.0, False), *bright], strict=False) if on and not before]
        raw = self.do(
            "-i", sound or name, "-map", "0:a:0", "-af", "aresample=48000:async=1:first_pts=0", "-ac", "1", "-f", "s16le", "-"
        ).stdout
        beeps, quiet = [], 10**9
        for place, value in enumerate(array("h", raw[: len(raw) // 2 * 2])):
            if abs(value) > 6000:
                if quiet > 4800:
                    beeps.append(place / 48_000)
                quiet = 0
            quiet += 1
        for what, times in (("flashes", flashes), ("beeps", beeps)):
            if len(times) != len(expected) or any(abs(a - b) > _APART for a, b in zip(times, expected, strict=True)):
                raise TrialFailed(f"{what} are at {', '.join(f'{each:.2f}' for each in times) or 'no time'} s, not at {expected}")


def _lists(stage: Stage) -> None:
    for kind, required in (
        *(("encoders", _ENCODERS), ("decoders", _DECODERS), ("muxers", _MUXERS), ("demuxers", _DEMUXERS)),
        *(("filters", _FILTERS), ("bsfs", _BITSTREAM_FILTERS), ("protocols", _PROTOCOLS)),
    ):
        if lacking := sorted(set(required) - names(stage, kind)):
            raise TrialFailed(f"it lacks these {kind}: {', '.join(lacking)}")


def names(stage: Stage, kind: str) -> set[str]:
    listed = stage.do(f"-{kind}").stdout.decode(errors="replace")
    return {name for match in _NAME.finditer(listed) for name in (match[1] or match[2]).split(",")}


def _film(stage: Stage) -> None:
    stage.measure(stage.film("film.mp4", *MP4), seconds=4)


def _probe(stage: Stage) -> None:
    document = stage.probe(stage.film("film.mp4", *MP4))
    if [row.get("codec_name") for row in document.get("streams", ())] != ["h264", "aac"]:
        raise TrialFailed("ffprobe does not report the tracks of a film")
    packets = stage.probe(
        "film.mp4", "-select_streams", "0", "-show_entries", "packet=pts_time,duration_time,flags", "-read_intervals", "1.5%3"
    )
    if not any("K" in str(row.get("flags")) for row in packets.get("packets", ())):
        raise TrialFailed("ffprobe does not report key frames")


def _renditions(stage: Stage) -> None:
    """Encode two sizes in one run, with key frames at the same times, and sound."""
    film = Colours().film
    graph = f"[0:v]split=2[a][b];[a]{film.sized(320, 180)}[c];[b]{film.sized(160, 90)}[d]"
    coded = (
        "-c:v",
        "libx264",
        "-preset",
        "fast",
        "-crf",
        "21",
        "-maxrate",
        "900000",
        "-bufsize",
        "1800000",
        *key_frames(),
        *PICTURE_TIMES,
    )
    stage.film("film.mp4", *MP4)
    sound = ("-map", "0:a", "-af", SOUND_LINE, "-c:a", "aac", *TRACKS, "sound.mp4")
    outputs = (*("-map", "[c]", *coded, *TRACKS, "large.mp4"), *("-map", "[d]", *coded, *TRACKS, "small.mp4"), *sound)
    stage.do(*_LIMITS, "-i", "film.mp4", "-filter_complex", graph, *outputs)
    for name in ("large.mp4", "small.mp4"):
        stage.measure(name, seconds=4, sound="sound.mp4")
        packets = stage.probe(name, "-select_streams", "0", "-show_entries", "packet=pts_time,flags")["packets"]
        if [round(float(packet["pts_time"])) for packet in packets if "K" in packet["flags"]] != [0, 2]:
            raise TrialFailed(f"the key frames of {name} are not at 0 and 2 s")


def _change(stage: Stage) -> None:
    """Convert a source that changes to one format by a loopback decoder, before filters that keep state."""
    formed = FormedTracks(
        (FilteredTrack("0:v:0", fitted(320, 180), True), FilteredTrack("0:a:0", sound_form(2), False)), ("t0.txt", "t1.txt")
    )
    graph = f"{steady(formed.label(0), 'v')};[{formed.label(1)}]{SOUND_LINE}[a]"
    outputs = ("-filter_complex", graph, "-map", "[v]", "-map", "[a]", *_CODED, *PICTURE_TIMES, *MP4, "changed.mp4")
    stage.do(*_LIMITS, "-i", stage.changing_stream(), *formed.options(), *outputs)
    stage.measure("changed.mp4", seconds=8)
    if {
        (stream["width"], stream["height"]) for stream in stage.probe("changed.mp4")["streams"] if stream["codec_type"] == "video"
    } != {(320, 180)}:
        raise TrialFailed("the picture does not have the expected size")


def _capture(stage: Stage) -> None:
    """Copy pieces unchanged, and encode them again where they change."""
    end = "-bsf:v", "noise=drop=gte(dts*tb\\,3.999)", "-bsf:a", "noise=drop=lt(pts*tb\\,-1)+gte(pts*tb\\,3.999)"
    stage.do("-copyts", *_LIMITS, "-i", stage.film("a.ts", *_TS), "-c", "copy", *end, "-output_ts_offset", "10", *_TS, "moved.ts")
    stage.path("joined.ts").write_bytes(stage.path("moved.ts").read_bytes())
    first = (
        "-filter:v",
        "trim=start=9.99:end=13.99,select='isnan(prev_selected_t)+gt(t,prev_selected_t)'",
        "-filter:a",
        "atrim=start=10:end=14",
    )
    times = ("-fps_mode", "passthrough", "-enc_time_base:v", "demux", "-output_ts_offset", "-10")
    stage.do("-copyts", *_LIMITS, "-i", "joined.ts", *first, *_CODED, *times, *MP4, "captured.mp4")
    stage.measure("captured.mp4", seconds=4)
    copied = ("-bsf:v", "null", "-bsf:a", "null", "-output_ts_offset", "-10")
    stage.do("-copyts", *_LIMITS, "-i", "joined.ts", "-c", "copy", *copied, *MP4, "copied.mp4")
    stage.measure("copied.mp4", seconds=4)


def _clip(stage: Stage) -> None:
    stage.film("film.mp4", *MP4)
    cut = ("-filter:v", "trim=start=0:end=1.98,setpts=PTS-0/TB", "-filter:a", "atrim=start=0:end=2,asetpts=PTS-0/TB")
    stage.do(
        "-ss",
        "2.0",
        *_LIMITS,
        "-i",
        "film.mp4",
        *cut,
        *_CODED,
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "demux",
        *MP4,
        "clip.mp4",
    )
    stage.measure("clip.mp4", seconds=2)
    stage.do("-t", "2", "-ss", "2.0", *_LIMITS, "-i", "film.mp4", "-c", "copy", "-avoid_negative_ts", "make_zero", *MP4, "copy.mp4")
    stage.measure("copy.mp4", seconds=2)


def _stills(stage: Stage) -> None:
    stage.film("film.mp4", *MP4)
    stage.do(*_LIMITS, "-i", "film.mp4", "-vf", f"select=eq(n\\,1),{JPEG}", "-frames:v", "1", *jpeg(quality=2), "still.jpg")
    stage.do(
        "-skip_frame",
        "nokey",
        *_LIMITS,
        "-i",
        "film.mp4",
        "-vf",
        "thumbnail=2,scale=64:-2:flags=area,tile=2x1",
        *jpeg(quality=4),
        "tile.jpg",
    )
    stage.do(
        *_LIMITS,
        "-i",
        "film.mp4",
        "-filter_complex",
        "[0:v]palettegen",
        "-frames:v",
        "1",
        "-c:v",
        "rawvideo",
        "-f",
        "nut",
        "palette.nut",
    )
    stage.do(
        *_LIMITS,
        "-i",
        "film.mp4",
        "-i",
        "palette.nut",
        "-filter_complex",
        "[0:v]fps=5[p];[p][1:v]paletteuse",
        "-loop",
        "0",
        *GIF,
        "clip.gif",
    )
    for name in ("still.jpg", "tile.jpg", "clip.gif"):
        if not stage.path(name).stat().st_size:
            raise TrialFailed(f"{name} is empty")


def _high_range(stage: Stage) -> None:
    """Convert a PQ picture to BT.709."""
    tags = {"pix_fmt": "yuv420p10le", "color_space": "bt2020nc", "color_transfer": "smpte2084", "color_primaries": "bt2020"}
    colours = Colours.of(tags)
    named = "setparams=colorspace=bt2020nc:color_primaries=bt2020:color_trc=smpte2084:range=tv"
    source = f"testsrc2=s=64x36:r=5:d=1,format=yuv420p10le,{named}"
    filters = ",".join((*colours.converted(), colours.film.sized(64, 36)))
    stage.do("-f", "lavfi", "-i", source, "-vf", filters, *_CODED[:-2], *MP4, "sdr.mp4")
    [stream] = stage.probe("sdr.mp4")["streams"]
    if (stream.get("color_space"), stream.get("color_transfer")) != ("bt709", "bt709"):
        raise TrialFailed("the film is not marked as BT.709")


def _live(stage: Stage) -> None:
    """Encode CMAF fragments from a source that is read through a descriptor in real time."""
    stage.film("film.mp4", *MP4)
    fragments = ("-f", "mp4", "-movflags", "+cmaf+delay_moov+frag_keyframe", "-frag_duration", "500000")
    coded = (
        "-c:v",
        "libx264",
        "-b:v",
        "300k",
        "-preset",
        "veryfast",
        "-bf",
        "0",
        "-g",
        "9999",
        "-force_key_frames",
        "expr:gte(t,n_forced*2)",
    )
    inputs = (
        "-stats_period",
        "1",
        "-progress",
        "pipe:2",
        *REALTIME,
        "-t",
        "1",
        "-protocol_whitelist",
        "fd,pipe",
        "-fd",
        "0",
        "-i",
        "fd:",
    )
    made = stage.do(
        *inputs, "-map", "0:v", *coded, "-sc_threshold", "0", *fragments, "pipe:1", given=stage.path("film.mp4").read_bytes()
    )
    if not {b"moov", b"moof", b"mdat"} <= {made.stdout[at : at + 4] for at in range(len(made.stdout))}:
        raise TrialFailed("the encoder writes no fragments")


def _push(stage: Stage) -> None:
    """Copy a transport stream to fragments."""
    source = stage.path(stage.film("a.ts", *_TS)).read_bytes()
    fragments = ("-bsf:a", "aac_adtstoasc", "-f", "mp4", "-movflags", "+cmaf+delay_moov+frag_keyframe", "-frag_duration", "500000")
    made = stage.do(
        "-protocol_whitelist", "fd,pipe", "-i", "pipe:0", "-map", "0:a", "-c", "copy", *fragments, "pipe:1", given=source
    )
    stage.path("pushed.mp4").write_bytes(made.stdout)
    if not float(stage.probe("pushed.mp4")["streams"][0].get("duration", 0)) > 3.5:
        raise TrialFailed("the copied sound is incomplete")


def _playout(stage: Stage) -> None:
    """Read and write raw pictures and samples."""
    raw = bytes(64 * 36 * 3 // 2) * 25
    picture = ("-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size", "64x36", "-framerate", "25", "-i", "pipe:0")
    shown = stage.do(
        *picture,
        "-vf",
        "fps=fps=25:start_time=0,format=yuv420p",
        "-fps_mode",
        "passthrough",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "yuv420p",
        "-",
        given=raw,
    )
    heard = stage.do(
        "-f", "s16le", "-ar", "48000", "-ch_layout", "stereo", "-i", "pipe:0", "-f", "s16le", "-", given=bytes(48_000 * 4)
    )
    if len(shown.stdout) != len(raw) or len(heard.stdout) != 48_000 * 4:
        raise TrialFailed("raw pictures and samples do not come back unchanged")


def _loudness(stage: Stage) -> None:
    meter = "aformat=sample_fmts=fltp:channel_layouts=stereo,ebur128=metadata=1,ametadata=mode=print:key=lavfi.r128.I:file=loud.txt"
    stage.do("-f", "lavfi", "-i", "sine=1000:d=3:r=48000,volume=-3dB", "-af", meter, "-f", "null", "-")
    levels = re.findall(r"lavfi\.r128\.I=(-?[\d.]+)", stage.path("loud.txt").read_text())
    if not levels or not -40 < float(levels[-1]) < -10:
        raise TrialFailed("the loudness of a tone is not measured")


def _further_options(stage: Stage) -> None:
    """Try the options that no other trial uses."""
    stage.film("film.mp4", *MP4)
    threads = ("-filter_threads", "4", "-filter_complex_threads", "4", "-threads", "4", "-thread_queue_size", "64")
    reads = (
        "-loglevel",
        "level+warning",
        *threads,
        "-probesize",
        "1M",
        "-analyzeduration",
        "1M",
        "-stream_loop",
        "1",
        "-itsoffset",
        "0",
    )
    video = (
        "-c:v",
        "libx264",
        "-profile:v",
        "high",
        "-level",
        "4.0",
        "-refs",
        "2",
        "-tune",
        "film",
        "-tag:v",
        "avc1",
        "-s",
        "160x90",
    )
    rest = ("-an", "-sn", "-copy_unknown", "-max_error_rate", "1", "-fs", "1M", "-tag:v", "avc1", "-video_track_timescale", "90000")
    even = ("-fps_mode", "cfr", "-r", "25", "-stats_mux_pre:v", "made.txt", "-stats_mux_pre_fmt:v", "{t}")
    stage.do(*reads, "-i", "film.mp4", "-map", "0:v", *video, *even, *rest, *MP4, "twice.mp4")
    stage.do("-i", "film.mp4", "-vn", "-c", "copy", "-f", "adts", "sound.aac")
    marked = ("-map", "0:a", "-c", "copy", "-disposition:a:0", "default", *MP4, "marked.mp4")
    stage.do("-i", "film.mp4", *marked, "-map", "0:a", "-c", "copy", "-f", "framehash", "-hash", "md5", "hashes.txt")
    options = ("-show_streams", "-show_chapters", "-show_programs", "-count_packets", "-show_data_hash", "md5", "-of", "json")
    stage.do(*options, "-o", "told.json", "-i", "twice.mp4", program="ffprobe")
    [stream] = loads(stage.path("told.json").read_text())["streams"]
    if stream.get("nb_read_packets") != "200" or len(stage.path("made.txt").read_text().split()) != 200:
        raise TrialFailed("a film that is read twice does not have twice its frames")


TRIALS: Final[Sequence[Trial]] = (
    Trial("components of the build", _lists),
    Trial("a film in H.264 and AAC", _film),
    Trial("reports of ffprobe", _probe),
    Trial("renditions with equal key frames", _renditions),
    Trial("a source that changes", _change),
    Trial("pieces of a capture", _capture),
    Trial("clips", _clip),
    Trial("stills, sprites and GIFs", _stills),
    Trial("high dynamic range", _high_range),
    Trial("loudness", _loudness),
    Trial("an encoder's fragments", _live),
    Trial("a push", _push),
    Trial("raw pictures of a playout", _playout),
    Trial("further options", _further_options),
)


def extras(stage: Stage) -> Sequence[str]:
    """List abilities of the programs that the product does not need."""
    try:
        return [name for kind, wanted in _EXTRAS.items() for name in sorted(set(wanted) & names(stage, kind))]
    except TrialFailed:
        return []
