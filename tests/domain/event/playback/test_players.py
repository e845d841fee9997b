"""Players, MP4 files, publishing points and ramp servers of the Video object."""

from __future__ import annotations

from dataclasses import fields
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.domain.event.playback.channel_and_flow_given import (
    EVENT_ID,
    Frame,
    live_at,
    play,
)

# --- pages, players, embed codes


def test_pages_are_below_the_base() -> None:
    answer = play(4)
    assert answer.web_page_url == f"https://watch.example/app/event/{EVENT_ID}"
    assert answer.player_url == f"https://watch.example/app/player/{EVENT_ID}"
    assert answer.scriptable_player_url == f"https://watch.example/app/player/{EVENT_ID}?scriptable=true"
    assert answer.website_player_url == f"https://watch.example/app/website-player/{EVENT_ID}"
    assert answer.scriptable_website_player_url == f"https://watch.example/app/website-player/{EVENT_ID}?scriptable=true"


def test_a_base_keeps_its_own_query() -> None:
    assert play(4, base="https://w/?brand=x").web_page_url == f"https://w/event/{EVENT_ID}?brand=x"


@pytest.mark.parametrize("base", ["", "/player", "javascript:alert(1)", "ftp://x", " "])
def test_without_a_web_base_there_are_no_players(base: str) -> None:
    answer = play(2, base=base, auto_start=True)
    texts = [getattr(answer, member.name) for member in fields(answer) if "player_url" in member.name]
    codes = [getattr(answer, member.name) for member in fields(answer) if "embed_code" in member.name]
    assert {answer.web_page_url, *texts, *codes} == {""}


@pytest.mark.parametrize("auto_start", [True, False])
def test_the_player_url_has_auto_start_and_the_stream(auto_start: bool) -> None:
    answer = play(2, auto_start=auto_start, audio_only=True)
    expected = {"src": [answer.current_state_urls[0].url]} | ({"autoStart": ["true"]} if auto_start else {})
    assert parse_qs(urlsplit(answer.player_url).query) == expected
    assert parse_qs(urlsplit(answer.scriptable_website_player_url).query) == expected | {"scriptable": ["true"]}
    assert answer.requested_auto_start is auto_start
    assert "autoStart" not in answer.web_page_url


HOSTILE = "\"><script>alert('x')</script>&amp; ü 💥 ' onload=\"x"


@pytest.mark.parametrize("url", ['https://cdn/a.m3u8?x=1&y="2"#\'f', HOSTILE, "javascript:alert(1)"])
def test_an_embed_code_is_one_escaped_iframe(url: str) -> None:
    answer = live_at(url, auto_start=True, event={"title": HOSTILE})
    for code, player_url in (
        (answer.embed_code, answer.player_url),
        (answer.scriptable_embed_code, answer.scriptable_player_url),
        (answer.website_embed_code, answer.website_player_url),
        (answer.scriptable_website_embed_code, answer.scriptable_website_player_url),
    ):
        frame = Frame(code)
        assert [tag for tag, _ in frame.tags] == ["iframe"]
        assert frame.text == ""
        attributes = frame.tags[0][1]
        assert attributes.keys() == {"src", "title", "width", "height", "style", "allow", "allowfullscreen"}
        assert (attributes["src"], attributes["title"]) == (player_url, HOSTILE)
        assert player_url.startswith("https://watch.example/app/")
        assert parse_qs(urlsplit(player_url).query)["src"] == [url]


# --- MP4, publishing points, ramp servers


@pytest.mark.parametrize(("mp4_state", "there"), [(0, False), (1, True), (2, False), (4, False)])
def test_mp4_urls_need_an_available_file(mp4_state: int, there: bool) -> None:
    answer = play(11, event={"mp4_state": mp4_state})
    path = f"{EVENT_ID}/{EVENT_ID}.mp4"
    assert answer.public_mp4_url == (f"https://files.example/public/{path}" if there else "")
    assert answer.private_mp4_url == (f"http://nas/media/{path}?sig=1" if there else "")


def test_ramp_servers_keep_their_members_without_secrets() -> None:
    [server] = play(0).ramp_servers
    assert server.settings == {"serverAddress": "ramp-1", "apiKey": None, "location": "NL", "proxyPassEmpty": True}
