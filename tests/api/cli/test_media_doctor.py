"""`medialedger doctor --media` tries the programs for media, and its verdict decides which are used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from api.cli.local.doctor import try_programs
from api.cli.local.media_trials import TRIALS
from tests.support.waiting import ROOT
from workers.adapters.ffmpeg import find
from workers.adapters.program_verdicts import Verdicts

_OPTION = re.compile(r'"-([a-z_]+)(?::[^" ]*)?"')
_USERS = ("workers/media", "workers/job/workflows", "workers/adapters/encoders", "workers/adapters/pushes")


def bundled(name: str) -> Path:
    program = find(name, path="/nowhere")
    assert program is not None
    return program


def test_the_programs_of_the_product_pass_all_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/bin" if find("ffmpeg", path="/bin:/usr/bin") == bundled("ffmpeg") else "/nowhere")
    findings = {each.name: each for each in try_programs(tmp_path)}
    assert [each for each in findings.values() if each.attention] == []
    assert findings["a source that changes"].text.startswith("passed")
    assert findings["verdict"].text == "the programs that came with the product pass"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every account can reach: as root, the product runs programs as nobody to read their release."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_program_that_passes_the_trials_is_chosen(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tested program is that of the product behind a script that reports another release, and that later cannot make GIFs."""
    trials = [trial for trial in TRIALS if trial.name in ("components of the build", "stills, sprites and GIFs")]
    home = tmp_path / "home"
    real = bundled("ffmpeg")
    version_script = '[ "$*" = -version ] && { echo "libavutil      61.  1.100"; exit; }'
    (place / "ffmpeg").write_text(f'#!/bin/sh\n{version_script}\nexec {real} "$@"\n')
    (place / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/bin")
    assert find("ffmpeg", verdicts=Verdicts(home)) == real
    findings = {each.name: each for each in try_programs(home, trials=trials)}
    assert [each for each in findings.values() if each.attention] == []
    assert find("ffmpeg", verdicts=Verdicts(home)) == place / "ffmpeg"
    refuses = 'case "$*" in *paletteuse*) echo "No such filter: paletteuse" >&2; exit 8;; esac'
    (place / "ffmpeg").write_text(f'#!/bin/sh\n{version_script}\n{refuses}\nexec {real} "$@"\n')
    findings = {each.name: each for each in try_programs(home, trials=trials)}
    assert [each.name for each in findings.values() if each.attention] == ["stills, sprites and GIFs", "verdict"]
    assert findings["stills, sprites and GIFs"].attention == "No such filter: paletteuse"
    assert find("ffmpeg", verdicts=Verdicts(home)) == real


def test_every_option_that_the_product_uses_is_tried() -> None:
    used = {option for folder in _USERS for path in (ROOT / folder).rglob("*.py") for option in _OPTION.findall(path.read_text())}
    trials = (
        "api/cli/local/media_trials.py",
        "workers/media/filters.py",
        "workers/media/outputs.py",
        "workers/adapters/encoders/encode_command.py",
    )
    tried_ones = {option for path in trials for option in _OPTION.findall((ROOT / path).read_text())}
    assert sorted(used - tried_ones) == []
