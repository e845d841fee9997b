"""Subtitle tracks of sources: kept as text tracks of the film with their languages and kinds, from the first picture on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from lxml import etree

from domain.job.values import Severity
from tests.support.packages import run
from tests.support.sources.captioned import Line21, captioned, triples
from tests.support.sources.numbered_frames import film, probed
from tests.support.sources.playlists import event, item
from tests.support.sources.playlists import playlist as composed
from tests.support.step_hosts import Listener
from tests.workers.job.sources import ffmpeg
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer
from workers.media.captions.reading import read
from workers.media.captions.tracks import TextTrack, listed_tracks
from workers.media.hls import attributes

SRT: Final = "1\n00:00:01,000 --> 00:00:02,500\nHello <i>there</i>\n\n2\n00:00:03,000 --> 00:00:03,800\nR&B\n"
VTT: Final = "WEBVTT\n\n00:01.500 --> 00:02.500 line:10%\nHallo\n"
ASS: Final = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\nStyle: Default,Arial,16\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\\i1}Bonjour{\\i0}\\Nmonde\n"
)
HOSTILE: Final = "1\n00:00:01,000 --> 00:00:02,000\n<script>alert(1)</script><img src=x onerror=alert(1)>\n\n" + "".join(
    f"{number}\n00:00:0{number // 1000},{number % 1000:03} --> 00:00:03,500\n{'A' * 3000}\n\n" for number in range(2, 2_000)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("subtitles") / "media"
    folder = root / "in"
    folder.mkdir(parents=True)
    for name, text in (("a.srt", SRT), ("b.vtt", VTT), ("c.ass", ASS), ("hostile.srt", HOSTILE)):
        (folder / name).write_text(text)
    film(folder / "film.mp4")
    film_with(folder, "five.mkv", ("a.srt", "eng"), ("c.ass", "fre"), ("b.vtt", "ger"), ("a.srt", "pt-BR"), ("a.srt", "xx9"))
    film_with(folder, "text.mp4", ("a.srt", "eng"), coded="mov_text")
    film_with(folder, "timed.mp4", ("a.srt", "deu"), coded="ttml")
    film_with(folder, "hostile.mkv", ("hostile.srt", "eng"), ("b.vtt", "ger"))
    tracks = ("-map", "0:v", "-map", "1", "-c:v", "copy", "-c:s", "srt", "-metadata:s:s:0", "language=eng")
    ffmpeg("-itsoffset", "0.8", "-i", str(folder / "film.mp4"), "-i", str(folder / "a.srt"), *tracks, str(folder / "late.mkv"))
    (folder / "pictures.sup").write_bytes(blu_ray_subtitles(1.0, 2.0))
    film_with(folder, "pictures.mkv", ("pictures.sup", "eng"), ("b.vtt", "ger"), coded="copy")
    captioned(folder / "captioned.mov", triples(100, Line21().pop_on(50, "HELLO", until=75)))
    return root


def film_with(folder: Path, name: str, *tracks: tuple[str, str], coded: str = "") -> None:
    """Make a film of four seconds with these subtitles, the first of which is for viewers who cannot hear and the second forced."""
    inputs = [option for file, _ in tracks for option in ("-i", str(folder / file))]
    maps = [option for number in range(len(tracks) + 1) for option in ("-map", str(number))]
    languages = [
        option for number, (_, language) in enumerate(tracks) for option in (f"-metadata:s:s:{number}", f"language={language}")
    ]
    kinds = ("-disposition:s:0", "hearing_impaired", *(("-disposition:s:1", "forced") if len(tracks) > 1 else ()))
    named = ("-metadata:s:s:0", "title=English for the\tdeaf") if len(tracks) > 1 else ()
    codecs = ("-c:s", coded) if coded else ()
    ffmpeg("-i", str(folder / "film.mp4"), *inputs, *maps, "-c:v", "copy", *codecs, *languages, *named, *kinds, str(folder / name))


def blu_ray_subtitles(*times: float) -> bytes:
    """Return displays of a PGS stream without any object."""
    made = b""
    for number, time in enumerate(times):
        composition = bytes((5, 0, 2, 208, 16, 0, number, 0x80, 0, 0, 0))
        for kind, content in ((0x16, composition), (0x80, b"")):
            stamps = round(time * 90_000).to_bytes(4, "big") + bytes(4)
            made += b"PG" + stamps + bytes([kind]) + len(content).to_bytes(2, "big") + content
    return made


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def test_five_languages_are_in_both_manifests(hosts: StepProcessPool, root: Path) -> None:
    made = await run(hosts, root, "vod_ingest", content_id="five", file="in/five.mkv")
    assert not isinstance(made, StepFailure), made
    folder = root / "five/clear"
    media = [attributes(line) for line in (folder / "master.m3u8").read_text().splitlines() if "TYPE=SUBTITLES" in line]
    assert [(medium["LANGUAGE"], medium["NAME"], medium.get("FORCED")) for medium in media] == [
        ("en", "English for the deaf", None),
        ("fr", "fr", "YES"),
        ("de", "de", None),
        ("pt-BR", "pt-BR", None),
        ("und", "und", None),
    ]
    assert "transcribes-spoken-dialog" in media[0]["CHARACTERISTICS"]
    for medium in media:
        assert (folder / medium["URI"]).is_file()
    sets = etree.parse(str(folder / "manifest.mpd")).getroot().findall(".//{*}AdaptationSet[@contentType='text']")
    assert [(set_.get("lang"), role(set_)) for set_ in sets] == [
        ("en", "caption"),
        ("fr", "forced-subtitle"),
        ("de", "subtitle"),
        ("pt-BR", "subtitle"),
        ("und", "subtitle"),
    ]
    files = [str(set_.findtext(".//{*}BaseURL")) for set_ in sets]
    assert [cues(folder / file) for file in files[:3]] == [
        [(1000, 2500, "Hello <i>there</i>"), (3000, 3800, "R&amp;B")],
        [(2000, 3000, "<i>Bonjour</i>\nmonde")],
        [(1500, 2500, "Hallo")],
    ]


def role(adaptation: Any) -> str | None:
    element = adaptation.find("{*}Role")
    return None if element is None else element.get("value")


@pytest.mark.parametrize(("source", "expected"), [("text.mp4", ("en", "captions")), ("timed.mp4", ("de", "captions"))])
async def test_subtitles_of_mp4_files_are_kept(hosts: StepProcessPool, root: Path, source: str, expected: tuple[str, str]) -> None:
    """The formats are `mov_text` and TTML."""
    content = source.partition(".")[0]
    made = await run(hosts, root, "vod_ingest", content_id=content, file=f"in/{source}")
    assert not isinstance(made, StepFailure), made
    [track] = made["captions"]["tracks"]
    assert (track["language"], track["kind"]) == expected
    [first, second] = cues(root / content / f"subtitles/{track['stem']}.vtt")
    assert (first[:2], "Hello" in first[2], second) == ((1000, 2500), True, (3000, 3800, "R&amp;B"))


async def test_times_count_from_the_first_picture(hosts: StepProcessPool, root: Path) -> None:
    made = await run(hosts, root, "vod_ingest", content_id="late", file="in/late.mkv")
    assert not isinstance(made, StepFailure), made
    assert cues(root / "late/subtitles/en-subtitles.vtt") == [(200, 1700, "Hello <i>there</i>"), (2200, 3000, "R&amp;B")]


async def test_hostile_subtitles_are_left_out_and_the_film_is_made(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    made = await run(hosts, root, "vod_ingest", content_id="hostile", file="in/hostile.mkv", listener=listener)
    assert not isinstance(made, StepFailure), made
    assert [track["language"] for track in made["captions"]["tracks"]] == ["de"]
    assert [line for _, line in listener.lines if "are not kept" in line] == [
        "The captions of track 1 in en of in/hostile.mkv are not kept. The captions have more than 5 MiB."
    ]


async def test_subtitles_of_pictures_are_told_and_not_kept(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    made = await run(hosts, root, "vod_ingest", content_id="pictures", file="in/pictures.mkv", listener=listener)
    assert not isinstance(made, StepFailure), made
    assert [track["language"] for track in made["captions"]["tracks"]] == ["de"]
    message = "The captions of track 1 in en of in/pictures.mkv (hdmv_pgs_subtitle) are not kept: they are pictures."
    assert (Severity.WARN, message) in listener.lines


async def test_line_21_becomes_text_too(hosts: StepProcessPool, root: Path) -> None:
    """The pictures keep their captions, and players that do not show those get a track."""
    made = await run(hosts, root, "vod_ingest", content_id="cc", file="in/captioned.mov", caption_languages={"CC1": "en"})
    assert not isinstance(made, StepFailure), made
    [track] = made["captions"]["tracks"]
    assert track == {"name": "CC1", "language": "en", "kind": "captions", "stem": "en-captions"}
    [(begin, end, text)] = cues(root / "cc/subtitles/en-captions.vtt")
    assert (begin == pytest.approx(2000, abs=34), end == pytest.approx(3000, abs=34), text) == (True, True, "HELLO")


async def test_a_film_that_is_packaged_again_keeps_its_tracks(hosts: StepProcessPool, root: Path) -> None:
    """The languages of captions in its pictures are kept, too."""
    for source, given in (("five.mkv", {}), ("captioned.mov", {"CC1": "en"})):
        first = await run(hosts, root, "vod_ingest", content_id="again", file=f"in/{source}", caption_languages=given)
        again = await run(hosts, root, "vod_package", content_id="again", renditions=(48,))
        assert not isinstance(first, StepFailure), first
        assert not isinstance(again, StepFailure), again
        assert again["captions"] == first["captions"]
        listed = listed_tracks((root / "again/clear/master.m3u8").read_text())
        assert [entry.stem for entry in listed] == [track["stem"] for track in first["captions"]["tracks"]]


async def test_a_track_that_was_deleted_stays_away_until_another_ingest(hosts: StepProcessPool, root: Path) -> None:
    """The text of captions in the pictures, which are examined again, stays away too, whatever language they have now."""
    deleted, master = list[TextTrack](), root / "deleted/clear/master.m3u8"

    async def removed(content_id: str) -> Sequence[TextTrack]:
        return deleted

    async def made(workflow: str, **given: Any) -> list[str]:
        ended = await run(hosts, root, workflow, content_id="deleted", removed=removed, **given)
        assert not isinstance(ended, StepFailure), ended
        listed = json.loads((root / "deleted/metadata.json").read_text())["captions"]
        assert [entry["file"] for entry in listed] == [
            track.file for track in listed_tracks((root / "deleted/clear/master.m3u8").read_text())
        ]
        return [f"{entry['language']} {entry['kind']} {entry['name']}" for entry in listed]

    captions = "en captions CC1"
    assert await made("vod_ingest", file="in/captioned.mov", caption_languages={"CC1": "en"}) == [captions]
    deleted += listed_tracks(master.read_text())
    assert await made("vod_package", renditions=(48,), caption_languages={"CC1": "de"}) == []
    assert await made("vod_ingest", file="in/captioned.mov", caption_languages={"CC1": "en"}) == [captions]


@pytest.mark.parametrize("accurate", [True, False])
async def test_captions_follow_a_clip(hosts: StepProcessPool, root: Path, accurate: bool) -> None:
    """The captions are text tracks inside the clip, at its times. The copy begins at the only key frame before, that of 1.2 s."""
    made = await run(hosts, root, "vod_ingest", content_id="cut", file="in/five.mkv")
    assert not isinstance(made, StepFailure), made
    span: dict[str, Any] = {"source": "cut.mp4", "start": "00:00:01.600", "end": "00:00:03.600", "name": f"{accurate}.mp4"}
    clip = await run(hosts, root, "asset_video", content_id="cut", frame_accurate=accurate, **span)
    assert not isinstance(clip, StepFailure), clip
    file = root / "cut" / f"{accurate}.mp4"
    [picture, *others] = probed(file)["streams"]
    tracks = [other for other in others if other["codec_type"] == "subtitle"]
    assert [(track["codec_name"], track["tags"]["language"]) for track in tracks[:3]] == [
        ("mov_text", "eng"),
        ("mov_text", "fra"),
        ("mov_text", "deu"),
    ]
    ffmpeg("-i", str(file), "-map", "0:s:0", str(root / f"{accurate}.vtt"))
    shown, begins = float(picture["start_time"]) * 1000, 1600 if accurate else 1200
    clip_cues = cues(root / f"{accurate}.vtt")
    times = (shown, shown + 3000 - begins)
    assert [(begin == pytest.approx(at, abs=45), text) for (begin, _, text), at in zip(clip_cues, times, strict=True)] == [
        (True, "Hello <i>there</i>"),
        (True, "R&amp;B"),
    ]


async def test_captions_follow_a_composition(hosts: StepProcessPool, root: Path) -> None:
    """Each item has its own captions, moved like its picture and joined by language and kind.

    The film has the first from 1 s to 3 s, then the second whole, then the first from 2 s, which is copied from its only key frame
    before.
    """
    for number, source in ((1, "five.mkv"), (2, "text.mp4")):
        made = await run(hosts, root, "vod_ingest", content_id=event(number), file=f"in/{source}")
        assert not isinstance(made, StepFailure), made
    playlist = composed(
        item(1, start="00:00:01.000", end="00:00:03.000", frameAccurate=True),
        item(2),
        item(1, start="00:00:02.000", frameAccurate=True),
    )
    made = await run(hosts, root, "compose", content_id="both", generation=1, playlist=playlist)
    assert not isinstance(made, StepFailure), made
    folder = root / "both/subtitles"
    hello = "Hello <i>there</i>"
    assert cues(folder / "en-captions.vtt") == [
        (0, 1500, hello),
        (3000, 4500, hello),
        (5000, 5800, "R&amp;B"),
        (6000, 6500, hello),
        (7000, 7800, "R&amp;B"),
    ]
    assert cues(folder / "fr-forced.vtt") == [(1000, 2000, "<i>Bonjour</i>\nmonde"), (6000, 7000, "<i>Bonjour</i>\nmonde")]
    assert [track["language"] for track in made["captions"]["tracks"]] == ["en", "fr", "de", "pt-BR", "und"]


def cues(file: Path) -> list[tuple[int, int, str]]:
    return [(cue.begin, cue.end, cue.text) for cue in read(file.read_bytes()).cues]
