from __future__ import annotations

import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from api.cli import arguments
from api.cli.main import COMMANDS, leaves, main, parser


def test_every_command_has_a_module_of_its_name() -> None:
    directory = Path(arguments.__file__).parent
    for name, command in COMMANDS.items():
        module = f"{name.replace('-', '_')}.py"
        everywhere = {action for action, _ in leaves(_parser_of(name))}
        assert everywhere >= {*command.by_rest, *command.remote}
        if command.by_rest or command.remote:
            assert (directory / "by_rest" / module).is_file()
        if everywhere - set(command.by_rest):
            assert any((directory / place).is_file() for place in (module, f"run/{module}", f"{name}/__init__.py"))


def _parser_of(name: str) -> ArgumentParser:
    return dict(leaves(parser()))[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_that_parse_and_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parser().parse_args([name, "--help"])
    assert exit_info.value.code == 0
    shown = capsys.readouterr().out
    assert "exit codes:" in shown
    for example in COMMANDS[name].examples.splitlines():
        assert example.strip() in shown
        _, _, rest = example.partition("medialedger ")
        while "medialedger " in rest:  # the word also ends a path or an address
            _, _, rest = rest.partition("medialedger ")
        assert parser().parse_args(shlex.split(rest)).command == name


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("projections list", {"action": "list"}),
        ("load-sample", {"events": 10_000, "around": None}),
        ("up", {"home": None, "host": None, "port": None, "open": False, "demo": False, "yes": False}),
        ("projections rebuild event", {"action": "rebuild", "name": "event"}),
        ("consumers list", {"action": "list"}),
        ("consumers parked", {"action": "parked", "name": None}),
        ("consumers replay a --stream b:c", {"action": "replay", "name": "a", "stream": "b:c"}),
        ("jobs list", {"action": "list", "client": None, "state": None, "failed": False, "search": None, "items": 10}),
        ("jobs logs 1 --follow", {"action": "logs", "id": 1, "follow": True}),
        ("jobs watch 1 2 --client a", {"action": "watch", "ids": [1, 2], "client": "a"}),
        ("jobs watch", {"action": "watch", "ids": [], "client": None}),
        ("client add a --role keys --role admin", {"action": "add", "name": "a", "roles": ["keys", "admin"], "trust_actor": False}),
        ("client rotate a", {"action": "rotate", "name": "a", "expire_others_after": None}),
        ("client revoke a k1", {"action": "revoke", "name": "a", "key_id": "k1"}),
        ("client revoke a", {"action": "revoke", "name": "a", "key_id": None}),
        (
            "client drm a --no-content-id-in-pssh --widevine-provider x",
            {
                "action": "drm",
                "name": "a",
                "playready_la_url": None,
                "widevine_provider": "x",
                "content_id_in_pssh": False,
                "fairplay_uri_template": None,
                "fairplay_key_format_versions": None,
                "fairplay_direct_plain_value": None,
                "fairplay_hex_form": None,
            },
        ),
        ("keys import f.xml --client a", {"action": "import", "file": Path("f.xml"), "client": "a"}),
        ("keys rotate --new-key-file f", {"action": "rotate", "new_key_file": Path("f")}),
        ("keys dry-run f.xml", {"action": "dry-run", "file": Path("f.xml")}),
        ("audit show room 1", {"action": "show", "aggregate": "room", "id": "1", "limit": 50}),
        ("audit verify", {"action": "verify", "since_seal": False, "since": None, "file": None, "chain_hash": None}),
        ("audit verify --file f", {"action": "verify", "since_seal": False, "since": None, "file": Path("f"), "chain_hash": None}),
        ("log export 8 --output f", {"action": "export", "position": 8, "output": Path("f")}),
    ],
)
def test_arguments(line: str, expected: dict[str, object]) -> None:
    args = vars(parser().parse_args(line.split()))
    assert args.items() >= (expected | {"command": line.split()[0]}).items()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "client add a",
        "client add a --role king",
        "client rotate a --expire-others-after -1",
        "media ingest f",
        "audit",
        "log export",
    ],
)
def test_a_wrong_command_line_ends_with_2(line: str) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parser().parse_args(line.split())
    assert exit_info.value.code == 2


@pytest.mark.parametrize(("line", "word"), [("job list", "jobs"), ("jobs lits", "list"), ("client ad", "add")])
def test_a_mistyped_word_names_the_closest_one(line: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parser().parse_args(line.split())
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f"did you mean {word}?")


def test_a_word_that_is_close_to_none_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["xyzzy"])
    assert "choose from" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: medialedger")


def test_a_title_has_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parser().parse_args(["media", "ingest", "f.mkv", "--title", "  "])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.endswith("error: argument --title: it has no visible character\n")


def test_settings_are_shown_without_secrets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MEDIALEDGER_ADMIN_API_KEY", "a-very-secret-admin-key")
    monkeypatch.setenv("MEDIALEDGER_PROT", "1")
    assert main(["settings"]) == 0
    shown = capsys.readouterr()
    assert "a-very-secret" not in shown.out
    assert "MEDIALEDGER_ADMIN_API_KEY" in shown.out
    assert shown.err == "medialedger: warning: the setting MEDIALEDGER_PROT does not exist\n"


def test_a_bad_setting_is_one_line_and_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MEDIALEDGER_PORT", "http")
    assert main(["settings"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "medialedger: MEDIALEDGER_PORT must be a whole number from 0 to 65535, not 'http'\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out.startswith("medialedger ")
