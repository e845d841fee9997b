"""Live pictures and those of a playout name their colours, and were converted to them: by the graphs of encode and canvas."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from domain.channel.encoder_settings import RenditionPlan
from tests.support.sources.bars import BARS, SOURCES, agree, colours_of, shown_stream
from tests.support.sources.numbered_frames import tool
from workers.adapters.encoders.canvas import Canvas
from workers.adapters.encoders.encode_command import Input, _pictures
from workers.media.colours import UNNAMED, Colours

NAMES = ("709 in SD", "nothing named, HD", "nothing named, SD", "PQ", "HLG")
WIDE, LINES = 384, 216


def _ffmpeg(*arguments: str) -> None:
    subprocess.run([tool("ffmpeg"), "-v", "error", "-y", *arguments], check=True, stdin=subprocess.DEVNULL)


def _check(made: Path, name: str) -> None:
    stream = shown_stream(made)
    assert stream["color_space"] in ("bt709", "smpte170m")
    assert "unknown" not in (stream["color_primaries"], stream["color_transfer"], stream["color_range"])
    wanted = [SOURCES[name].wanted(colour) for colour in BARS]
    agree(colours_of(made, how=f"scale=in_color_matrix={stream['color_space']}:in_range=tv"), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_live_picture_keeps_its_colours(name: str, tmp_path: Path) -> None:
    source, made = SOURCES[name].make(tmp_path / "source.mkv"), tmp_path / "live.mp4"
    source_input = Input((), (), 5.0, shape=16 / 9, picture="0:0", colours=Colours.of(shown_stream(source)))
    graph = _pictures(source_input, [RenditionPlan(width=WIDE, height=LINES, bitrate=1_000_000, fps=None)])
    _ffmpeg("-i", str(source), "-filter_complex", graph, "-map", "[v0]", "-c:v", "libx264", "-qp", "4", str(made))
    _check(made, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_playout_brings_its_items_to_bt709(name: str, tmp_path: Path) -> None:
    source, raw, made = SOURCES[name].make(tmp_path / "source.mkv"), tmp_path / "canvas.raw", tmp_path / "live.mp4"
    canvas = Canvas(WIDE, LINES, Fraction(5))
    colours = Colours.of(shown_stream(source))
    _ffmpeg("-i", str(source), "-vf", canvas.picture_filter(colours), "-pix_fmt", "yuv420p", "-f", "rawvideo", str(raw))
    graph = _pictures(Input((), (), 5.0, colours=UNNAMED), [RenditionPlan(width=WIDE, height=LINES, bitrate=1_000_000, fps=None)])
    encoded = ("-filter_complex", graph, "-map", "[v0]", "-c:v", "libx264", "-qp", "4", str(made))
    _ffmpeg(*canvas.picture_format, "-i", str(raw), *encoded)
    assert shown_stream(made)["color_space"] == "bt709"
    _check(made, name)
