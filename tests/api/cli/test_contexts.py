"""The destination of commands: contexts, and the options and variables that override them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from api.cli.remote.contexts import Context, Contexts, read_contexts, remote_api, write_contexts
from api.wiring.startup import StartError

STUDIO = Context("https://studio.example", "studio-key")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of contexts of a person who has set none of our variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("MEDIALEDGER_URL", "MEDIALEDGER_API_KEY", "MEDIALEDGER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "medialedger" / "contexts.json"


def label(**options: Any) -> str | None:
    api = remote_api(**options)
    return None if api is None else api.label


def test_a_context_is_added_used_listed_and_removed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "add", "studio", "https://studio.example", "--no-key", "--no-try"]) == 0
    assert main(["context", "add", "lab", "http://lab:8080/", "--no-key", "--no-try"]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    capsys.readouterr()
    assert main(["context", "use", "lab"]) == 0
    assert main(["context", "list", "--json"]) == 0
    shown = capsys.readouterr().out.partition("\n")[2]
    assert json.loads(shown) == [
        {"name": "studio", "url": "https://studio.example", "hasKey": False, "inUse": False},
        {"name": "lab", "url": "http://lab:8080", "hasKey": False, "inUse": True},
    ]
    assert main(["context", "remove", "lab", "--yes"]) == 0
    assert main(["context", "use", "lab"]) == 1
    assert capsys.readouterr().err == "medialedger: the context lab does not exist; the contexts are: studio\n"
    assert read_contexts(file).used is None


def test_the_key_is_kept_and_never_shown(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_text("studio-key\n")
    assert main(["context", "add", "studio", "https://studio.example", "--key-file", str(key), "--no-try"]) == 0
    for form in ("table", "wide", "json", "ndjson"):
        assert main(["context", "list", "-o", form]) == 0
    assert "studio-key" not in "".join(capsys.readouterr())
    assert "studio-key" not in repr(read_contexts(file))
    assert read_contexts(file).get("studio") == STUDIO


def test_an_address_is_tried_before_it_is_kept(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "add", "studio", "http://127.0.0.1:1", "--no-key"]) == 1
    assert "nothing listens at http://127.0.0.1:1" in capsys.readouterr().err
    assert not file.exists()


def test_the_first_given_destination_wins(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert label() is None
    write_contexts(file, Contexts({"studio": STUDIO, "lab": Context("http://lab")}, "studio"))
    assert label() == "studio (https://studio.example)"
    monkeypatch.setenv("MEDIALEDGER_CONTEXT", "lab")
    assert label() == "lab (http://lab)"
    monkeypatch.setenv("MEDIALEDGER_URL", "http://url")
    assert label() == "http://url"
    assert label(context="studio") == "studio (https://studio.example)"
    assert label(url="http://given") == "http://given"
    assert label(local=True) is None


def test_a_command_on_the_database_does_not_pass_by_a_context(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_contexts(file, Contexts({"studio": STUDIO}, "studio"))
    assert main(["log", "seal"]) == 1
    assert capsys.readouterr().err == (
        "medialedger: `medialedger log seal` works on the database and cannot use studio (https://studio.example): "
        "run it on that machine, or give --local\n"
    )


@pytest.mark.parametrize("text", ["", "[]", '{"contexts": 1}', '{"contexts": {"a": {}}}', "\x00"])
def test_a_damaged_file_is_reported(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(StartError, match="is damaged"):
        read_contexts(file)


def test_a_file_that_others_can_read_is_refused(file: Path) -> None:
    write_contexts(file, Contexts({"studio": STUDIO}))
    file.chmod(0o640)
    with pytest.raises(StartError, match="chmod 600"):
        read_contexts(file)
