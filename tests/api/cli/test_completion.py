"""Completion of commands, in real shells."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from api.cli.main import COMMANDS, main
from tests.support.programs import program
from tests.support.waiting import ROOT

ASKED = (
    ("medialedger jo", {"jobs"}),
    ("medialedger jobs re", {"rerun", "resume"}),
    ("medialedger jobs list --st", {"--state"}),
    ("medialedger jobs list --failed --state qu", {"queued"}),
    ("medialedger jobs list --state queued --fo", {"--format"}),
    ("medialedger jobs show 17 --lo", {"--local"}),
    ("medialedger completion z", {"zsh"}),
    ("medialedger publish --fo", {"--follow"}),
)
OF_ZSH = 4
"""The number of cases for zsh, each in a separate shell: a command, an action, an option and a value."""
_ZSH_TYPES = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source ${(q)3} ${(q)1}"
while zpty -r shell line; do [[ $line == *ready* ]] && break; done
zpty -w -n shell "$2"$'\t'
integer begun=0
while zpty -r shell; do :; done | while IFS= read -r line; do
  if [[ $line == *END$'\r' ]]; then (( begun++ )) && exit 0 || continue; fi
  (( begun )) && print -r -- ${line%$'\r'}
done
"""
_ZSH_TELLS = r"""
PROMPT=
autoload -Uz compinit
compinit -u -D
source $1
bindkey '^I' complete-word
mark() { print -r -- END }
compprefuncs=(mark)
comppostfuncs=(mark exit)
compadd() {
  local -a hits
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- $hits
  fi
  builtin compadd "$@"
}
print rea''dy
"""
"""The completion prints its offers between two marks."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """An environment with the program on its path, which the scripts call."""
    folder = tmp_path_factory.mktemp("path")
    command = folder / "medialedger"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m api.cli.main "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    def written(shell: str) -> Path:
        assert main(["completion", shell]) == 0
        file = tmp_path / shell
        file.write_text(capsys.readouterr().out)
        return file

    return written


def output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(shell: str, script: Callable[[str], Path], environment: Mapping[str, str]) -> None:
    output([program(shell), "-n", str(script(shell))], environment)


def completed_by_bash(line: str, script: Path, environment: Mapping[str, str]) -> set[str]:
    typed = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    words = f"COMP_WORDS=({shlex.join(typed)}); COMP_CWORD={len(typed) - 1}"
    call = f"{words}; _medialedger_completion medialedger; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return set(output(["bash", "--norc", "-c", f"{script.read_text()}\n{call}"], environment).split())


def test_every_command_is_offered(script: Callable[[str], Path], environment: Mapping[str, str]) -> None:
    assert completed_by_bash("medialedger ", script("bash"), environment) == set(COMMANDS)


@pytest.mark.parametrize(("line", "expected"), ASKED)
def test_bash_completes(line: str, expected: set[str], script: Callable[[str], Path], environment: Mapping[str, str]) -> None:
    assert completed_by_bash(line, script("bash"), environment) == expected


def test_fish_completes(script: Callable[[str], Path], environment: Mapping[str, str]) -> None:
    asked = "".join(f"echo '? {line}'; complete -C {shlex.quote(line)}\n" for line, _ in ASKED)
    command = [program("fish"), "--no-config", "-c", f"source {script('fish')}\n{asked}"]
    blocks = output(command, environment).split("? ")[1:]
    result = {
        each.splitlines()[0]: {line_of_block.partition("\t")[0] for line_of_block in each.splitlines()[1:]} for each in blocks
    }
    assert result == dict(ASKED)


@pytest.mark.parametrize(("line", "expected"), ASKED[:OF_ZSH])
def test_zsh_completes(
    line: str, expected: set[str], script: Callable[[str], Path], tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """The keys are typed at a terminal, because the completion of zsh works only there."""
    (tmp_path / "outer").write_text(_ZSH_TYPES)
    (tmp_path / "inner").write_text(_ZSH_TELLS)
    command = [program("zsh"), "-f", str(tmp_path / "outer"), str(script("zsh")), line, str(tmp_path / "inner")]
    assert set(output(command, environment).split()) == expected
