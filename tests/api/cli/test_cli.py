from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from api.cli.command import Command, Group
from api.cli.main import COMMANDS, command_line, main

TOP = click.Context(command_line, info_name="medialedger")


def command_of(name: str) -> Command | Group:
    command = command_line.get_command(TOP, name)
    assert isinstance(command, Command | Group)
    return command


def parsed(words: list[str]) -> click.Context:
    """Return the context of the innermost command of a command line, which is parsed and not run."""
    context = command_line.make_context("medialedger", words)
    name, command, rest = command_line.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    context = command.make_context(name, rest, parent=context)
    if isinstance(command, click.Group):
        name, action, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert action is not None
        context = action.make_context(name, rest, parent=context)
    return context


def test_every_command_is_named_as_it_is_listed() -> None:
    for name in COMMANDS:
        assert command_of(name).name == name
        assert command_of(name).help


def leaves() -> Iterator[tuple[str, click.Command]]:
    for name in COMMANDS:
        command = command_of(name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {action}", leaf) for action, leaf in command.commands.items())
        else:
            yield name, command


def test_every_argument_is_explained() -> None:
    for spelled, leaf in leaves():
        assert leaf.help, spelled
        for parameter in leaf.params:
            assert getattr(parameter, "help", None) or getattr(parameter, "hidden", False), (spelled, parameter.name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_that_parse_and_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "exit codes:" in shown
    assert max(map(len, shown.splitlines())) <= 100
    for example in command_of(name).examples.splitlines():
        assert example.strip() in shown
        _, _, rest = example.partition("medialedger ")
        while "medialedger " in rest:  # the word also ends a path or an address
            _, _, rest = rest.partition("medialedger ")
        assert parsed(shlex.split(rest)).command_path.split()[1] == name


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "client",
        "client add a",
        "client add a --role king",
        "client rotate a --expire-others-after -1",
        "media ingest f",
        "audit",
        "audit replay --aggregate event --id a --all --local",
        "audit verify --since 1 --since-seal",
        "jobs list --local --url http://a",
        "log export",
    ],
)
def test_a_wrong_command_line_ends_with_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert "Usage: medialedger" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "word"), [("job list", "jobs"), ("jobs lits", "list"), ("client ad", "add")])
def test_a_mistyped_word_names_the_closest_one(line: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert f"Did you mean '{word}'?" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: medialedger")
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_a_title_has_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["media", "ingest", "f.mkv", "--title", "  "]) == 2
    assert capsys.readouterr().err.endswith("Invalid value for '--title': it has no visible character\n")


def test_settings_are_shown_without_secrets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MEDIALEDGER_ADMIN_API_KEY", "a-very-secret-admin-key")
    monkeypatch.setenv("MEDIALEDGER_PROT", "1")
    assert main(["settings"]) == 0
    shown = capsys.readouterr()
    assert "a-very-secret" not in shown.out
    assert "MEDIALEDGER_ADMIN_API_KEY" in shown.out
    assert shown.err == "medialedger: warning: the setting MEDIALEDGER_PROT does not exist\n"


def test_settings_of_the_command_line_override_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_PORT", "9001")
    assert main(["settings", "--port", "9002", "-o", "ndjson"]) == 0
    assert '"value": "9002"' in capsys.readouterr().out


def test_a_bad_setting_is_one_line_and_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MEDIALEDGER_PORT", "http")
    assert main(["settings"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "medialedger: MEDIALEDGER_PORT must be a whole number from 0 to 65535, not 'http'\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("medialedger ")
