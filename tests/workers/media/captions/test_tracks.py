"""Text tracks are added to the packages of a film, and removed again, without a change of anything else."""

from __future__ import annotations

import pytest
from lxml import etree

from domain.asset.values import CaptionKind
from workers.media.captions.cues import Cue, UnreadableCaptions
from workers.media.captions.tracks import TextTrack, in_manifest, in_playlist, track_files
from workers.media.captions.webvtt import segments
from workers.media.hls import attributes

MASTER = """#EXTM3U
#EXT-X-INDEPENDENT-SEGMENTS

#EXT-X-MEDIA:TYPE=AUDIO,URI="audio-1.m3u8",GROUP-ID="audio",LANGUAGE="en",NAME="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2"

#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001e,mp4a.40.2",RESOLUTION=320x180,AUDIO="audio",CLOSED-CAPTIONS=NONE
video-180.m3u8

#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001e",RESOLUTION=320x180,URI="video-180-iframes.m3u8"
"""
MANIFEST = b"""<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT13S"><Period id="0">
<AdaptationSet id="0" contentType="video"><Representation id="0"><BaseURL>video-180.mp4</BaseURL></Representation></AdaptationSet>
</Period></MPD>
"""
KINDS = list(CaptionKind)
TRACKS = [
    TextTrack(name='Deutsch "SDH"', language="de", kind=CaptionKind.CAPTIONS, stem="a"),
    TextTrack(name="English", language="en-GB", kind=CaptionKind.SUBTITLES, stem="b"),
    TextTrack(name="English", language="en-GB", kind=CaptionKind.FORCED, stem="c"),
    TextTrack(name="\u65e5\u672c\u8a9e", language="ja", kind=CaptionKind.DESCRIPTIONS, stem="d e"),
]
OTHER = [TextTrack(name="English", language="en", kind=CaptionKind.SUBTITLES, stem="s1", folder="subtitles")]


def _media(master: str) -> list[dict[str, str]]:
    return [attributes(line) for line in master.splitlines() if "TYPE=SUBTITLES" in line]


def test_a_master_playlist_names_them_by_language_role_and_characteristics() -> None:
    made = in_playlist(MASTER, TRACKS)
    assert [
        (entry["URI"], entry["LANGUAGE"], entry["NAME"], entry.get("FORCED"), entry["AUTOSELECT"]) for entry in _media(made)
    ] == [
        ("../captions/a.m3u8", "de", "Deutsch 'SDH'", None, "YES"),
        ("../captions/b.m3u8", "en-GB", "English", None, "YES"),
        ("../captions/c.m3u8", "en-GB", "English (forced)", "YES", "YES"),
        ("../captions/d%20e.m3u8", "ja", "\u65e5\u672c\u8a9e", None, "YES"),
    ]
    assert [entry.get("CHARACTERISTICS", "") for entry in _media(made)] == [
        "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound",
        "",
        "",
        "public.accessibility.describes-video",
    ]
    variants = [line for line in made.splitlines() if "STREAM-INF" in line]
    assert [attributes(line).get("SUBTITLES") for line in variants] == ["text", None]


def test_texts_are_added_replaced_and_taken_away_and_nothing_else_changes() -> None:
    added = in_playlist(MASTER, TRACKS)
    assert in_playlist(added, TRACKS) == added
    assert [entry["LANGUAGE"] for entry in _media(in_playlist(added, TRACKS[1:2]))] == ["en-GB"]
    assert in_playlist(added, []) == MASTER
    manifest = in_manifest(MANIFEST, TRACKS)
    assert in_manifest(manifest, TRACKS) == manifest
    assert in_manifest(in_manifest(manifest, TRACKS[:1]), []) == in_manifest(MANIFEST, [])


