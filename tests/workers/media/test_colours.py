"""Bars of known colours have the same colours in pictures and films."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.sources.bars import BAR, BARS, JFIF, SOURCES, agree, colours_of, rgb_bars, shown_stream
from tests.support.sources.numbered_frames import tool
from workers.media.colours import JPEG, Colours

_ONE = ("-frames:v", "1", "-update", "1")


def _made(source: Path, made: Path, *filters: str, options: Sequence[str] = ()) -> Path:
    chain = ",".join(filters) or "null"
    command = [tool("ffmpeg"), "-v", "error", "-y", "-i", str(source), "-filter_complex", chain, *options, str(made)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return made


@pytest.mark.parametrize("name", SOURCES)
def test_pictures_and_films_show_the_colours_of_the_source(name: str, tmp_path: Path) -> None:
    bars = SOURCES[name]
    source = bars.make(tmp_path / "source.mkv")
    colours, wanted = Colours.of(shown_stream(source)), [bars.wanted(colour) for colour in BARS]
    picture = _made(source, tmp_path / "picture.jpg", *colours.converted(), JPEG, options=("-c:v", "mjpeg", "-q:v", "1", *_ONE))
    agree(colours_of(picture, how=JFIF), wanted)
    palette = "split[shown][all];[all]palettegen[palette];[shown][palette]paletteuse"
    agree(colours_of(_made(source, tmp_path / "animated.gif", *colours.converted(), palette)), wanted)

    film = colours.film
    coded = ("-c:v", "libx264", "-qp", "4", "-preset", "ultrafast")
    made = _made(source, tmp_path / "film.mp4", *colours.converted(), film.sized(BAR * len(BARS), 108), options=coded)
    stream = shown_stream(made)
    named = (stream.get("color_space"), stream.get("color_primaries"), stream.get("color_transfer"), stream.get("color_range"))
    assert named == (film.matrix, film.primaries, film.transfer, "tv")
    agree(colours_of(made, how=f"scale=in_color_matrix={stream['color_space']}:in_range=tv"), wanted)


@pytest.mark.parametrize("lines", [108, 720])
def test_rgb_becomes_bt709_that_is_named(lines: int, tmp_path: Path) -> None:
    source = rgb_bars(tmp_path / "source.mov", lines=lines)
    colours = Colours.of(shown_stream(source))
    picture = _made(source, tmp_path / "picture.jpg", *colours.converted(), JPEG, options=("-c:v", "mjpeg", "-q:v", "1", *_ONE))
    agree(colours_of(picture, how=JFIF), BARS)
    sized = colours.film.sized(BAR * len(BARS), lines)
    made = _made(source, tmp_path / "film.mp4", *colours.converted(), sized, options=("-c:v", "libx264", "-qp", "4"))
    assert shown_stream(made)["color_space"] == "bt709"
    agree(colours_of(made, how="scale=in_color_matrix=bt709:in_range=tv"), BARS)


def test_what_has_the_colours_of_a_film_is_not_converted() -> None:
    named = {
        "pix_fmt": "yuv420p",
        "color_range": "tv",
        "color_primaries": "bt709",
        "color_transfer": "bt709",
        "color_space": "bt709",
        "height": 1080,
    }
    for stream in (named, named | {"color_range": "pc"}, named | {"color_space": "smpte170m", "color_primaries": "smpte170m"}):
        assert Colours.of(stream).converted() == ()


def test_a_picture_that_was_made_for_a_brighter_display_is_mapped_from_its_peak() -> None:
    side = [{"side_data_type": "Mastering display metadata", "max_luminance": "40000000/10000"}]
    hdr = {"pix_fmt": "yuv420p10le", "color_space": "bt2020nc", "color_primaries": "bt2020", "color_transfer": "smpte2084"}
    assert Colours.of(hdr).peak == 1000
    assert Colours.of(hdr | {"side_data_list": side}).peak == 4000
    for odd in ("0/1", "1/0", "-1/1", "99999999999/1", "x", None):
        assert 203 <= Colours.of(hdr | {"side_data_list": [{"max_luminance": odd}]}).peak <= 10_000
