"""docs/how-to/caption-a-film.md does what it says: its commands are run one after the other against a real product with a film."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.product import Product, client, migrated_home, products
from tests.support.programs import program
from tests.support.waiting import ROOT, until
from tests.workers.media.captions.test_tracks import MANIFEST, MASTER

_PAGE = ROOT / "docs" / "how-to" / "caption-a-film.md"
_BLOCK = re.compile(r"^```bash run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with products() as started:
        product = started.start(migrated_home(tmp_path_factory.mktemp("captions") / "home"))
        product.until_ready()
        yield product


def packaged(product: Product, http: httpx.Client) -> Path:
    """The folder of a new Event with the package of a film."""
    event = str(http.post("/api/event/", json={"title": "News"}).json()["id"])
    folder = product.home / "media" / event
    (folder / "clear").mkdir(parents=True)
    (folder / f"{event}.mp4").write_bytes(b"film")
    (folder / "metadata.json").write_text('{"duration": 4.0}')
    (folder / "clear" / "master.m3u8").write_text(MASTER)
    (folder / "clear" / "manifest.mpd").write_bytes(MANIFEST)
    if os.geteuid() == 0:
        owner = product.home / "media"
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, owner.stat().st_uid, owner.stat().st_gid)
            path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def test_a_film_gets_a_text_another_one_and_none(product: Product, tmp_path: Path) -> None:
    program("curl")
    key = (product.home / "admin-api-key").read_text().strip()
    add, see, correct, remove = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    first = add.partition("\n\n")[0]

    with client(product, key) as http:
        folder = packaged(product, http)
        ours = {"MEDIALEDGER_URL": product.address, "MEDIALEDGER_HOME": str(product.home), "FILM": folder.name}

        def run(block: str) -> str:
            command = block if block == add else f"{first}\n{block}"
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=tmp_path,
                env={**os.environ, **ours},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        text = folder / "captions" / "deutsch.de.captions.vtt"
        assert '"typeString":"CAPTION"' in run(add)
        until(lambda: text.is_file() and "zwanzig" in text.read_text())
        until(lambda: 'NAME="Deutsch"' in (folder / "clear" / "master.m3u8").read_text())
        until(lambda: "deutsch.de.captions.vtt" in (folder / "clear" / "manifest.mpd").read_text())
        until(lambda: '"stateString":"COMPLETED"' in run(see))
        run(correct)
        until(lambda: "acht Uhr" in text.read_text())
        assert '{"deletedCount":1}' in run(remove)
        until(lambda: not text.exists())
        assert (folder / "clear" / "master.m3u8").read_text() == MASTER
