"""Track filters: which tracks pass, and what is no filter."""

from __future__ import annotations

import pytest

from domain.asset.track_filter import LONGEST, AssetTrack, InvalidFilter, track_filter

HIGH = AssetTrack("video", bitrate=3_000_000, height=1080)
LOW = AssetTrack("video", bitrate=500_000, height=360)
ENGLISH = AssetTrack("audio", bitrate=128_000, language="eng")
SILENT = AssetTrack("audio")
ALL = (HIGH, LOW, ENGLISH, SILENT)


@pytest.mark.parametrize(
    ("expression", "passes"),
    [
        ('type=="video"', (HIGH, LOW)),
        (' type != "video" ', (ENGLISH, SILENT)),
        ("height>360", (HIGH,)),
        ("height >= 360", (HIGH, LOW)),
        ("height<1080", (LOW,)),
        ("height!=360", (HIGH,)),
        ("bitrate<=500000", (LOW, ENGLISH)),
        ("!(height==360)", (HIGH, ENGLISH, SILENT)),
        ("!!(height==360)", (LOW,)),
        ('language=="eng"', (ENGLISH,)),
        ('language!="eng"', ()),
        ('type=="audio"||type=="video"&&height>360', (HIGH, ENGLISH, SILENT)),
        ('(type=="audio"||type=="video")&&bitrate>200000', (HIGH, LOW)),
        ('!type=="video" && bitrate>1', (ENGLISH,)),
        ('type=="x" || type=="y" || height==360', (LOW,)),
        ("bitrate==0", ()),
    ],
)
def test_tracks_pass(expression: str, passes: tuple[AssetTrack, ...]) -> None:
    assert tuple(filter(track_filter(expression), ALL)) == passes


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "type",
        "type==",
        'type="video"',
        "type==video",
        "type=='video'",
        'type=="video',
        'type<"video"',
        "type==1",
        'height=="1"',
        "height==-1",
        "height==1.5",
        "height==1e3",
        "height==" + "1" * 16,
        "width==1",
        "Type=='x'",
        '"video"==type',
        "true",
        "1",
        "height==1 height==2",
        "height==1 &&",
        "&& height==1",
        "height==1 & height==2",
        "height==1 and height==2",
        "(height==1",
        "height==1)",
        "()",
        "!",
        "height==1;",
        "height==1 # x",
        'language=="é" || x',
        "(" * 21 + "height==1" + ")" * 21,
        "!" * 21 + "height==1",
        "height==1 ||" * 100,
        "height==1" + " " * LONGEST,
        "__class__==1",
        "height==１",
    ],
)
def test_anything_else_is_no_filter(expression: str) -> None:
    with pytest.raises(InvalidFilter):
        track_filter(expression)


def test_the_sentence_says_where() -> None:
    with pytest.raises(InvalidFilter, match=r"at character 17; it compares type, language, bitrate, height with"):
        track_filter("height==1    && width>1")
    with pytest.raises(InvalidFilter, match="at the end"):
        track_filter("height==")
    with pytest.raises(InvalidFilter, match="cannot be read from character 7 on"):
        track_filter("height~1")
