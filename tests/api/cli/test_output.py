"""The output formats of commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime, timedelta

import pytest

from api.cli.output import Kind, TableColumn, duration, field, json_text, print_list, relative
from api.cli.shell import confirm
from api.wiring.startup import StartError

HOSTILE = "a\x1b[2Jb\x9b31m\u202ec\r日程"
ROWS = [
    {"id": 7, "state": "failed", "title": HOSTILE, "at": "2031-01-02T12:00:00.000Z"},
    {"id": 12, "state": "completed", "title": None, "at": None},
]
COLUMNS = (
    TableColumn("id", field("id"), Kind.NUMBER),
    TableColumn("state", field("state"), Kind.STATE),
    TableColumn("title", field("title"), Kind.LONG),
    TableColumn("at", field("at"), Kind.TIME, wide=True),
)
NOW = datetime(2031, 1, 2, 12, tzinfo=UTC)


def test_a_pipe_gets_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(ROWS, COLUMNS, form="table", none="none")
    assert capsys.readouterr().out == (
        "ID  STATE      TITLE\n"
        " 7  failed     a\\x1b[2Jb\\x9b31m\\u202ec\\r日程\n"
        "12  completed  -\n"
    )  # fmt: skip


def test_wide_has_more_columns_and_absolute_times(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(ROWS[:1], COLUMNS[::3], form="wide", none="none")
    assert capsys.readouterr().out == "ID  AT\n 7  2031-01-02T12:00:00.000Z\n"


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_documents_are_whole_and_steer_no_terminal(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_list(ROWS, COLUMNS, form=form, none="none")
    shown = capsys.readouterr().out
    assert (json.loads(shown) if form == "json" else [json.loads(line) for line in shown.splitlines()]) == ROWS
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "日程" in shown


def test_an_empty_list_is_a_message_or_an_empty_json_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_list([], COLUMNS, form="table", none="no rows")
    assert capsys.readouterr() == ("", "no rows\n")
    print_list([], COLUMNS, form="json", none="no rows")
    assert capsys.readouterr() == ("[]\n", "")
    print_list([], COLUMNS, form="ndjson", none="no rows")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_colours_unless_they_are_unwanted(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, redirect_stdout(terminal):
        print_list(ROWS, COLUMNS, form="table", none="none")
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert ("\x1b[31m" in shown) == colour
    assert "\x1b[2J" not in shown
    assert "\x9b" not in shown
    assert "\\x1b[2J" in shown


ID = "1b671a64-40d5-491e-99b0-da01ff1f3341"
JOBS = (
    TableColumn("id", field("id"), Kind.NUMBER),
    TableColumn("state", field("state"), Kind.STATE),
    TableColumn("workflow", field("workflow")),
    TableColumn("content", field("content")),
    TableColumn("client", field("client")),
    TableColumn("age", field("at"), Kind.TIME),
    TableColumn("reason", field("reason"), Kind.LONG),
)
JOB = {
    "id": 128,
    "state": "completed",
    "workflow": "http_fetch_verify",
    "content": ID,
    "client": "playout",
    "at": "2031-01-02T12:00:00.000Z",
    "reason": "the task fetch failed: " + "no such host, " * 20,
}


def on_terminal(columns: Sequence[TableColumn], *, width: int, form: str = "table", monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a list on a terminal of this width."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, redirect_stdout(terminal):
        print_list([JOB], columns, form=form, none="none")
    shown = b""
    with suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120, 140, 200])
def test_a_terminal_cuts_no_value_and_names_hidden_columns(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(JOBS, width=width, monkeypatch=monkeypatch)
    shown = lines[0].split()
    hidden = lines.pop().removeprefix("hidden: ").partition(";")[0].upper().split(", ") if "hidden: " in lines[-1] else []
    assert sorted([*shown, *hidden]) == sorted(column.name.upper() for column in JOBS)
    assert shown[0] == "ID"
    values = {"ID": "128", "STATE": "completed", "WORKFLOW": "http_fetch_verify", "CONTENT": ID, "CLIENT": "playout"}
    assert set(lines[1].split()) >= {values[name] for name in shown if name in values}
    assert max(map(len, lines)) <= width
    if "REASON" in shown:
        assert "".join("".join(lines[1:]).split()).count("nosuchhost,") == 20
    if 40 <= width <= 80:
        assert {"STATE", "REASON"} <= set(shown)
        assert "AGE" in hidden


def test_wide_hides_nothing_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(JOBS, width=40, form="wide", monkeypatch=monkeypatch)
    assert len(lines) == 2
    assert lines[0].split() == [column.name.upper() for column in JOBS]
    assert lines[1].endswith(str(JOB["reason"]).rstrip())


def test_ids_are_shown_whatever_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (TableColumn("url", field("reason"), Kind.LONG), TableColumn("id", field("content"), is_id=True))
    lines = on_terminal(columns, width=20, monkeypatch=monkeypatch)
    assert lines == ["ID", ID, "hidden: url; -o wide shows all columns"]


def test_hostile_keys_are_escaped_too() -> None:
    assert json_text({HOSTILE: 1}).isprintable() is False  # the line breaks
    assert all(character.isprintable() or character == "\n" for character in json_text({HOSTILE: 1}))


@pytest.mark.parametrize(
    ("past", "shown"),
    [
        (timedelta(0), "now"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=5, seconds=59), "5 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=3), "3 d ago"),
        (timedelta(days=90), "2030-10-04"),
        (timedelta(seconds=-90), "in 1 min"),
    ],
)
def test_times_are_relative(past: timedelta, shown: str) -> None:
    assert relative(NOW - past, now=NOW) == shown


def test_a_length_has_one_unit() -> None:
    assert list(map(duration, (0.44, 1.0, 61.0, 7300.0, 200_000.0))) == ["0.4 s", "1 s", "1 min", "2 h", "2 d"]


def test_where_nobody_can_be_asked_a_command_needs_yes() -> None:
    with pytest.raises(StartError, match=r"nothing was done: give --yes to break job 1"):
        confirm(False, "break job 1")
    confirm(True, "break job 1")


@pytest.mark.parametrize("words", [["--version"], ["settings"], ["completion", "bash"]])
def test_a_disk_that_takes_no_output_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", "import sys; from api.cli.main import main; sys.exit(main())", *words]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "medialedger: the output could not be written: No space left on device\n")