def test_tracks_of_another_folder_stay() -> None:
    both = in_playlist(in_playlist(MASTER, OTHER, folder="subtitles"), TRACKS)
    assert [(entry["URI"], entry["NAME"]) for entry in _media(both)][:2] == [
        ("../subtitles/s1.m3u8", "English"),
        ("../captions/a.m3u8", "Deutsch 'SDH'"),
    ]
    assert "English (subtitles)" in both
    assert in_playlist(both, []) == in_playlist(MASTER, OTHER, folder="subtitles")
    manifest = in_manifest(in_manifest(MANIFEST, OTHER, folder="subtitles"), TRACKS)
    assert in_manifest(manifest, []) == in_manifest(MANIFEST, OTHER, folder="subtitles")


def test_a_manifest_names_them_by_language_and_role() -> None:
    mpd = etree.fromstring(in_manifest(MANIFEST, TRACKS))
    texts = mpd.findall(".//{*}AdaptationSet[@contentType='text']")
    assert [
        (
            text.get("lang"),
            text.get("mimeType"),
            [(role.tag.rpartition("}")[2], role.get("value")) for role in text if role.get("schemeIdUri")],
            text.findtext("{*}Representation/{*}BaseURL"),
        )
        for text in texts
    ] == [
        ("de", "text/vtt", [("Accessibility", "2"), ("Role", "caption")], "../captions/a.vtt"),
        ("en-GB", "text/vtt", [("Role", "subtitle")], "../captions/b.vtt"),
        ("en-GB", "text/vtt", [("Role", "forced-subtitle")], "../captions/c.vtt"),
        ("ja", "text/vtt", [("Accessibility", "1"), ("Role", "description")], "../captions/d%20e.vtt"),
    ]
    identities = [entry.get("id") for entry in mpd.iter("{*}Representation")]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("Deutsch\xa0(SDH)\r\n#EXT-X-ENDLIST", "Deutsch (SDH) #EXT-X-ENDLIST"),
        ("a\u2028b\tc", "a b c"),
        ("\u202etxe.siht\u200b", "txe.siht"),
        ("\u200b\u200d", "de"),
    ],
)
def test_a_name_is_one_line_and_keeps_its_spelling(name: str, shown: str) -> None:
    track = TextTrack(name=name, language="de", kind=CaptionKind.CAPTIONS, stem="a")
    assert [entry["NAME"] for entry in _media(in_playlist(MASTER, [track]))] == [shown]
    assert etree.fromstring(in_manifest(MANIFEST, [track])).findtext(".//{*}Label") == shown


def test_cues_over_the_border_of_segments_are_in_both() -> None:
    cues = [Cue(0, 1000, "a"), Cue(5900, 6100, "b"), Cue(6000, 6500, "c"), Cue(11_000, 12_000, "d"), Cue(20_000, 21_000, "late")]
    content, playlist = segments(cues, lasts=13.2, name="a.segments.vtt")
    lines = playlist.splitlines()
    assert [line for line in lines if line.startswith("#EXTINF")] == ["#EXTINF:6.000,", "#EXTINF:6.000,", "#EXTINF:1.200,"]
    parts = []
    for line in lines:
        if line.startswith("#EXT-X-BYTERANGE:"):
            size, at = map(int, line.partition(":")[2].split("@"))
            parts.append(content[at : at + size].decode())
    assert sum(map(len, parts)) == len(content)
    assert all(part.startswith("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n") for part in parts)
    shown = [[cue.text for cue in cues if f"\n{cue.text}\n" in part] for part in parts]
    assert shown == [["a", "b"], ["b", "c", "d"], []]


def test_the_files_of_a_track() -> None:
    assert list(track_files(TRACKS[0], [Cue(0, 1000, "a")], lasts=13.0)) == [
        "captions/a.vtt",
        "captions/a.segments.vtt",
        "captions/a.m3u8",
    ]


def test_cues_that_would_fill_a_disk_are_refused() -> None:
    with pytest.raises(UnreadableCaptions, match="for too long"):
        segments([Cue(0, 36_000_000, "x")] * 50_000, lasts=36_000.0, name="a.segments.vtt")


def test_what_is_no_manifest() -> None:
    with pytest.raises(ValueError, match="not a manifest"):
        in_manifest(b"<!DOCTYPE a><MPD/>", TRACKS)
