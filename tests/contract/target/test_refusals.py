"""Targets that refuse, lie, redirect, drip and never end: what the publication reports, without any secret."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import getpwnam
from typing import Any

import asyncssh
import pytest
from aiohttp import web

from tests.support.targets.stages import (
    HOST_KEY,
    PASSWORD,
    TOKEN,
    Memory,
    guarded,
    in_directory,
    in_ssh,
    order,
    serving,
    source,
    uploaded,
)
from tests.workers.outbound.host import Host, Script, hangs, says
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.system_account import grant_traversal
from workers.adapters.targets.facebook import FacebookTarget
from workers.adapters.targets.filesystem import FilesystemTarget
from workers.adapters.targets.filesystem_trial import OthersFilesystemTarget
from workers.adapters.targets.http_upload import HttpUploadTarget
from workers.adapters.targets.live_only import CustomTarget
from workers.adapters.targets.registry import TargetRegistry
from workers.adapters.targets.s3 import S3Target
from workers.adapters.targets.youtube import YouTubeTarget
from workers.ports.targets import PublishingTarget, ServiceAddresses, TargetFailed

SECRET = "marked-secret-5d1e"
SIZE = 300_000
PATIENCE = 30.0
"""Seconds for an answer that comes, on a busy machine too."""
SHORT = 0.5
"""Seconds for an answer that has no end."""
STATUSES = {
    401: "destination",
    403: "destination",
    404: "destination",
    405: "destination",
    413: "publication",
    429: "retry",
    500: "retry",
    503: "retry",
    507: "destination",
}
CODES = {
    "AccessDenied": "destination",
    "SignatureDoesNotMatch": "destination",
    "NoSuchBucket": "destination",
    "PermanentRedirect": "destination",
    "QuotaExceeded": "destination",
    "SlowDown": "retry",
    "InternalError": "retry",
    "MalformedXML": "publication",
}


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def endless(out: asyncio.StreamWriter) -> None:
    out.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        out.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await out.drain()


async def drips(out: asyncio.StreamWriter) -> None:
    out.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        out.write(b"x-drip: 1\r\n")
        await asyncio.sleep(0.05)


def on_http(host: Host, *, seconds: float = PATIENCE, **changed: Any) -> PublishingTarget:
    config = {"url": f"{host.url}/{{contentId}}.mp4?sig={SECRET}", "headers": [{"name": "X-Key", "value": SECRET}]}
    return HttpUploadTarget(config | changed, client=guarded(), seconds=seconds)


def in_s3(host: Host, *, seconds: float = PATIENCE, **changed: Any) -> PublishingTarget:
    config = {"endpoint": host.url, "bucket": "media", "prefix": "", "accessKeyId": "key", "secretAccessKey": SECRET}
    return S3Target(config | changed, client=guarded(), seconds=seconds)


def on_youtube(host: Host, client: GuardedClient | None = None, *, seconds: float = PATIENCE) -> YouTubeTarget:
    config = {"yt_clientId": "id", "yt_clientSecret": SECRET, "yt_refreshToken": SECRET}
    addresses = ServiceAddresses(youtube=host.url, youtube_token=f"{host.url}/token")
    return YouTubeTarget(config, client=client or guarded(), addresses=addresses, seconds=seconds)


def on_facebook(host: Host, client: GuardedClient | None = None, *, seconds: float = PATIENCE) -> FacebookTarget:
    addresses = ServiceAddresses(facebook=host.url, facebook_video=host.url)
    config = {"fb_resourceId": "1", "fb_accessToken": SECRET}
    return FacebookTarget(config, client=client or guarded(), addresses=addresses, seconds=seconds)


KINDS: dict[str, Callable[..., PublishingTarget]] = {"http": on_http, "s3": in_s3}
SERVICES: dict[str, Callable[..., YouTubeTarget | FacebookTarget]] = {"youtube": on_youtube, "facebook": on_facebook}
WRONG_TYPES: tuple[Any, ...] = (
    [],
    "text",
    {"items": {}, "data": {}, "id": {"a": 1}},
    {"items": [5, None, {"id": "../.."}], "id": "../../me", "status": 7, "data": [{"id": "a/b", "custom_labels": 5}], "tags": 5},
    {"items": [{"id": "x" * 10**5, "snippet": [], "status": "live"}], "upload_session_id": 5, "start_offset": -1},
    {"id": "x1", "upload_session_id": "a", "video_id": "b", "start_offset": "9" * 99, "end_offset": []},
    {"id": "x1", "secure_stream_url": "file:///etc/passwd", "cdn": {"ingestionInfo": {"streamName": 5}}, "items": []},
)


async def failures(target: PublishingTarget, folder: Path) -> list[TargetFailed]:
    """Return the failures of a check and of an upload."""
    faults = []
    for act in (target.check(), uploaded(target, source(folder, SIZE), order(), Memory())):
        with pytest.raises(TargetFailed) as caught:
            await act
        assert SECRET not in str(caught.value)
        assert TOKEN not in str(caught.value)
        faults.append(caught.value)
    await target.close()
    return faults


@pytest.mark.parametrize("kind", KINDS)
async def test_each_status_says_whose_fault_it_is(kind: str, tmp_path: Path) -> None:
    for status, fault in STATUSES.items():
        async with Host(says(answer(status, "retry-after: 7"), then_closes=True)) as host:
            target = KINDS[kind](host)
            with pytest.raises(TargetFailed) as caught:
                await uploaded(target, source(tmp_path, SIZE), order(), Memory())
            await target.close()
        assert (status, caught.value.kind) == (status, fault)
        assert str(status) in str(caught.value)
        assert caught.value.after == (7.0 if fault == "retry" else None)


async def test_each_error_of_s3_says_whose_fault_it_is(tmp_path: Path) -> None:
    for code, fault in CODES.items():
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode()
        for status in (400, 200):  # an error may come with a status that is none
            async with Host(says(answer(status, body=body), then_closes=True)) as host:
                faults = await failures(in_s3(host), tmp_path)
            assert [failure.kind for failure in faults] == [fault, fault], code
            assert code in str(faults[1]) or fault == "publication" or code == "NoSuchBucket"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_redirect_is_not_followed(kind: str, tmp_path: Path) -> None:
    async with Host(says(answer(200))) as inside:
        async with Host(says(answer(307, f"location: {inside.url}/"))) as host:
            faults = await failures(KINDS[kind](host), tmp_path)
        assert inside.connections == 0
    assert {failure.kind for failure in faults} == {"destination"}


@pytest.mark.parametrize(
    ("kind", "script"),
    [("http", hangs), ("http", drips), ("s3", hangs), ("s3", drips), ("s3", endless)],
    ids=["http hangs", "http drips", "s3 hangs", "s3 drips", "s3 is endless"],
)
async def test_a_target_without_an_end_is_given_up(kind: str, script: Script, tmp_path: Path) -> None:
    async with Host(script) as host:
        target = KINDS[kind](host, seconds=SHORT)
        with pytest.raises(TargetFailed):
            async with asyncio.timeout(30):
                await uploaded(target, source(tmp_path, SIZE), order(), Memory())
        await target.close()


async def test_the_status_of_a_target_is_enough_whatever_body_goes_on_behind_it(tmp_path: Path) -> None:
    """The server also sends a body after an answer to HEAD, which has none."""
    async with Host(endless) as host:
        target = on_http(host, seconds=SHORT)
        async with asyncio.timeout(30):
            await uploaded(target, source(tmp_path, SIZE), order(), Memory())
        await target.close()


@pytest.mark.parametrize("kind", SERVICES)
async def test_a_service_without_an_end_is_given_up_and_its_redirects_are_not_followed(kind: str, tmp_path: Path) -> None:
    for script in (hangs, drips, endless):
        async with Host(script) as host:
            async with asyncio.timeout(30):
                assert {failure.kind for failure in await failures(SERVICES[kind](host, seconds=SHORT), tmp_path)} <= {
                    "retry",
                    "destination",
                }
    async with Host(says(answer(200))) as inside:
        async with Host(says(answer(307, f"location: {inside.url}/"))) as host:
            assert {failure.kind for failure in await failures(SERVICES[kind](host), tmp_path)} == {"destination"}
        assert [failure.kind for failure in await failures(SERVICES[kind](inside, GuardedClient()), tmp_path)] == [
            "destination"
        ] * 2
        assert inside.connections == 0


@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.parametrize("wrong_answer", range(len(WRONG_TYPES) + 1))
async def test_answers_of_wrong_types_are_failures_like_others(kind: str, wrong_answer: int, tmp_path: Path) -> None:
    token = {"access_token": "t", "expires_in": "soon"}
    chosen = WRONG_TYPES[wrong_answer] if wrong_answer < len(WRONG_TYPES) else None
    text = (
        json.dumps({**token, **chosen} if isinstance(chosen, dict) else chosen)
        if wrong_answer < len(WRONG_TYPES)
        else "[" * 100_000
    )
    details = dict.fromkeys(("yt_videoId", "yt_broadcastId", "yt_streamId", "fb_videoId", "fb_liveVideoId"), "x1")
    async with Host(says(answer(200, body=text.encode()))) as host:
        target, wanted = SERVICES[kind](host), order()
        calls = [target.query, target.publish, target.unpublish, target.update, target.delete, target.go_live, target.close_live]
        for act in (
            *(target.check(), uploaded(target, source(tmp_path, SIZE), wanted, Memory()), target.open_live(wanted, None)),
            *(call(wanted, details) for call in calls),
            target.delete(wanted, None),
        ):
            with suppress(TargetFailed):
                await act
        await target.close()
    assert not any(".." in head.splitlines()[0] or len(head) > 2_000 for head in host.heads)


async def test_a_list_of_parts_without_an_end_is_not_read(tmp_path: Path) -> None:
    pages = 0

    async def list_parts(request: web.Request) -> web.Response:
        nonlocal pages
        if request.method != "GET":
            return web.Response(status=404 if request.method == "HEAD" else 500)
        pages += 1
        parts = "".join(f"<Part><PartNumber>{pages * 1000 + number}</PartNumber><Size>5</Size></Part>" for number in range(1000))
        more = f"<IsTruncated>true</IsTruncated><NextPartNumberMarker>{pages * 1000 + 1000}</NextPartNumberMarker>"
        return web.Response(text=f"<ListPartsResult>{parts}{more}</ListPartsResult>", content_type="application/xml")

    app, file, wanted, memory = web.Application(), source(tmp_path, SIZE), order(), Memory()
    app.router.add_route("*", "/{rest:.*}", list_parts)
    memory.state = {"upload": "u", "key": f"film-{wanted.id}.mp4", "part": 100_000, "sha256": file.sha256}
    async with serving(app) as port:
        config = {"endpoint": f"http://127.0.0.1:{port}", "bucket": "b", "accessKeyId": "k", "secretAccessKey": SECRET}
        target = S3Target(config, client=guarded())
        with pytest.raises(TargetFailed):
            await uploaded(target, file, wanted, memory)
        await target.close()
    assert pages == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_an_address_inside_is_not_called(kind: str, tmp_path: Path) -> None:
    async with Host(says(answer(200))) as host:
        closed = GuardedClient()
        config = {
            "url": f"{host.url}/{{contentId}}",
            "endpoint": host.url,
            "bucket": "b",
            "accessKeyId": "k",
            "secretAccessKey": "s",
        }
        target = (HttpUploadTarget if kind == "http" else S3Target)(config, client=closed)
        faults = await failures(target, tmp_path)
        assert host.connections == 0
    assert [(failure.kind, "not public" in str(failure)) for failure in faults] == [("destination", True)] * 2


async def test_an_upload_by_post_is_deleted_where_the_server_put_it(tmp_path: Path) -> None:
    async with Host(says(answer(201, "location: /files/9"))) as host:
        target = on_http(host, url=f"{host.url}/files", method="POST")
        wanted = order()
        details = await uploaded(target, source(tmp_path, SIZE), wanted, Memory())
        await target.delete(wanted, details)
        assert details["link"] == f"{host.url}/files/9"
        assert host.heads[-1].startswith("DELETE /files/9 ")
        await target.close()


@pytest.mark.parametrize("location", ["http://127.0.0.2/x", "//127.0.0.2/x", "http://127.0.0.1@127.0.0.2/x"])
async def test_a_place_at_another_server_is_not_believed(location: str, tmp_path: Path) -> None:
    async with Host(says(answer(201, f"location: {location}"))) as host:
        target = on_http(host, url=f"{host.url}/files", method="POST")
        details = await uploaded(target, source(tmp_path, SIZE), order(), Memory())
        assert details["link"] == f"{host.url}/files"
        await target.close()


async def test_a_file_with_another_hash_at_the_server_is_no_success(tmp_path: Path) -> None:
    async with Host(says(answer(200, "repr-digest: sha-256=:AAAA:"))) as host:
        target = on_http(host)
        with pytest.raises(TargetFailed, match="differs from the one that was sent"):
            await uploaded(target, source(tmp_path, SIZE), order(), Memory())
        await target.close()


@pytest.mark.parametrize(
    "config",
    [{"url": ""}, {"url": "ftp://127.0.0.1/{contentId}"}, {"url": "http://127.0.0.1/one"}, {"url": 7}, {"method": "PATCH"}],
    ids=str,
)
async def test_a_configuration_that_cannot_be_used_says_so(config: dict[str, Any], tmp_path: Path) -> None:
    async with Host(says(answer(200))) as host:
        faults = await failures(on_http(host, **config), tmp_path)
    assert {failure.kind for failure in faults} == {"destination"}


# --- SFTP


async def test_another_host_key_is_sent_nothing(tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    of_another_kind = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    wrong = (other.export_public_key().decode(), other.get_fingerprint(), of_another_kind.export_public_key().decode())
    async with in_ssh(tmp_path / "root") as stage:
        for key in wrong:
            faults = await failures(stage.target(hostKey=key), tmp_path)
            assert {failure.kind for failure in faults} == {"destination"}
            assert all("host key" in str(failure) or "hostKey" in str(failure) for failure in faults)
        assert dict(stage.files()) == {}


async def test_a_fingerprint_is_enough_to_know_the_server(tmp_path: Path) -> None:
    async with in_ssh(tmp_path / "root") as stage:
        await stage.target(hostKey=HOST_KEY.get_fingerprint()).check()


@pytest.mark.parametrize(
    "changed",
    [
        {"password": "wrong"},
        {"username": "nobody"},
        {"hostKey": ""},
        {"hostKey": "ssh-ed25519 ???"},
        {"path": "/../out"},
        {"port": "x"},
    ],
    ids=str,
)
async def test_a_login_that_is_refused_says_so(changed: dict[str, Any], tmp_path: Path) -> None:
    async with in_ssh(tmp_path / "root") as stage:
        faults = await failures(stage.target(**changed), tmp_path)
        assert {failure.kind for failure in faults} == {"destination"}
        assert not any(PASSWORD in str(failure) for failure in faults)


class FullServer(asyncssh.SFTPServer):
    """Accepts some bytes of each file, and then reports that there is no room."""

    def write(self, file_obj: object, offset: int, data: bytes) -> Any:
        if offset + len(data) > 100_000:
            raise asyncssh.sftp.SFTPFailure("no room")
        return super().write(file_obj, offset, data)


async def test_a_full_sftp_server_says_so(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with in_ssh(root, factory=lambda connection: FullServer(connection, chroot=bytes(root))) as stage:
        with pytest.raises(TargetFailed, match="no space left"):
            await uploaded(stage.target(), source(tmp_path, SIZE), order(), Memory())
        assert dict(stage.files()) == {}


# --- FILESYSTEM


@pytest.mark.parametrize("path", ["..", "out/..", "/etc", "link", "link/deeper", "out/film", "a\nb"])
async def test_no_path_leads_out_of_the_root(path: str, tmp_path: Path) -> None:
    stage = in_directory(tmp_path / "root")
    (tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "out" / "film").write_text("a file")
    faults = await failures(stage.target(path=path), tmp_path)
    assert {failure.kind for failure in faults} == {"destination"}
    assert list((tmp_path / "elsewhere" / "deeper").iterdir()) == []


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    stage, wanted = in_directory(tmp_path / "root"), order()
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "root" / "out" / f".film-{wanted.id}.mp4.part").symlink_to(victim)
    with pytest.raises(TargetFailed):
        await uploaded(stage.target(), source(tmp_path, SIZE), wanted, Memory())
    assert victim.read_text() == "untouched"


async def test_without_a_root_nothing_is_written(tmp_path: Path) -> None:
    faults = await failures(FilesystemTarget({"path": "out"}, root=None), tmp_path)
    assert all("MEDIALEDGER_FILESYSTEM_ROOT" in str(failure) for failure in faults)


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """The system refuses to make larger files."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


