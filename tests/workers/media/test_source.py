"""The description of a source, from ffprobe and the first picture."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from domain.job.values import Severity
from tests.support.sources import films
from tests.support.sources.films import Form
from tests.support.sources.measure import picture
from tests.support.sources.numbered_frames import tool
from workers.media.errors import Unusable
from workers.media.file import ProbedFile, probe_at
from workers.media.source import source
from workers.media.tracks import Listing


@dataclass(frozen=True)
class ProgramResult:
    status: int
    output: bytes
    errors: bytes


@dataclass
class Programs:
    """Programs that run without a step."""

    lines: list[str] = field(default_factory=list)

    def run(self, program: str, *args: str, seconds: float) -> ProgramResult:
        done = subprocess.run([tool(program), *args], capture_output=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL)
        return ProgramResult(done.returncode, done.stdout, done.stderr)

    def log(self, message: str, severity: Severity = Severity.INFO) -> None:
        self.lines.append(message)


def probed(path: Path, programme: int | None = None) -> ProbedFile:
    return probe_at(Programs(), path, name=path.name, programme=programme)


def test_times_count_from_the_first_picture_that_is_shown(tmp_path: Path) -> None:
    file = probed(films.between_keys(tmp_path / "film.ts"))
    assert file.start == pytest.approx(picture(file.path).times[0], abs=0.001)
    [first, *_] = [packet for packet in file.packets((0.0, 0.5)) if packet.key and packet.at > -0.01]
    assert first.at == pytest.approx(0.12, abs=0.13), "its first key frame"
    described = source(file)
    assert described.sounds[0].begins == pytest.approx(4.3 - file.start, abs=0.2)
    assert not described.declared


@pytest.mark.parametrize("name", ["film.ts", "film.mp4", "film.mkv"])
def test_what_ffmpeg_reads_counts_from_the_first_picture(tmp_path: Path, name: str) -> None:
    """This holds for any selection of tracks, also if the first track of the file is not selected."""
    path = films.sound_first(tmp_path / name, earlier=0.4) if name != "film.ts" else films.between_keys(tmp_path / name)
    file = probed(path)
    streams = (file.video.index, file.audios[0].index)
    expected = source(file).sounds[0].begins
    for used in (streams, streams[:1], streams[1:]):
        listings = [Listing(stream, tmp_path) for stream in used]
        films.ffmpeg(*file.input(used=used), *(option for listing in listings for option in listing.options()), folder=tmp_path)
        begins = {listing.stream: listing.track().begins for listing in listings}
        if streams[1] in begins:
            assert begins[streams[1]] == pytest.approx(expected, abs=0.05), used
        if streams[0] in begins and name != "film.ts":
            assert begins[streams[0]] == pytest.approx(0.0, abs=0.001), used


def test_the_headers_of_each_track_say_when_it_ends(tmp_path: Path) -> None:
    for name in ("film.mp4", "film.mkv"):
        described = source(probed(films.late(tmp_path / name, picture=3.0)))
        assert described.sounds[0].begins == pytest.approx(-3.0, abs=0.05), name
        assert described.sounds[0].ends == pytest.approx(5.0, abs=0.1), name
        assert described.picture.ends == pytest.approx(5.0, abs=0.1), name
        assert described.declared


def test_the_programme_of_the_highest_picture_is_read_with_its_tracks(tmp_path: Path) -> None:
    path = films.two_programmes(tmp_path / "film.ts")
    described = source(probed(path))
    assert described.programme is not None
    assert (described.programme.number, described.programme.name, len(described.sounds)) == (2, "Flashes", 1)
    other = source(probed(path, programme=1))
    assert (other.picture.width, other.picture.index, other.sounds[0].index) == (160, 0, 1)
    with pytest.raises(Unusable, match="has no programme 3; there is programme 1"):
        _ = probed(path, programme=3).streams
    with pytest.raises(Unusable, match="has no programme 1; there is none"):
        _ = probed(films.film(tmp_path / "film.mp4"), programme=1).streams


def test_tracks_say_what_they_are(tmp_path: Path) -> None:
    path = films.late_subtitle(tmp_path / "plain.mkv")
    marked = tmp_path / "film.mkv"
    options = ("-metadata:s:a:0", "title=Regie", "-metadata:s:a:0", "language=ger", "-disposition:a:0", "comment")
    films.ffmpeg("-i", str(path), "-map", "0", "-c", "copy", *options, "-disposition:s:0", "forced", str(marked))
    described = source(probed(marked))
    [sound], [subtitle] = described.sounds, described.subtitles
    assert (sound.name, sound.language, sound.layout, sound.rate, "comment" in sound.marks) == (
        "Regie",
        "ger",
        "stereo",
        48_000,
        True,
    )
    assert (subtitle.codec, "forced" in subtitle.marks) == ("subrip", True)
    assert described.others == (subtitle.index,)
    assert described.picture.pixels == "yuv420p"


def test_a_film_of_form_is_described_by_it(tmp_path: Path) -> None:
    described = source(probed(films.film(tmp_path / "film.ts", Form(size=(240, 180), sar="4/3", channels=6), audio=films.AC3)))
    assert (described.picture.width, described.picture.height, described.picture.square) == (320, 180, False)
    assert (described.sounds[0].channels, described.sounds[0].codec) == (6, "ac3")
