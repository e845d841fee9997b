"""docs/how-to/add-a-workflow.md does what it says: its package is built and installed, and a job is run with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from inspect import getsource
from pathlib import Path

import httpx
import pytest

from projections.job.queue import JobNumberSequence
from tests.architecture.sources import ROOT
from tests.support.engine import Engine, process
from workers.job import registry
from workers.job.context import StepContext

_PAGE = (ROOT / "docs" / "how-to" / "add-a-workflow.md").read_text(encoding="utf-8")
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILES = dict(_FILE.findall(_PAGE))
_REQUEST = re.compile(r"-d \\\n +'(.*)'$", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package like `pip install`, but into this folder instead of the environment that all tests share."""
    folder = tmp_path_factory.mktemp("workflow")
    project, place = folder / "media-checksums", folder / "site"
    project.mkdir()
    for name, text in _FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(place), str(project)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return place


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    registry.installed.cache_clear()
    yield
    registry.installed.cache_clear()


@pytest.mark.usefixtures("installed")
async def test_the_workflow_of_the_page_runs(
    http: httpx.AsyncClient, database_url: str, migrated: tuple[str, str | None], tmp_path: Path
) -> None:
    media = tmp_path / "media"
    (media / "match-17").mkdir(parents=True)
    (media / "match-17" / "match.mp4").write_bytes(b"a match")
    [request] = map(json.loads, _REQUEST.findall(_PAGE))
    async with process(database_url, migrated[1], media_root=media) as inner:
        answer = await http.post("/engine/job", json=request, headers={"client": "admin"})
        assert (answer.status_code, answer.json()["result"]) == (200, "accepted"), answer.text
        job = await Engine(inner, JobNumberSequence(inner.database)).ended(answer.json()["id"])
    assert (job.failed, job.reason) == (False, "")
    digits = sha256(b"a match").hexdigest()
    assert (media / "match-17" / "SHA256SUMS").read_text() == f"{digits}  match.mp4\n"
    assert job.tasks[2].result is not None
    assert job.tasks[2].result.files == ("match-17/SHA256SUMS",)


@pytest.mark.usefixtures("installed")
async def test_the_refusal_of_the_page(http: httpx.AsyncClient) -> None:
    [request] = map(json.loads, _REQUEST.findall(_PAGE))
    request["parameters"]["files"] = [17, "match.mp4"]
    answer = await http.post("/engine/job", json=request, headers={"client": "admin"})
    assert (answer.status_code, answer.json()) == (400, json.loads(_FILES["refused.json"]))


def test_every_member_of_the_context_on_the_page_is_there() -> None:
    table = _PAGE.partition("A step gets a `StepContext`:")[2].partition("\n\nThe result goes")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    assert names[:3] == ["parameters", "job", "task"]
    defined = {*dir(StepContext), *StepContext.__dataclass_fields__, *re.findall(r"self\.(\w+)(?:: .*)? =", getsource(StepContext))}
    assert [name for name in names if name not in defined] == []