async def test_a_full_file_system_says_so(tmp_path: Path) -> None:
    stage, file = in_directory(tmp_path / "root"), source(tmp_path, SIZE)
    with no_room(100_000), pytest.raises(TargetFailed, match="no space left") as caught:
        await uploaded(stage.target(), file, order(), Memory())
    assert caught.value.kind == "destination"


# --- CUSTOM, and what there is nothing for


async def greets_rtmp(out: asyncio.StreamWriter) -> None:
    out.write(b"\3" + bytes(1536) + bytes(1536))


class RtmpServer:
    """Reads a handshake and answers it."""

    async def __aenter__(self) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(1537)
            await greets_rtmp(writer)

        self._server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


async def custom(url: str) -> str:
    """Return why a check fails; empty if it succeeds."""
    target = CustomTarget({"cstm_streamUrl": url, "cstm_streamName": SECRET}, client=guarded(), seconds=PATIENCE)
    try:
        await target.check()
    except TargetFailed as failed:
        return str(failed)
    finally:
        await target.close()
    return ""


async def test_a_stream_is_greeted_in_its_protocol() -> None:
    async with RtmpServer() as port:
        assert await custom(f"rtmp://127.0.0.1:{port}/live") == ""


async def test_what_does_not_speak_the_protocol_of_the_stream_says_so() -> None:
    async with Host(says(b"HTTP/1.1 400 Bad Request\r\n\r\n", then_closes=True)) as host:
        assert "does not speak RTMP" in await custom(f"rtmp://127.0.0.1:{host.port}/live")
    assert "cannot be reached" in await custom("rtmp://127.0.0.1:9/live")
    reason = await custom(f"srt://127.0.0.1:9?passphrase={SECRET}")
    assert reason.startswith("SRT is not supported")
    assert SECRET not in reason
    assert "begin with rtmp" in await custom("file:///etc/passwd")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_a_directory_is_tried_as_the_account_that_uploads(tmp_path: Path) -> None:
    for name, mode in (("closed", 0o700), ("open", 0o777), (".", 0o755)):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name).chmod(mode)
    nobody = getpwnam("nobody")
    reads = (sys.executable, os.path.realpath(sys.executable), *filter(None, sys.path))
    grant_traversal(nobody, tmp_path / "open" / "any", *map(Path, reads))
    outcomes: dict[str | None, str] = {}
    for path in ("open", "closed", "missing", "..", None):
        target = OthersFilesystemTarget({"path": path}, root=tmp_path, account=lambda: nobody)
        try:
            asyncio.run(target.check())
            outcomes[path] = ""
        except TargetFailed as failed:
            outcomes[path] = f"{failed.kind}: {failed}"
    assert outcomes["open"] == ""
    assert "not writable" in outcomes["closed"]
    assert outcomes["closed"].endswith("It was checked as nobody, the account of uploads.")
    assert "does not exist" in outcomes["missing"]
    assert [outcomes[path].split(":")[0] for path in ("..", None)] == ["destination", "destination"]
    assert list((tmp_path / "open").iterdir()) == []
    asyncio.run(FilesystemTarget({"path": "closed"}, root=tmp_path).check())


@pytest.mark.parametrize("target", [1, 3, 4, 9])
async def test_what_takes_no_files_says_so(target: int, tmp_path: Path) -> None:
    made = TargetRegistry(guarded)(target, {})
    faults = await failures(made, tmp_path)
    assert (faults[1].kind, "upload" in made.capabilities) == ("destination", False)
