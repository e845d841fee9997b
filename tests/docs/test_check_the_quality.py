"""docs/how-to/check-the-quality-of-a-film.md does what it says: its commands are run one after the other against a real product."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import Product, client, migrated_home, products
from tests.support.programs import program
from tests.support.waiting import ROOT, until
from tests.workers.job.test_quality import faulty
from workers.media.quality import Profile

_PAGE = ROOT / "docs" / "how-to" / "check-the-quality-of-a-film.md"
_BLOCK = re.compile(r"^```bash run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JSON = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with products() as started:
        product = started.start(migrated_home(tmp_path_factory.mktemp("quality") / "home"))
        product.until_ready()
        yield product


def test_the_profile_of_the_page_is_one() -> None:
    [profile] = _JSON.findall(_PAGE.read_text(encoding="utf-8"))
    assert Profile.model_validate_json(profile).keep_private


def test_a_film_that_fails_is_marked_and_stays_private(product: Product, tmp_path: Path) -> None:
    program("curl")
    key = (product.home / "admin-api-key").read_text().strip()
    check, see, ingest = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    first = check.partition("\n\n")[0]
    media = product.home / "media"

    with client(product, key) as http:
        event = str(http.post("/api/event/", json={"title": "Match"}).json()["id"])
        ours = {"MEDIALEDGER_URL": product.address, "MEDIALEDGER_HOME": str(product.home), "FILM": event}

        def run(block: str) -> str:
            command = block if block == check else f"{first}\n{block}"
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=tmp_path,
                env={**os.environ, **ours},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        def state() -> str:
            return str(http.get(f"/api/event/{event}").json()["stateString"])

        (media / "in").mkdir()
        faulty(media / "in" / "match.mp4")
        (media / event).mkdir()
        shutil.copy(media / "in" / "match.mp4", media / event / f"{event}.mp4")
        for path in ((media / "in"), *(media / "in").iterdir(), media / event, *(media / event).iterdir()):
            shutil.chown(path, media.stat().st_uid, media.stat().st_gid)

        run(check)
        until(lambda: http.get(f"/api/vod/{event}/quality").status_code == 200)
        result = json.loads(run(see))
        assert (result["verdict"], result["keepPrivate"]) == ("fail", False)
        until(lambda: "quality.json" in http.get("/api/asset/", params={"eventId": event}).text)

        run(ingest)
        until(lambda: state() == "VOD_PRIVATE")
        assert json.loads(run(see))["keepPrivate"]
        until(lambda: "The film does not become public" in http.get(f"/api/log/event/{event}").text)
