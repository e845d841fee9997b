"""The product under test with destinations: members of the job engine that upload, and a server of each kind of target."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

from moto.server import ThreadedMotoServer

from domain.destination.targets import Target
from faults.media_stage import MediaStage
from faults.processes import Supervised
from faults.stage import EACH
from tests.support.targets.facebook_server import FacebookServer
from tests.support.targets.stages import Stage, in_bucket, in_directory, in_ssh, on_facebook, on_web, on_youtube
from tests.support.targets.wire import Wire
from tests.support.targets.youtube_server import YouTubeServer
from workers.adapters.targets import facebook_upload, s3, sftp, youtube_upload

_RATE: Final = 24e6
_OPEN: Final = 0o777


@dataclass(frozen=True)
class Place:
    """A target. `part` is the amount of a film that may be sent twice; None if it starts over."""

    target: Target
    stage: Stage
    part: int | None

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def wire(self) -> Wire | None:
        return self.stage.wire

    @property
    def config(self) -> Mapping[str, Any]:
        return self.stage.target()._config  # type: ignore[attr-defined, no-any-return]  # the configuration of the stage's server

    def objects(self) -> dict[str, str]:
        """Return the hashes of all objects at the target. This blocks."""
        return {name: sha256(content).hexdigest() for name, content in self.stage.files().items()}


class SyndicationStage(MediaStage):
    """A stage with destinations. `places` are the targets, by their names."""

    WORKERS: ClassVar[Mapping[str, int]] = {
        "relay": EACH,
        "controller scheduler": EACH,
        "work": EACH,
        "outcomes syndication": EACH,
    }

    def __init__(self, folder: Path, *, kafka: bool, dice: random.Random) -> None:
        super().__init__(folder, kafka=kafka, dice=dice)
        self.published = folder / "published"  # type: ignore[assignment, method-assign]  # what is published is elsewhere here
        self.youtube = YouTubeServer()
        self.facebook = FacebookServer(chunk=facebook_upload.PART)
        self.places: dict[str, Place] = {}
        self._servers_of = AsyncExitStack()
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)

    async def _open(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it has a line for each request
        await asyncio.to_thread(self._moto.start)
        host, port = self._moto.get_host_and_port()
        enter: Callable[[Any], Any] = self._servers_of.enter_async_context
        opened = {
            Target.S3: (await enter(in_bucket(f"http://{host}:{port}")), s3.PART),
            Target.SFTP: (await enter(in_ssh(self._folder / "ssh")), sftp.PART),
            Target.HTTP: (await enter(on_web()), None),
            Target.FILESYSTEM: (in_directory(self._folder / "published"), None),
            Target.YOUTUBE: (await enter(on_youtube(self.youtube)), youtube_upload.PART),
            Target.FACEBOOK: (await enter(on_facebook(self.facebook)), facebook_upload.PART),
        }
        (self._folder / "published" / "out").chmod(_OPEN)
        self._folder.chmod(0o755)
        self.places = {target.name: Place(target, stage, part) for target, (stage, part) in opened.items()}
        for place in self.places.values():
            if place.wire is not None:
                place.wire.rate = _RATE
        await super()._open()

    async def _close(self) -> None:
        await super()._close()
        for place in self.places.values():
            for target in place.stage.opened:
                await target.close()
        await self._servers_of.aclose()
        await asyncio.to_thread(self._moto.stop)

    def _process(self, role: str, number: int, more: dict[str, str]) -> Supervised:
        youtube, facebook = (f"http://127.0.0.1:{self._port(name)}" for name in ("YOUTUBE", "FACEBOOK"))
        ours = {
            "MEDIALEDGER_FILESYSTEM_ROOT": str(self._folder / "published"),
            "MEDIALEDGER_YOUTUBE_URL": youtube,
            "MEDIALEDGER_YOUTUBE_TOKEN_URL": f"{youtube}/token",
            "MEDIALEDGER_FACEBOOK_URL": f"{facebook}/graph/v1.0",
            "MEDIALEDGER_FACEBOOK_VIDEO_URL": f"{facebook}/video/v1.0",
        }
        return super()._process(role, number, more | ours)

    def _port(self, name: str) -> int:
        wire = self.places[name].wire
        assert wire is not None
        return wire.port
