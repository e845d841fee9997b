"""Origins as processes, publishing points, and the film that encoders send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import time
from urllib.parse import urljoin

import httpx
import pytest

from domain.channel.point_token import PointToken, Use
from domain.kernel.encryption import ingest_key
from tests.e2e.origin.pushing import make_film
from tests.support.product import Product
from tests.support.sources.numbered_frames import numbers
from tests.support.waiting import until
from workers.job.workflows.capture import dash

KEY = ingest_key(bytes(range(32)))


class Live:
    """A publishing point of an origin."""

    def __init__(self, origin: Product, name: str) -> None:
        self.name = name
        self.url = f"{origin.address}/origin/live/{name}"

    def token(self, session: int) -> str:
        return self._token(Use.HAND, session)

    @property
    def reading(self) -> dict[str, str]:
        """The headers with which the product reads."""
        return {"authorization": f"Bearer {self._token(Use.READ)}"}

    def get(self, path: str) -> httpx.Response:
        return self.fetched(f"{self.url}/{path}")

    def fetched(self, url: str) -> httpx.Response:
        return httpx.get(url, headers=self.reading, timeout=60, verify=False)

    def playable(self, path: str) -> str:
        """Return an address for a player that sends no headers."""
        return f"{self.url}/{path}?token={self._token(Use.READ)}"

    def _token(self, use: Use, session: int = 0) -> str:
        now = int(time())
        return PointToken(use, now, now + 3600, session).text(KEY, point=self.name)

    def put(self, path: str, content: bytes, *, session: int = 1, headers: Mapping[str, str] | None = None) -> httpx.Response:
        sent = {**self.headers(session), **(headers or {})}
        return httpx.put(f"{self.url}/{path}", content=content, headers=sent, timeout=60, verify=False)

    def headers(self, session: int) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token(session)}"}

    def until_state(self, state: str) -> None:
        until(lambda: self.get("status.php").json().get("state") == state)

    def shown(self, playlist: str, stream: str = "0:v:0") -> list[int]:
        """Return the numbers of the frames that a player shows of HLS."""
        return numbers(self.playable(playlist), stream=stream)

    def sessions(self, playlist: str, to: Path) -> list[list[int]]:
        """Return the numbers of the frames of each session of an HLS playlist of MP4.

        The demuxer of ffmpeg does not follow time stamps that start again.
        """
        frames_by_session = []
        for part in self.get(playlist).text.split("#EXT-X-DISCONTINUITY\n"):
            names = [line.removeprefix('#EXT-X-MAP:URI="').rstrip('"') for line in part.splitlines()]
            urls = [urljoin(f"{self.url}/{playlist}", name) for name in names if name.endswith((".mp4", ".m4s"))]
            to.write_bytes(b"".join(self.fetched(url).raise_for_status().content for url in urls))
            frames_by_session.append(numbers(to))
        return frames_by_session

    def listed(self, manifest: str, to: Path) -> list[int]:
        """Return the numbers of the frames of DASH, which the ffmpeg of the tests cannot read: all segments of the highest video,
        joined."""
        url = f"{self.url}/{manifest}"
        listed = dash.parse(self.fetched(url).content, url, now=time()).tracks["main"]
        resources = [entry.init for entry in listed[:1] if entry.init is not None] + [entry.resource for entry in listed]
        to.write_bytes(b"".join(self.fetched(resource.url).raise_for_status().content for resource in resources))
        return numbers(to)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("origin") / "home"
    home.mkdir()
    (home / "master.key").write_bytes(bytes(range(32)))
    (home / "master.key").chmod(0o600)
    return home


@pytest.fixture(scope="module")
def start(home: Path) -> Iterator[Callable[..., Product]]:
    """Yield a function that starts origins that share one directory. `settings` are named without their prefix."""
    started: list[Product] = []

    def start(**settings: str) -> Product:
        product = Product("origin", home, {f"MEDIALEDGER_{name.upper()}": value for name, value in settings.items()})
        started.append(product)
        return product.until_ready()

    yield start
    for product in started:
        product.close()


@pytest.fixture(scope="module")
def origin(start: Callable[..., Product]) -> Product:
    return start()


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4")
