"""Published media: who gets which file, whole or in parts."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.http.request import Request
from api.kernel.log import RequestLog
from api.published.files import PublishedFiles
from api.published.readers import Readers
from api.published.viewers import Viewers
from api.wiring.core import Core
from api.wiring.parts import ServedMedia
from domain.event.values import EventState
from projections.event.queries import EventQueries
from tests.support.application import assembled, introduce
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.services import services
from workers.adapters.media_bucket import MediaBucket
from workers.adapters.media_directory import PIECE, MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.s3_bucket import S3Bucket
from workers.kernel.fair_places import FairPlaces

ANYBODY = {"API-KEY": ""}
CONTENT = bytes(range(256)) * 8
PUBLIC = {EventState.VOD_PUBLIC, EventState.REMIX_PUBLIC, EventState.ARCHIVER_PUBLIC, EventState.COMPOSE_PUBLIC}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "media"


@pytest.fixture
def services_by_type(inner: Core, database_url: str, outbound: GuardedClient, root: Path) -> dict[Any, Any]:
    files = MediaDirectory(root)
    return services(inner, outbound=outbound, files=files, given={ServedMedia: ServedMedia(files)})


async def event(http: httpx.AsyncClient, root: Path, *names: str, state: EventState = EventState.VOD_PUBLIC, **values: Any) -> str:
    """The content id of an Event with these files; `{}` in a name stands for it."""
    answer = await http.post("/api/event/", json={"title": "Match", "EventState": int(state), **values})
    assert answer.status_code < 300, answer.text
    content_id = str(answer.json()["id"])
    for name in names:
        file = root / content_id / name.format(content_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(CONTENT)
    return content_id


async def get(http: httpx.AsyncClient, path: str, **headers: str) -> httpx.Response:
    """Without a key, unless the headers have one."""
    return await http.get(path, headers={"API-KEY": headers.pop("key", ""), **headers})


async def test_a_file_is_served_with_its_type_size_and_version(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "{}.mp4")
    answer = await get(http, f"/media/{content_id}/{content_id}.mp4")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-type"] == "video/mp4"
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["etag"].startswith('"')
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("hls/index.m3u8", "application/vnd.apple.mpegurl"),
        ("dash/index.mpd", "application/dash+xml"),
        ("v.m4s", "video/iso.segment"),
        ("sprite.VTT", "text/vtt; charset=utf-8"),
        ("poster.jpg", "image/jpeg"),
        ("a.png", "image/png"),
        ("a.gif", "image/gif"),
        ("metadata.json", "application/json"),
        ("x.ism", "application/smil+xml"),
        ("page.html", "application/octet-stream"),
        ("page.svg", "application/octet-stream"),
        ("mp4", "application/octet-stream"),
    ],
)
async def test_the_type_follows_from_the_extension(http: httpx.AsyncClient, root: Path, name: str, media_type: str) -> None:
    content_id = await event(http, root, name)
    assert (await get(http, f"/media/{content_id}/{name}")).headers["content-type"] == media_type


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [("0-99", 0, 100), ("2000-", 2000, 2048), ("-48", 2000, 2048), ("-9999", 0, 2048), ("2040-9999", 2040, 2048), ("0-0", 0, 1)],
)
async def test_one_range_is_served(http: httpx.AsyncClient, root: Path, wanted: str, start: int, end: int) -> None:
    content_id = await event(http, root, "a.mp4")
    answer = await get(http, f"/media/{content_id}/a.mp4", Range=f"bytes={wanted}")
    assert (answer.status_code, answer.content) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/2048"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize(
    "wanted", ["bytes=0-1,5-6", "bytes=9-2", "bytes=a-b", "lines=0-1", "bytes=-", "bytes=", f"bytes=0-{'9' * 30}"]
)
async def test_what_is_no_single_range_counts_as_absent(http: httpx.AsyncClient, root: Path, wanted: str) -> None:
    content_id = await event(http, root, "a.mp4")
    answer = await get(http, f"/media/{content_id}/a.mp4", Range=wanted)
    assert (answer.status_code, answer.content) == (200, CONTENT)


@pytest.mark.parametrize("wanted", ["2048-", "5000-6000", "-0"])
async def test_a_range_behind_the_end_is_416_with_the_size(http: httpx.AsyncClient, root: Path, wanted: str) -> None:
    content_id = await event(http, root, "a.mp4")
    answer = await get(http, f"/media/{content_id}/a.mp4", Range=f"bytes={wanted}")
    assert answer.status_code == 416
    assert answer.headers["content-range"] == "bytes */2048"
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_range_of_another_version_is_the_whole_file(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    path = f"/media/{content_id}/a.mp4"
    first = (await get(http, path)).headers
    for begun in (first["etag"], first["last-modified"]):
        assert (await get(http, path, Range="bytes=0-9", **{"If-Range": begun})).status_code == 206
    old = format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)
    for begun in ('"other"', f"W/{first['etag']}", old):
        assert (await get(http, path, Range="bytes=0-9", **{"If-Range": begun})).status_code == 200


async def test_a_known_version_is_not_sent_again(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    path = f"/media/{content_id}/a.mp4"
    first = (await get(http, path)).headers
    for existing in (
        {"If-None-Match": f'"x", {first["etag"]}'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": first["last-modified"]},
        {"If-Modified-Since": "Fri, 31 Dec 9999 23:59:59 GMT"},
    ):
        answer = await get(http, path, **existing)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == first["etag"]
    (root / content_id / "new").write_bytes(CONTENT)
    (root / content_id / "new").replace(root / content_id / "a.mp4")
    assert (await get(http, path, **{"If-None-Match": first["etag"]})).status_code == 200


async def test_another_version_than_the_caller_wants_is_not_sent(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    path = f"/media/{content_id}/a.mp4"
    first = (await get(http, path)).headers
    tag, earlier = first["etag"], "Thu, 01 Jan 1970 00:00:00 GMT"
    for wanted in (
        *({"If-Match": value} for value in (tag, "*", f'"x", {tag}', f'W/"y",{tag}')),
        {"If-Unmodified-Since": first["last-modified"]},
        {"If-Unmodified-Since": "no date"},
        {"If-Match": tag, "If-Unmodified-Since": earlier},
    ):
        for method, part in (("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=0-1"})):
            answer = await http.request(method, path, headers={**wanted, **part})
            assert answer.status_code == (206 if part else 200), wanted
    for wanted in (
        *({"If-Match": value} for value in ('"x"', f"W/{tag}", tag.strip('"'), "", '"*"')),
        {"If-Unmodified-Since": earlier},
        {"If-Match": '"x"', "If-None-Match": tag, "Range": "bytes=9999-"},
    ):
        answer = await http.get(path, headers=wanted)
        assert (answer.status_code, answer.json()["type"]) == (412, "/problems/stale-version"), wanted


async def test_head_has_the_headers_alone(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    answer = await http.head(f"/media/{content_id}/a.mp4", headers={**ANYBODY, "Range": "bytes=0-9"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "2048"
    assert (await http.head(f"/media/{content_id}/none.mp4", headers=ANYBODY)).status_code == 404


async def test_an_empty_file_is_served(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.vtt")
    (root / content_id / "a.vtt").write_bytes(b"")
    answer = await get(http, f"/media/{content_id}/a.vtt")
    assert (answer.status_code, answer.headers["content-length"]) == (200, "0")
    assert (await get(http, f"/media/{content_id}/a.vtt", Range="bytes=0-")).status_code == 416


async def test_a_page_of_another_origin_may_ask_with_a_key_and_a_range(http: httpx.AsyncClient, root: Path) -> None:
    asked = {**ANYBODY, "Origin": "https://player.example", "Access-Control-Request-Method": "GET"}
    answer = await http.options("/media/any/a/b.mp4", headers=asked)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "range" in answer.headers["access-control-allow-headers"]
    assert (await http.post("/media/any/a.mp4", headers=ANYBODY)).status_code == 405


async def test_there_is_no_list_no_hidden_file_and_no_way_out(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a/b.mp4", ".hidden", ".jobs/x.mp4")
    (root / "secret").write_bytes(b"s")
    (root / content_id / "link.mp4").symlink_to(root / "secret")
    paths = ["", "a", "a/", ".hidden", ".jobs/x.mp4", "link.mp4", "a%2Fb.mp4", "..%2Fsecret", "%2e%2e/secret", "a/../../secret"]
    paths += ["a//b.mp4", "a/b.mp4/c", "a/%00", "%FF", "a/b.mp4%00.jpg", "." * 300, "x/" * 3000]
    for path in paths:
        answer = await http.get(httpx.URL("http://media.test", raw_path=f"/media/{content_id}/{path}".encode()))
        assert answer.status_code in (400, 404), path
        assert answer.content != b"s"
    for path in (f"/media/{content_id}", "/media", "/media/", "/media/../secret", "/media/%2e%2e/secret", "/media/.jobs/x"):
        answer = await http.get(httpx.URL("http://media.test", raw_path=path.encode()))
        assert answer.status_code == 404, path


@pytest.mark.parametrize("state", EventState)
async def test_without_a_key_only_public_on_demand_states_are_there(http: httpx.AsyncClient, root: Path, state: EventState) -> None:
    content_id = await event(http, root, "a.mp4", state=state)
    answer = await get(http, f"/media/{content_id}/a.mp4")
    assert answer.status_code == (200 if state in PUBLIC else 404)


async def test_a_viewer_sees_what_is_not_public(http: httpx.AsyncClient, inner: Core, root: Path) -> None:
    content_id = await event(http, root, "a.mp4", state=EventState.VOD_PRIVATE)
    (root / "other").mkdir()
    (root / "other" / "a.mp4").write_bytes(CONTENT)
    viewer, keys = await introduce(inner, "viewer", "viewer"), await introduce(inner, "packager", "keys")
    for path in (f"/media/{content_id}/a.mp4", "/media/other/a.mp4"):
        assert (await get(http, path)).status_code == 404
        assert (await get(http, path, key="wrong")).status_code == 404
        assert (await get(http, path, key=keys)).status_code == 404
        answer = await get(http, path, key=viewer)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-store")


async def test_a_wrong_key_takes_nothing_from_what_is_public(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    assert (await get(http, f"/media/{content_id}/a.mp4", key="wrong")).status_code == 200


async def test_a_deleted_event_has_no_files(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    await http.delete(f"/api/event/{content_id}")
    assert (await http.get(f"/media/{content_id}/a.mp4")).status_code == 404


async def test_of_a_protected_event_nothing_clear_is_served_even_to_an_admin(http: httpx.AsyncClient, root: Path) -> None:
    clear = [
        "{}.mp4",
        "{}.ism",
        "assets/clip.mp4",
        "assets/loop.gif",
        "assets/frame.jpg",
        "hls/v.m4s",
        "metadata.json",
        "x/cenc/v.mp4",
        "cbcs.mp4",
    ]
    shown = ["cenc/index.mpd", "cbcs/index.m3u8", "cbcs/v/1.m4s", "cenc/v.mp4", "poster.jpg", "thumbnails/sprite.png", "sprite.vtt"]
    content_id = await event(http, root, *clear, *shown, VodEnableDrm=True)
    for name in clear:
        assert (await http.get(f"/media/{content_id}/{name.format(content_id)}")).status_code == 404, name
    for name in shown:
        assert (await get(http, f"/media/{content_id}/{name}")).status_code == 200, name


async def test_a_large_file_comes_in_pieces(http: httpx.AsyncClient, root: Path) -> None:
    content_id = await event(http, root, "a.mp4")
    large = bytes(PIECE) + b"1" * PIECE + b"2"
    (root / content_id / "a.mp4").write_bytes(large)
    assert (await get(http, f"/media/{content_id}/a.mp4")).content == large
    assert (await get(http, f"/media/{content_id}/a.mp4", Range=f"bytes={PIECE - 1}-{2 * PIECE}")).content == large[PIECE - 1 :][
        : PIECE + 2
    ]


async def test_media_in_a_bucket_are_served_alike(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, http: httpx.AsyncClient, root: Path, moto_endpoint: str
) -> None:
    content_id, address = await event(http, root, "a.mp4"), new_bucket(moto_endpoint)
    client(address).put_object(Bucket=address.bucket, Key=f"{address.prefix}/{content_id}/a.mp4", Body=CONTENT)
    files = PublishedFiles(
        MediaBucket(S3Bucket(address)), services_by_type[EventQueries], Viewers(inner.directory), readers=Readers(FairPlaces(1))
    )
    app = assembled(inner, {**services_by_type, PublishedFiles: files}, request_log=request_log, registry=CollectorRegistry())
    path = f"/media/{content_id}/a.mp4"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test") as other:
        whole = await other.get(path)
        assert (whole.status_code, whole.content) == (200, CONTENT)
        part = await other.get(path, headers={"Range": "bytes=10-19", "If-Range": whole.headers["etag"]})
        assert (part.status_code, part.content) == (206, CONTENT[10:20])
        dated = await other.get(path, headers={"If-Modified-Since": whole.headers["last-modified"]})
        assert dated.status_code == 304
        assert (await other.head(path)).headers["content-length"] == str(len(CONTENT))
        assert (await other.get(path, headers={"Range": "bytes=9999-"})).status_code == 416
        assert (await other.get(f"/media/{content_id}/b.mp4")).status_code == 404


async def test_where_media_are_not_served_nothing_is_there(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, http: httpx.AsyncClient, root: Path
) -> None:
    content_id = await event(http, root, "a.mp4")
    off = PublishedFiles(None, services_by_type[EventQueries], Viewers(inner.directory), readers=Readers(FairPlaces(1)))
    app = assembled(inner, {**services_by_type, PublishedFiles: off}, request_log=request_log, registry=CollectorRegistry())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://media.test", headers=http.headers
    ) as other:
        assert (await other.get(f"/media/{content_id}/a.mp4")).status_code == 404
    assert (await http.get(f"/media/{content_id}/a.mp4")).status_code == 200


async def test_so_many_files_are_read_at_a_time(
    inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog, http: httpx.AsyncClient, root: Path
) -> None:
    """Files that are answered are closed, whatever the answer was."""
    content_id = await event(http, root, "a.mp4")
    first = PublishedFiles(
        MediaDirectory(root), services_by_type[EventQueries], Viewers(inner.directory), readers=Readers(FairPlaces(1))
    )
    app = assembled(inner, {**services_by_type, PublishedFiles: first}, request_log=request_log, registry=CollectorRegistry())
    path = f"/media/{content_id}/a.mp4"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://media.test") as other:
        for headers in ({}, {"Range": "bytes=0-1"}, {"Range": "bytes=9999-"}, {"If-None-Match": "*"}):
            assert (await other.get(path, headers=headers)).status_code in (200, 206, 304, 416)
            await other.head(path, headers=headers)
        owned = await first.open(content_id, "a.mp4", request=Request({"type": "http", "method": "GET", "headers": []}))
        assert (await other.get(path)).status_code == 503
        await owned.opened.close()
        assert (await other.get(path)).status_code == 200
