"""`medialedger origin --token` and `--revoke`: the use of a token and its lifetime."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.cli.main import main
from domain.channel.point_token import PointToken, Use, read_point_token
from domain.kernel.clock import system_clock
from domain.kernel.encryption import IngestKeys
from workers.origin.recordings import RecordedPoint


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def given(home: Path, capsys: pytest.CaptureFixture[str], *options: str) -> PointToken:
    assert main(["origin", "--token", "news", *options]) == 0
    output = capsys.readouterr()
    key = IngestKeys((home / "master.key").read_bytes()).present
    token = read_point_token(key, output.out.strip(), point="news", now=system_clock().timestamp())
    assert token is not None, output.out
    assert "for news, until 2" in output.err
    return token


def test_a_token_says_for_how_long_and_for_what(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual, short, reading = given(home, capsys), given(home, capsys, "--hours", "1"), given(home, capsys, "--read")
    assert [token.expires - token.issued for token in (usual, short, reading)] == pytest.approx([12 * 3600, 3600, 12 * 3600], abs=2)
    assert [token.use for token in (usual, short, reading)] == [Use.HAND, Use.HAND, Use.READ]
    assert (usual.session, given(home, capsys, "--session", "9").session, reading.writes) == (0, 9, False)


def test_a_token_that_is_given_after_the_others_were_revoked_counts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = given(home, capsys)
    assert main(["origin", "--revoke", "news", "--yes"]) == 0
    assert "revoked" in capsys.readouterr().out
    state = RecordedPoint(home / "origin" / "news").state()
    assert state is not None
    assert before.issued <= state.revoked < given(home, capsys).issued


@pytest.mark.parametrize("option", ["--token", "--revoke"])
def test_an_invalid_name_is_reported(home: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["origin", option, "../news"]) != 0
    assert "1 to 64 letters" in capsys.readouterr().err
    assert not (home / "news").exists()
