"""YouTube: tokens, quotas, privacy, and live broadcasts, against a server that refuses what the reference forbids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.targets.stages import Killed, Memory, Stage, on_youtube, order, source, uploaded
from tests.support.targets.youtube_server import SCOPE, YouTubeServer
from workers.ports.live import LiveTarget, live_face
from workers.ports.targets import PublicationOrder, PublishedText, TargetFailed, TextTarget, UploadSource

REASONS: Mapping[tuple[int, str], str] = {
    (403, "quotaExceeded"): "retry",
    (403, "rateLimitExceeded"): "retry",
    (429, "rateLimitExceeded"): "retry",
    (400, "uploadLimitExceeded"): "retry",
    (500, "backendError"): "retry",
    (503, "backendError"): "retry",
    (403, "forbidden"): "destination",
    (403, "insufficientPermissions"): "destination",
    (401, "youtubeSignupRequired"): "destination",
    (400, "invalidTitle"): "publication",
    (404, "notFound"): "publication",
}
REQUESTS_OF_OPENING = 6


@pytest.fixture
def server() -> YouTubeServer:
    return YouTubeServer()


@pytest.fixture
async def stage(server: YouTubeServer) -> AsyncIterator[Stage]:
    async with on_youtube(server) as made:
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


async def test_a_token_is_used_until_its_end_and_renewed_once_where_it_is_refused(stage: Stage, server: YouTubeServer) -> None:
    target = stage.target()
    await target.check()
    await target.check()
    assert server.refreshed == 1
    server.expire()
    await target.check()
    assert server.refreshed == 2


async def test_a_token_is_renewed_before_its_end(stage: Stage, server: YouTubeServer) -> None:
    server.lifetime = 59
    target = stage.target()
    await target.check()
    await target.check()
    assert server.refreshed >= 2


async def test_a_token_that_is_always_refused_is_the_destinations_fault(stage: Stage, server: YouTubeServer) -> None:
    for _ in range(2):
        server.inject("/channels", 401, "authError")
    assert "yt_refreshToken" in str(await failure(stage.target().check()))
    assert server.refreshed == 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"yt_refreshToken": "revoked"}, "authorize the channel again"),
        ({"yt_clientSecret": "wrong"}, "yt_clientId and yt_clientSecret"),
        ({"yt_clientId": ""}, "yt_clientId is missing"),
    ],
)
async def test_an_activation_says_what_is_wrong(stage: Stage, changed: dict[str, str], reason: str) -> None:
    failed = await failure(stage.target(**changed).check())
    assert (failed.kind, reason in str(failed)) == ("destination", True)


async def test_an_authorization_without_the_scope_is_told(stage: Stage, server: YouTubeServer) -> None:
    server.scope = f"{SCOPE}.readonly"
    failed = await failure(stage.target().check())
    assert (failed.kind, SCOPE in str(failed)) == ("destination", True)


@pytest.mark.parametrize(("refusal", "kind"), REASONS.items(), ids=str)
async def test_each_refusal_says_whose_fault_it_is(
    stage: Stage, server: YouTubeServer, refusal: tuple[int, str], kind: str, tmp_path: Path
) -> None:
    for _ in range(2):  # a token that is refused is renewed once
        server.inject("/upload/youtube/v3/videos", *refusal)
    failed = await failure(uploaded(stage.target(), source(tmp_path, stage.size), order(), Memory()))
    assert failed.kind == kind
    assert failed.kind != "retry" or refusal[0] >= 500 or failed.after


async def test_a_session_elsewhere_is_sent_nothing(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    server.elsewhere = "http://127.0.0.1:9/upload"
    failed = await failure(uploaded(stage.target(), source(tmp_path, stage.size), order(), Memory()))
    assert failed.kind == "destination"


async def test_a_session_that_youtube_forgot_begins_anew(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    file, memory, wanted = source(tmp_path, stage.size), Memory(kill_at=2), order()
    with pytest.raises(Killed):
        await uploaded(stage.target(), file, wanted, memory)
    server.sessions.clear()
    memory.kill_at = None
    await uploaded(stage.target(), file, wanted, memory)
    assert list(server.contents.values()) == [file.path.read_bytes()]


async def test_the_end_of_an_upload_that_nobody_heard_makes_no_second_video(
    stage: Stage, server: YouTubeServer, tmp_path: Path
) -> None:
    file, memory, wanted = source(tmp_path, stage.part), Memory(), order()
    server.lost = 2  # the last part: the only one
    await failure(uploaded(stage.target(), file, wanted, memory))
    assert len(server.videos) == 1
    details = await uploaded(stage.target(), file, wanted, memory)
    assert list(server.videos) == [details["yt_videoId"]]
    assert stage.sent() < 2 * file.size


async def test_a_video_whose_id_was_never_heard_is_deleted(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    file, wanted, other = source(tmp_path, 1000), order(), order()
    await uploaded(stage.target(), file, other, Memory())
    await uploaded(stage.target(), file, wanted, Memory())
    await stage.target().delete(wanted, None)
    assert [str(other.id) in name for name in stage.files()] == [True]


async def test_a_video_is_shown_hidden_and_renamed(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    target, wanted = stage.target(), order()
    details = await uploaded(target, source(tmp_path, 1000), wanted, Memory())
    video = server.videos[details["yt_videoId"]]
    assert video["status"]["privacyStatus"] == "public"
    await target.unpublish(wanted, details)
    assert video["status"] == {"uploadStatus": "uploaded", "privacyStatus": "private", "selfDeclaredMadeForKids": False}
    await target.publish(wanted, details)
    assert video["status"]["privacyStatus"] == "public"
    await target.update(PublicationOrder(wanted.id, "film", "<New> " + "x" * 200, "ü" * 5000), details)
    assert video["snippet"]["title"].startswith("(New) x")
    assert str(wanted.id) in video["snippet"]["tags"][0]
    answer = await target.query(wanted, details)
    assert answer is not None
    assert (answer["yt_privacyStatus"], answer["isUnavailable"]) == ("public", False)


async def test_what_is_not_there_cannot_be_changed(stage: Stage) -> None:
    target = stage.target()
    for act in (target.publish, target.unpublish, target.update):
        assert (await failure(act(order(), {"yt_videoId": "gone"}))).kind == "publication"


async def test_a_privacy_that_youtube_does_not_know_is_refused(stage: Stage, tmp_path: Path) -> None:
    wanted = PublicationOrder(uuid4(), "film", options={"yt_privacyStatus": "friends"})
    assert (await failure(uploaded(stage.target(), source(tmp_path, 10), wanted, Memory()))).kind == "publication"


# --- live


async def test_a_broadcast_is_opened_shown_and_ended(stage: Stage, server: YouTubeServer) -> None:
    target, wanted = live(stage), PublicationOrder(uuid4(), "event", "The match", "Live", {"yt_privacyStatus": "unlisted"})
    ingest = await target.open_live(wanted, None)
    assert (ingest.url, ingest.stream_name[:7]) == ("rtmps://a.rtmps.example/live2", "marked-")
    assert "marked" not in repr((ingest, ingest.details))
    [broadcast] = server.broadcasts.values()
    assert (broadcast["snippet"]["title"], broadcast["snippet"]["description"]) == ("The match", "Live")
    assert broadcast["status"] == {"privacyStatus": "unlisted", "lifeCycleStatus": "ready"}
    waits = await failure(target.go_live(wanted, ingest.details))
    assert (waits.kind, waits.after) == ("retry", 2.0)
    [stream] = server.streams.values()
    stream["status"]["streamStatus"] = "active"
    assert (await failure(target.go_live(wanted, ingest.details))).kind == "retry"
    for _ in range(2):
        assert await target.go_live(wanted, ingest.details) == ingest.details
    assert broadcast["status"]["lifeCycleStatus"] in ("live", "liveStarting")
    for _ in range(2):
        await target.close_live(wanted, ingest.details)
    assert (broadcast["status"]["lifeCycleStatus"], server.streams) == ("complete", {})
    assert (await failure(target.go_live(wanted, ingest.details))).kind == "publication"
    await target.delete(wanted, ingest.details)
    assert server.broadcasts == {}


@pytest.mark.parametrize("lost", range(1, REQUESTS_OF_OPENING + 1))
async def test_an_opening_whose_answer_was_lost_makes_nothing_twice(stage: Stage, server: YouTubeServer, lost: int) -> None:
    target, wanted = live(stage), order("event")
    server.lost = lost
    with suppress(TargetFailed):  # what can be repeated without harm is repeated by the client itself
        await target.open_live(wanted, None)
    assert server.lost <= 0
    again = await target.open_live(wanted, None)
    assert await target.open_live(wanted, again.details) == again
    assert (len(server.broadcasts), len(server.streams)) == (1, 1)
    await target.delete(wanted, None)
    assert (server.broadcasts, server.streams) == ({}, {})


async def test_a_broadcast_that_was_never_shown_leaves_nothing(stage: Stage, server: YouTubeServer) -> None:
    target, wanted, other = live(stage), order("event"), order("event")
    other_live = await target.open_live(other, None)
    ingest = await target.open_live(wanted, None)
    await target.close_live(wanted, ingest.details)
    assert list(server.broadcasts) == [other_live.details["yt_broadcastId"]]
    assert list(server.streams) == [other_live.details["yt_streamId"]]


async def test_a_broadcast_on_air_is_ended_before_it_is_deleted(stage: Stage, server: YouTubeServer) -> None:
    target, wanted = live(stage), order("event")
    ingest = await target.open_live(wanted, None)
    [broadcast] = server.broadcasts.values()
    broadcast["status"]["lifeCycleStatus"] = "live"
    await target.delete(wanted, ingest.details)
    assert (server.broadcasts, server.streams) == ({}, {})


async def test_no_secret_is_in_an_address(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    target = stage.target()
    await uploaded(target, source(tmp_path, stage.size), order(), Memory())
    await live_face(target).open_live(order("event"), None)
    assert server.seen
    assert not [path for path in server.seen if "marked" in path]


async def test_a_text_is_inserted_beside_its_film_once(stage: Stage, server: YouTubeServer, tmp_path: Path) -> None:
    target = stage.target()
    assert isinstance(target, TextTarget)
    wanted = order()
    details = await uploaded(target, source(tmp_path, 100), wanted, Memory())
    (tmp_path / "a.vtt").write_bytes(b"WEBVTT\n")
    sent = UploadSource(tmp_path / "a.vtt", 7, "", "text/vtt")
    text = PublishedText(sent, "Deutsch" * 30, "de", ".de.vtt")
    made = await target.add_text(text, wanted, details=details)
    again = await target.add_text(text, wanted, details=details)
    assert made != again
    assert server.captions == {
        again["yt_captionId"]: {
            "id": again["yt_captionId"],
            "snippet": {"videoId": details["yt_videoId"], "language": "de", "name": text.name[:150], "isDraft": False},
        }
    }
    assert server.texts[again["yt_captionId"]] == b"WEBVTT\n"
    await target.remove_text(wanted, again)
    await target.remove_text(wanted, again)
    assert server.captions == {}
