"""Facebook: phases of uploads, permissions, and live videos, against a server that refuses what the reference forbids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.targets.facebook_server import FacebookServer
from tests.support.targets.stages import KIB, Killed, Memory, Stage, on_facebook, order, source, uploaded
from workers.ports.live import LiveTarget, live_face
from workers.ports.targets import PublicationOrder, TargetFailed

REFUSALS = {
    (400, 190, 463): "destination",
    (403, 200, 0): "destination",
    (403, 10, 0): "destination",
    (400, 368, 0): "destination",
    (403, 4, 0): "retry",
    (429, 32, 0): "retry",
    (500, 2, 0): "retry",
    (503, 0, 0): "retry",
    (400, 6000, 1363030): "retry",
    (400, 6000, 1363022): "media",
    (400, 100, 0): "publication",
}
PARTS_OF_A_FILM = 5
REQUESTS_OF_OPENING = 2


@pytest.fixture
def server() -> FacebookServer:
    return FacebookServer(chunk=256 * KIB)


@pytest.fixture
async def stage(server: FacebookServer) -> AsyncIterator[Stage]:
    async with on_facebook(server) as made:
        yield made
        for target in made.opened:
            await target.close()


def live(stage: Stage) -> LiveTarget:
    return live_face(stage.target())


async def failure(work: Any) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        await work
    assert "marked" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"fb_accessToken": "expired"}, "fb_accessToken"),
        ({"fb_accessToken": "no\ntoken"}, "fb_accessToken"),
        ({"fb_resourceId": ""}, "fb_resourceId is missing"),
        ({"fb_resourceId": "99"}, "check fb_resourceId"),
        ({"fb_resourceId": "../me"}, "check fb_resourceId"),
    ],
)
async def test_an_activation_says_what_is_wrong(stage: Stage, changed: dict[str, str], reason: str) -> None:
    failed = await failure(stage.target(**changed).check())
    assert (failed.kind, reason in str(failed)) == ("destination", True)


@pytest.mark.parametrize(("refusal", "kind"), REFUSALS.items(), ids=str)
async def test_each_refusal_says_whose_fault_it_is(
    stage: Stage, server: FacebookServer, refusal: tuple[int, int, int], kind: str, tmp_path: Path
) -> None:
    server.inject("/videos", *refusal)
    assert (await failure(uploaded(stage.target(), source(tmp_path, 1000), order(), Memory()))).kind == kind


async def test_a_token_without_its_permissions_says_which(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    server.permissions = frozenset({"pages_read_engagement"})
    assert "publish_video" in str(await failure(uploaded(stage.target(), source(tmp_path, 1000), order(), Memory())))


@pytest.mark.parametrize("lost", range(1, PARTS_OF_A_FILM + 2))
async def test_an_answer_that_was_lost_makes_no_second_video(
    stage: Stage, server: FacebookServer, lost: int, tmp_path: Path
) -> None:
    file, memory, wanted = source(tmp_path, stage.size), Memory(), order()
    server.lost = lost
    assert (await failure(uploaded(stage.target(), file, wanted, memory))).kind == "retry"
    details = await uploaded(stage.target(), file, wanted, memory)
    assert list(server.contents) == [details["fb_videoId"]]
    assert list(server.contents.values()) == [file.path.read_bytes()]


async def test_a_session_that_has_ended_begins_anew(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    file, memory, wanted = source(tmp_path, stage.size), Memory(kill_at=2), order()
    with pytest.raises(Killed):
        await uploaded(stage.target(), file, wanted, memory)
    server.sessions.clear()
    memory.kill_at = None
    assert (await failure(uploaded(stage.target(), file, wanted, memory))).kind == "retry"
    await uploaded(stage.target(), file, wanted, memory)
    assert list(server.contents.values()) == [file.path.read_bytes()]


async def test_parts_of_one_byte_are_not_sent(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    server.chunk = 1
    failed = await failure(uploaded(stage.target(), source(tmp_path, stage.size), order(), Memory()))
    assert (failed.kind, "too small" in str(failed)) == ("retry", True)


async def test_a_video_whose_id_was_never_heard_is_deleted(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    file, wanted, other = source(tmp_path, 1000), order(), order()
    await uploaded(stage.target(), file, wanted, Memory())
    other_video = await uploaded(stage.target(), file, other, Memory())
    await stage.target().delete(wanted, None)
    assert list(server.videos) == [other_video["fb_videoId"]]


async def test_a_video_is_shown_hidden_and_renamed(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    target, wanted = stage.target(), order()
    details = await uploaded(target, source(tmp_path, 1000), wanted, Memory())
    video = server.videos[details["fb_videoId"]]
    assert (video["published"], video["title"]) == (True, "A film")
    await target.unpublish(wanted, details)
    assert video["published"] is False
    await target.publish(wanted, details)
    await target.update(PublicationOrder(wanted.id, "film", "New", "Words"), details)
    assert (video["published"], video["title"], video["description"]) == (True, "New", "Words")
    answer = await target.query(wanted, details)
    assert answer is not None
    assert (answer["fb_status"], answer["isUnavailable"]) == ("ready", False)


# --- live


async def test_a_live_video_is_opened_shown_and_ended(stage: Stage, server: FacebookServer) -> None:
    target, wanted = live(stage), PublicationOrder(order().id, "event", "The match", "Live")
    ingest = await target.open_live(wanted, None)
    assert ingest.url == "rtmps://live.example:443/rtmp"
    assert "marked-stream" in ingest.stream_name
    assert "marked" not in repr((ingest, ingest.details))
    [video] = server.live.values()
    assert video["status"] == "UNPUBLISHED"
    for _ in range(2):
        assert await target.go_live(wanted, ingest.details) == ingest.details
    assert (video["status"], video["title"], video["description"]) == ("LIVE", "The match", "Live")
    assert await target.open_live(wanted, ingest.details) == ingest
    for _ in range(2):
        await target.close_live(wanted, ingest.details)
    assert video["status"] == "VOD"
    assert (await failure(target.open_live(wanted, ingest.details))).kind == "publication"
    for _ in range(2):
        await target.delete(wanted, ingest.details)
    assert server.live == {}


@pytest.mark.parametrize("lost", range(1, REQUESTS_OF_OPENING + 1))
async def test_an_opening_whose_answer_was_lost_makes_nothing_twice(stage: Stage, server: FacebookServer, lost: int) -> None:
    target, wanted = live(stage), order("event")
    server.lost = lost
    with suppress(TargetFailed):  # what can be repeated without harm is repeated by the client itself
        await target.open_live(wanted, None)
    assert server.lost <= 0
    again = await target.open_live(wanted, None)
    assert await target.open_live(wanted, again.details) == again
    assert len(server.live) == 1
    await target.delete(wanted, None)
    assert server.live == {}


async def test_a_live_video_that_was_never_shown_leaves_nothing(stage: Stage, server: FacebookServer) -> None:
    target, wanted, other = live(stage), order("event"), order("event")
    other_live = await target.open_live(other, None)
    ingest = await target.open_live(wanted, None)
    await target.close_live(wanted, ingest.details)
    assert list(server.live) == [other_live.details["fb_liveVideoId"]]


async def test_no_secret_is_in_an_address(stage: Stage, server: FacebookServer, tmp_path: Path) -> None:
    target = stage.target()
    await uploaded(target, source(tmp_path, stage.size), order(), Memory())
    await live_face(target).open_live(order("event"), None)
    assert server.seen
    assert not [path for path in server.seen if "marked" in path]
