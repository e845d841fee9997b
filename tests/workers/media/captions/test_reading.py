"""Captions of all formats are read into clean cues."""

from __future__ import annotations

from io import StringIO
from xml.etree import ElementTree

import pytest
import webvtt as webvtt_py
from ttconv.imsc import writer as imsc_writer
from ttconv.vtt import reader as vtt_reader

from workers.media.captions import webvtt
from workers.media.captions.cues import Cue, UnreadableCaptions, clean
from workers.media.captions.reading import read

SRT = (
    "1\n00:00:01,001 --> 00:00:02,499\n<i>Grüß Gott</i> & willkommen\nzweite Zeile\n\n"
    "2\n00:00:02,500 --> 00:00:04,000\n{\\an8}Oben <font color=red>rot</font>\n\n"
    "3\n01:02:03,004 --> 01:02:05,006\n日本語 & العربية\n"
)
SCC = (
    "Scenarist_SCC V1.0\n\n00:00:01:00\t9420 9420 9470 9470 c8e5 ecec ef80 942c 942c 942f 942f\n\n00:00:03:00\t942c 942c\n\n"
    "00:00:05:00\t9420 9420 9140 9140 91ae 91ae c8e5 ecec ef80 942f 942f\n\n00:00:06:00\t942c 942c\n"
)
EBU_TT_D = """<?xml version="1.0" encoding="UTF-8"?>
<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"
  xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:timeBase="media" xml:lang="de" ttp:cellResolution="50 30">
<tt:head><tt:styling><tt:style xml:id="i" tts:fontStyle="italic"/></tt:styling><tt:layout>
<tt:region xml:id="top" tts:origin="10% 10%" tts:extent="80% 20%" tts:displayAlign="before"/>
<tt:region xml:id="bottom" tts:origin="10% 70%" tts:extent="80% 20%" tts:displayAlign="after"/></tt:layout></tt:head>
<tt:body><tt:div begin="00:00:01.000">
<tt:p xml:id="a" begin="00:00:00.000" end="00:00:01.500" region="bottom"><tt:span style="i">Grüß</tt:span>
   Gott &amp; &lt;b&gt;<tt:br/>zwei</tt:p>
<tt:p begin="00:00:02.000" end="00:00:03.500" region="top">\
<tt:span end="0.5s">eins</tt:span> <tt:span begin="0.5s">zwei</tt:span></tt:p>
</tt:div></tt:body></tt:tt>"""


