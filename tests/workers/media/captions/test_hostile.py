"""Hostile captions end with a sentence or in clean cues, never with a traceback, and within limits of time and memory."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.queues import Queue
from random import Random
from re import compile as regex
from typing import Final

import pytest

from workers.media.captions import webvtt
from workers.media.captions.cues import UnreadableCaptions
from workers.media.captions.reading import read

_SECONDS: Final = 60
"""Seconds of processor time. A busy machine takes longer, and the worst input takes some seconds on an idle one."""
_BYTES: Final = 1536 * 1024 * 1024
"""Bytes of memory."""
_TAG: Final = regex(r"</?(?:i|b|u|ruby|rt)>|<v [^<>\n]+>|</v>")
_TIMES: Final = regex(r"[0-9]{2,}:[0-9]{2}:[0-9]{2}\.[0-9]{3} --> [0-9]{2,}:[0-9]{2}:[0-9]{2}\.[0-9]{3}[^<>\n]*")
_HEAD: Final = "1\n00:00:01,000 --> 00:00:02,000\n"
_TT: Final = '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xml:lang="en">'


def _ttml(inside: str, head: str = "") -> str:
    return f"{_TT}<head>{head}</head><body><div>{inside}</div></body></tt>"


def _entities() -> str:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    return f'<?xml version="1.0"?><!DOCTYPE tt [<!ENTITY l0 "ha">{laughs}]>' + _ttml("<p begin='1s' end='2s'>&l11;</p>")


def _noise(seed: int, alphabet: bytes, size: int) -> bytes:
    return bytes(Random(seed).choices(alphabet, k=size))


def _vtt(cues: str) -> str:
    return f"WEBVTT\n\n{cues}"


CORPUS: Final[dict[str, Callable[[], bytes]]] = {
    "empty": lambda: b"",
    "only blanks": lambda: b"\xef\xbb\xbf \r\n\r\n  ",
    "zeros": lambda: bytes(100_000),
    "noise": lambda: Random(1).randbytes(500_000),
    "noise after a header": lambda: b"WEBVTT\n\n" + Random(2).randbytes(500_000),
    "noise of times": lambda: b"WEBVTT\n\n" + _noise(3, b"0123:.->\n ", 500_000),
    "too large": lambda: b"WEBVTT\n\n" + b"x" * 6_000_000,
    "a million cues": lambda: _vtt("0:0.0-->0:0.1\na\n\n" * 1_000_000).encode(),
    "as many cues as fit": lambda: _vtt("00:00.000-->00:01.000\na\n\n" * 20_000).encode(),
    "a cue of a megabyte": lambda: _vtt("00:00.000 --> 00:01.000\n" + "x" * 1_000_000).encode(),
    "a cue of many lines": lambda: (_HEAD + "x\n" * 500_000).encode(),
    "negative times": lambda: (_HEAD.replace("00:00:01", "-0:00:01") + "x\n").encode(),
    "the end before the start": lambda: (_HEAD.replace("00:00:01", "00:00:09") + "x\n").encode(),
    "times of other worlds": lambda: _vtt("9999999999:59:59.998 --> 9999999999:59:59.999\nx\n").encode(),
    "times without end": lambda: _vtt("9" * 1_000_000 + ":00:00.000 --> 00:00:01.000\nx\n").encode(),
    "all at once": lambda: _vtt("".join(f"00:00.{n % 1000:03} --> 99:00:00.000\nx{n}\n\n" for n in range(20_000))).encode(),
    "open tags": lambda: (_HEAD + "<i>" * 100_000 + "x\n").encode(),
    "half tags": lambda: (_HEAD + "<" * 15_000 + "\n").encode(),
    "scripts": lambda: (_HEAD + "<script>alert(1)</script><img src=x onerror=alert(1)>Hi<style>*{}\n").encode(),
    "many scripts without an end": lambda: (_HEAD + "<script" * 2_800 + "\n").encode(),
    "style sheets": lambda: _vtt("STYLE\n" + "/*" * 400_000 + "\n\n00:00.000 --> 00:01.000\nx\n").encode(),
    "regions": lambda: _vtt("REGION\nid:a\n\n" * 100_000 + "00:00.000 --> 00:01.000 region:a\nx\n").encode(),
    "settings": lambda: _vtt("00:00.000 --> 00:01.000 " + "line:1% " * 100_000 + "\nx\n").encode(),
    "billion laughs": lambda: _entities().encode(),
    "an outside entity": lambda: (
        '<!DOCTYPE tt [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + _ttml("<p begin='1s' end='2s'>&x;</p>")
    ).encode(),
    "deep elements": lambda: _ttml("<p begin='1s' end='2s'>" + "<span>" * 5_000 + "x" + "</span>" * 5_000 + "</p>").encode(),
    "elements as deep as read": lambda: _ttml("<div>" * 200 + "<p begin='1s' end='2s'>x</p>" + "</div>" * 200).encode(),
    "styles in a circle": lambda: _ttml(
        "<p begin='1s' end='2s' style='a'>x</p>",
        "<styling><style xml:id='a' style='b'/><style xml:id='b' style='a'/></styling>",
    ).encode(),
    "chains of styles": lambda: _ttml(
        "<p begin='1s' end='2s' style='s1999'>x</p>",
        "<styling>" + "".join(f"<style xml:id='s{n}' style='s{max(n - 1, 0)}'/>" for n in range(2_000)) + "</styling>",
    ).encode(),
    "spans with times of their own": lambda: _ttml(
        "<p begin='0s' end='9s'>" + "".join(f"<span begin='{n}ms'>x</span>" for n in range(20_000)) + "</p>"
    ).encode(),
    "ttml of other times": lambda: _ttml(
        "<p begin='-1s' end='x'>a</p><p begin='1e999s' end='2s'>b</p><p begin='5s' end='2s'>c</p><p begin='1s' end='2s'>d</p>"
    ).encode(),
    "many paragraphs": lambda: _ttml("<p begin='1s' end='99999s'>x</p>" * 19_000).encode(),
    "xml that is no ttml": lambda: b"<html><body onload='alert(1)'>x</body></html>",
    "half xml": lambda: _ttml("<p begin='1s' end='2s'>x").encode()[:-20],
    "scc of noise": lambda: (
        b"Scenarist_SCC V1.0\n\n00:00:01:00\t" + b" ".join(Random(n).randbytes(2).hex().encode() for n in range(30_000))
    ),
    "scc of words": lambda: b"Scenarist_SCC V1.0\n\n99:99:99:99\tzzzz\n\nx\n",
    "scc without end": lambda: b"Scenarist_SCC V1.0\n\n" + b"00:00:01:00\t9420 9420 9470 9470 c8e5 942f 942f\n\n" * 60_000,
    "much scc": lambda: b"Scenarist_SCC V1.0\n\n" + b"00:00:01:00\t9420 9420 9470 9470 c8e5 942f 942f\n\n" * 7_000,
    "utf-16 cut in the middle": lambda: (_HEAD + "x\n").encode("utf-16")[:-1],
    "nul characters": lambda: (_HEAD + "a\0b\x1b[31mc\n").encode(),
    "srt inside of vtt": lambda: _vtt(_HEAD + "x\n").encode(),
}


_PROCESSES: Final = multiprocessing.get_context("forkserver")
"""Forks from a process without threads: a fork of the process of the tests could inherit a lock that nobody releases."""
_PROCESSES.set_forkserver_preload([__name__])


def _convert(name: str, given: Queue[str]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES + 512 * 1024 * 1024,) * 2)
    try:
        cues = read(CORPUS[name]()).cues
        webvtt.segments(cues, lasts=3600.0, name="x.segments.vtt")
        given.put("cues\n" + webvtt.whole(cues))
    except UnreadableCaptions as fault:
        given.put(f"sentence\n{fault}")


@pytest.mark.parametrize("name", CORPUS)
def test_it_ends_with_a_sentence_or_in_clean_cues(name: str) -> None:
    given: Queue[str] = _PROCESSES.Queue()
    process = _PROCESSES.Process(target=_convert, args=(name, given))
    process.start()
    kind, _, text = given.get(timeout=300).partition("\n")
    process.join(60)
    assert process.exitcode == 0
    if kind == "sentence":
        assert text[0].isupper()
        assert text.endswith(".")
        assert len(text) < 200
        assert text.isprintable()
    else:
        _check(text)


def _check(text: str) -> None:
    """Check that the text is WebVTT with nothing but cues, whose tags are those that are allowed."""
    head, *blocks = text.rstrip("\n").split("\n\n")
    assert head == "WEBVTT"
    for block in blocks:
        times, *lines = block.split("\n")
        assert _TIMES.fullmatch(times), times
        assert lines
        assert all(line.strip() for line in lines)
        shown = _TAG.sub("", "\n".join(lines))
        assert "<" not in shown
        assert ">" not in shown
        assert "alert(1)" not in shown
        assert all(entry >= " " or entry in "\n\t" for entry in shown)
