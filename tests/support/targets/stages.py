"""Targets of each kind with a real server, seen from both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncssh
from aiohttp import web

from tests.support.s3 import KEY, SECRET, client, new_bucket
from tests.support.targets.facebook_server import PAGE, FacebookServer
from tests.support.targets.facebook_server import TOKEN as PAGE_TOKEN
from tests.support.targets.memory import MemoryTarget
from tests.support.targets.wire import Wire
from tests.support.targets.youtube_server import CLIENT, CLIENT_SECRET, REFRESH, YouTubeServer
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.facebook import FacebookTarget
from workers.adapters.targets.filesystem import FilesystemTarget
from workers.adapters.targets.http_upload import HttpUploadTarget
from workers.adapters.targets.s3 import S3Target
from workers.adapters.targets.sftp import SftpTarget
from workers.adapters.targets.youtube import YouTubeTarget
from workers.ports.targets import PublicationOrder, PublishingTarget, ServiceAddresses, UploadProgress, UploadSource, UploadState

KIB = 1024
MIB = 1024 * KIB
USER, PASSWORD = "publisher", "marked-password-7f3a"
TOKEN = "marked-token-91bc"
HOST_KEY = asyncssh.generate_private_key("ssh-ed25519")


def guarded() -> GuardedClient:
    return GuardedClient([ip_network("127.0.0.0/8")])


@dataclass
class Stage:
    """A target and its server. `make` returns the target with members of its configuration changed; `files` are names and contents
    at the server, `unfinished` counts what unfinished uploads left there; `sent` counts the bytes on the wire."""

    make: Callable[..., PublishingTarget]
    files: Callable[[], Mapping[str, bytes]]
    unfinished: Callable[[], int]
    sent: Callable[[], int]
    part: int
    size: int
    secrets: tuple[str, ...] = ()
    place: str = ""
    """The member of the configuration that names a place which may be missing."""
    wire: Wire | None = None
    by_name: bool = True
    """True if the name of a file consists of the ids of its content and its publication."""
    opened: list[PublishingTarget] = field(default_factory=list)

    def target(self, **changed: Any) -> PublishingTarget:
        made = self.make(**changed)
        self.opened.append(made)
        return made


class Killed(Exception):
    """Raised where the process ends."""


class Memory:
    """The state of an upload that a job stores. At the save with the number `kill_at` its process ends, after saving."""

    def __init__(self, *, kill_at: int | None = None) -> None:
        self.state: UploadState | None = None
        self.saves = 0
        self.kill_at = kill_at
        self.progress: list[UploadProgress] = []

    async def save(self, state: UploadState) -> None:
        self.state = state
        self.saves += 1
        if self.saves == self.kill_at:
            raise Killed


def source(folder: Path, size: int) -> UploadSource:
    path = folder / "film.mp4"
    block = bytes(range(256)) * 256
    content = b"".join(bytes([number % 251]) + block for number in range(size // len(block) + 1))[:size]
    path.write_bytes(content)
    return UploadSource(path, size, sha256(content).hexdigest())


def order(content: str = "film", key: UUID | None = None) -> PublicationOrder:
    return PublicationOrder(key or uuid4(), content, "A film", "")


async def uploaded(target: PublishingTarget, file: UploadSource, wanted: PublicationOrder, memory: Memory) -> Mapping[str, Any]:
    return await target.upload(file, wanted, state=memory.state, save=memory.save, progress=memory.progress.append)


def in_memory() -> Stage:
    part = 64 * KIB
    twin = MemoryTarget(part=part)
    return Stage(
        lambda: twin,
        lambda: twin.files,
        lambda: len(twin.unfinished),
        lambda: twin.sent,
        part,
        3 * part + 5,
    )


def in_directory(root: Path) -> Stage:
    part, folder = 256 * KIB, root / "out"
    folder.mkdir(parents=True)

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}

    def make(**changed: Any) -> PublishingTarget:
        return FilesystemTarget({"path": "out"} | changed, root=root, part=part)

    def unfinished() -> int:
        return sum(path.name.startswith(".") for path in folder.iterdir())

    return Stage(make, files, unfinished, lambda: 0, part, 3 * part + 5, place="path")


@asynccontextmanager
async def in_bucket(endpoint: str) -> AsyncIterator[Stage]:
    address, part = new_bucket(endpoint, prefix="vod/out"), 5 * MIB
    store, bucket = client(address), address.bucket
    config = {
        "endpoint": endpoint,
        "bucket": bucket,
        "prefix": "vod/out",
        "accessKeyId": KEY,
        "secretAccessKey": SECRET,
    }

    def files() -> dict[str, bytes]:
        objects = store.list_objects_v2(Bucket=bucket).get("Contents", ())
        return {
            stored["Key"].rpartition("/")[2]: store.get_object(Bucket=bucket, Key=stored["Key"])["Body"].read()
            for stored in objects
            if not stored["Key"].endswith("/")
        }

    async with Wire(urlsplit(endpoint).port or 80) as wire:

        def make(**changed: Any) -> PublishingTarget:
            through = {"endpoint": f"http://127.0.0.1:{wire.port}"}
            return S3Target(config | through | changed, client=guarded(), part=part, seconds=changed.pop("seconds", 30.0))

        yield Stage(
            *(make, files, lambda: len(store.list_multipart_uploads(Bucket=bucket).get("Uploads", ())), lambda: wire.sent),
            part=part,
            size=2 * part + MIB,
            secrets=(SECRET,),
            place="bucket",
            wire=wire,
        )


class Server(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)


@asynccontextmanager
async def in_ssh(root: Path, *, factory: Any = None) -> AsyncIterator[Stage]:
    """`factory` makes the server of SFTP that is below `root`."""
    part, folder = 256 * KIB, root / "out"
    folder.mkdir(parents=True)
    made = factory or (lambda connection: asyncssh.SFTPServer(connection, chroot=bytes(root)))
    listening = await asyncssh.listen("127.0.0.1", 0, server_factory=Server, server_host_keys=[HOST_KEY], sftp_factory=made)
    key = HOST_KEY.export_public_key().decode()

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}

    async with listening, Wire(listening.get_port()) as wire:

        def make(**changed: Any) -> PublishingTarget:
            seconds = changed.pop("seconds", 30.0)
            given = {"host": "127.0.0.1", "port": wire.port, "path": "/out", "username": USER, "password": PASSWORD, "hostKey": key}
            return SftpTarget(given | changed, client=guarded(), part=part, seconds=seconds)

        yield Stage(
            *(make, files, lambda: sum(entry_path.name.startswith(".") for entry_path in folder.iterdir()), lambda: wire.sent),
            part=part,
            size=3 * part + 5,
            secrets=(PASSWORD,),
            place="path",
            wire=wire,
        )


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    """The port of a server of this application."""
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def on_youtube(server: YouTubeServer | None = None) -> AsyncIterator[Stage]:
    served, part = server or YouTubeServer(), 256 * KIB
    config = {"yt_clientId": CLIENT, "yt_clientSecret": CLIENT_SECRET, "yt_refreshToken": REFRESH}
    async with serving(served.app()) as port, Wire(port) as wire:
        at = f"http://127.0.0.1:{wire.port}"
        addresses = ServiceAddresses(youtube=at, youtube_token=f"{at}/token")

        def make(**changed: Any) -> PublishingTarget:
            seconds = changed.pop("seconds", 30.0)
            return YouTubeTarget(config | changed, client=guarded(), addresses=addresses, part=part, seconds=seconds)

        def files() -> dict[str, bytes]:
            return {f"{key} {served.videos[key]['snippet']['tags']}": content for key, content in served.contents.items()}

        yield Stage(
            *(make, files, lambda: 0, lambda: wire.sent),  # a session that is not finished is nothing, and ends by itself
            part=part,
            size=3 * part + 5,
            secrets=(CLIENT_SECRET, REFRESH, "marked-access", "upload_id"),
            wire=wire,
            by_name=False,
        )


@asynccontextmanager
async def on_facebook(server: FacebookServer | None = None) -> AsyncIterator[Stage]:
    part = 256 * KIB
    served = server or FacebookServer(chunk=part)
    config = {"fb_resourceId": PAGE, "fb_accessToken": PAGE_TOKEN}
    async with serving(served.app()) as port, Wire(port) as wire:
        at = f"http://127.0.0.1:{wire.port}"
        addresses = ServiceAddresses(facebook=f"{at}/graph/v1.0", facebook_video=f"{at}/video/v1.0")

        def make(**changed: Any) -> PublishingTarget:
            seconds = changed.pop("seconds", 30.0)
            return FacebookTarget(config | changed, client=guarded(), addresses=addresses, part=part, seconds=seconds)

        def files() -> dict[str, bytes]:
            return {f"{key} {served.videos[key]['custom_labels']}": content for key, content in served.contents.items()}

        yield Stage(
            *(make, files, lambda: 0, lambda: wire.sent),  # a session that is not finished is nothing, and ends by itself
            part=part,
            size=3 * part + 5,
            secrets=(PAGE_TOKEN,),
            wire=wire,
            by_name=False,
        )


@asynccontextmanager
async def on_web() -> AsyncIterator[Stage]:
    """A server that stores complete files, and demands a token."""
    contents: dict[str, bytes] = {}

    async def handle(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        match request.method:
            case "OPTIONS":
                return web.Response(headers={"Allow": "GET, HEAD, PUT, DELETE"})
            case "PUT":
                contents[name] = await request.read()
                return web.Response(status=201)
            case "DELETE":
                return web.Response(status=204 if contents.pop(name, None) is not None else 404)
        return web.Response(body=contents[name]) if name in contents else web.Response(status=404)

    app = web.Application(client_max_size=64 * MIB)
    app.router.add_route("*", "/out/{name}", handle)
    async with serving(app) as port, Wire(port) as wire:

        def make(**changed: Any) -> PublishingTarget:
            seconds = changed.pop("seconds", 30.0)
            given = {
                "url": f"http://127.0.0.1:{wire.port}/out/{{contentId}}-{{publicationId}}.mp4",
                "method": "PUT",
                "headers": [{"name": "Authorization", "value": f"Bearer {TOKEN}"}],
            }
            return HttpUploadTarget(given | changed, client=guarded(), seconds=seconds)

        size = 3 * MIB + 5
        yield Stage(
            make, lambda: contents, lambda: 0, lambda: wire.sent, part=size, size=size, secrets=(TOKEN,), place="", wire=wire
        )