def test_srt() -> None:
    assert read(SRT.encode()).cues == [
        Cue(1001, 2499, "<i>Grüß Gott</i> &amp; willkommen\nzweite Zeile"),
        Cue(2500, 4000, "Oben rot", "line:0"),
        Cue(3723004, 3725006, "日本語 &amp; العربية"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_in_other_encodings(encoding: str) -> None:
    assert read(SRT.encode(encoding)).cues == read(SRT.encode()).cues


def test_latin_1_is_told() -> None:
    parsed = read("1\n00:00:01,000 --> 00:00:02,000\nGrüß Gott\n".encode("latin-1"))
    assert (parsed.cues[0].text, parsed.remarks) == (
        "Grüß Gott",
        ["The captions are not in UTF-8; they were read as Windows-1252."],
    )


def test_cues_of_the_same_time_stay_in_the_order_of_the_file() -> None:
    """Players show them in this order: a question is above its answer."""
    later = "1\n00:00:03,000 --> 00:00:04,000\nlast\n\n"
    srt = f"{later}2\n00:00:01,000 --> 00:00:02,000\n- Zoe?\n\n3\n00:00:01,000 --> 00:00:01,500\n- Adam!\n"
    assert [cue.text for cue in read(srt.encode()).cues] == ["- Zoe?", "- Adam!", "last"]


@pytest.mark.parametrize(
    ("cues", "remarks"),
    [
        (
            "1\n00:00:03,000 --> 00:00:02,000\nhi\n",
            " One cue is left out: the end is not after the begin, or later than in any film, at 00:00:03.000.",
        ),
        ("1\n-00:00:01,000 --> 00:00:02,000\nhi\n", " One cue has no times or text that can be read, and is left out."),
        ("1\n00:00:01,000 --> 00:00:02,000\n<b> </b>\n", ""),
    ],
)
def test_captions_without_a_cue_that_is_seen_are_refused_with_the_reason(cues: str, remarks: str) -> None:
    with pytest.raises(UnreadableCaptions) as fault:
        read(cues.encode())
    assert str(fault.value) == f"There is no cue in the captions, read as SRT.{remarks}"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_srt_without_numbers(ends: str) -> None:
    plain = SRT.replace("1\n00:", "00:").replace("2\n00:", "00:").replace("3\n01:", "01:")
    assert "\n3\n" not in plain
    assert read(plain.replace("\n", ends).encode()) == read(SRT.encode())


def test_an_arrow_in_a_text_is_no_cue() -> None:
    assert read(b"1\n00:00:01,000 --> 00:00:02,000\na --> b\n").remarks == []


def test_webvtt_keeps_positions_and_voices_and_loses_style_sheets() -> None:
    parsed = read(
        b"WEBVTT\n\nSTYLE\n::cue{color:red}\n\nREGION\nid:a\n\nNOTE x\n\nid1\n00:01.000 --> 00:02.000 region:a line:10%,end "
        b"align:start evil:1\n<v Bob>Hi <c.red>red</c></v> <00:01.500><b><u>x\n"
    )
    assert parsed.cues == [Cue(1000, 2000, "<v Bob>Hi red</v> <b><u>x</u></b>", "line:10%,end align:start")]
    assert parsed.remarks == ["Style sheets and regions of the captions are left out."]


def test_ttml_with_prefixes_nested_times_regions_and_timed_spans() -> None:
    assert read(EBU_TT_D.encode()).cues == [
        Cue(1000, 2500, "<i>Grüß</i> Gott &amp; &lt;b&gt;\nzwei"),
        Cue(3000, 3500, "eins", "line:10%"),
        Cue(3500, 4500, "zwei", "line:10%"),
    ]


def test_scc_keeps_italics_and_rows() -> None:
    assert [(cue.text, cue.settings) for cue in read(SCC.encode()).cues] == [
        ("Hello", "align:start"),
        ("<i>Hello</i>", "line:11% align:start"),
    ]


def test_round_trip_through_vtt_and_ttml_keeps_times_and_text() -> None:
    """SRT is converted to WebVTT by the product, to TTML by ttconv, and back by the product."""
    first = read(SRT.encode())
    written = webvtt.whole(first.cues)
    document = vtt_reader.to_model(StringIO(written))
    assert document is not None
    ttml = ElementTree.tostring(imsc_writer.from_model(document).getroot())
    again = read(ttml)
    assert [cue.text for cue in again.cues] == [cue.text for cue in first.cues]
    assert all(abs(a.begin - b.begin) <= 1 and abs(a.end - b.end) <= 1 for a, b in zip(again.cues, first.cues, strict=True))
    assert read(webvtt.whole(again.cues).encode()).cues == again.cues


def test_what_is_written_is_read_by_another_reader() -> None:
    captions = webvtt_py.from_string(webvtt.whole(read(SRT.encode()).cues), strict=True).captions
    assert [(caption.start, caption.end) for caption in captions] == [
        ("00:00:01.001", "00:00:02.499"),
        ("00:00:02.500", "00:00:04.000"),
        ("01:02:03.004", "01:02:05.006"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>Hi", "Hi"),
        ("<SCRIPT src=x>alert(1)", ""),
        ("<style>p{}</style><i onclick=x>Hi", "Hi"),
        ("<img src=x onerror=alert(1)>Hi", "Hi"),
        ("a --> b", "a --&gt; b"),
        ("&lt;script&gt;", "&lt;script&gt;"),
        ("&amp;lt; &nbsp;&#0;&#x202e;", "&amp;lt; \xa0\ufffd\u202e"),
        ("<i><b>x</i></b>", "<i><b>x</b></i>"),
        ("<" * 50, "&lt;" * 50),
        ("a\n\n\nb", "a\nb"),
        ("<v a onmouseover=x>t", "<v a onmouseover=x>t</v>"),
        ('<v "><script>>t', '<v "></v>'),
    ],
)
def test_cues_have_no_foreign_markup(text: str, shown: str) -> None:
    assert clean(text) == shown
