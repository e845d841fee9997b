"""Completion of commands, in real shells."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from api.cli.completion import SCRIPTS, words
from api.cli.main import COMMANDS
from tests.programs import program

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


def test_every_command_and_action_is_known() -> None:
    table = words()
    assert set(table[""]) == set(COMMANDS)
    assert {"list", "show", "break"} <= set(table["jobs"])
    assert "--parent" in table["migrate"]
    assert set(table["jobs list -o"]) == {"table", "wide", "json", "ndjson"}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder, table = tmp_path_factory.mktemp("completion"), words()

    def written(shell: str) -> Path:
        file = folder / shell
        file.write_text(SCRIPTS[shell](table))
        return file

    return written


def output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(shell: str, script: Callable[[str], Path]) -> None:
    assert all(len(line) < 8192 for line in script(shell).read_text().splitlines())
    output([program(shell), "-n", str(script(shell))])


@pytest.mark.parametrize(("line", "expected"), ASKED)
def test_bash_completes(line: str, expected: set[str], script: Callable[[str], Path]) -> None:
    typed = shlex.split(line)
    call = f"COMP_WORDS=({shlex.join(typed)}); COMP_CWORD={len(typed) - 1}; _medialedger; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    assert set(output(["bash", "--norc", "-c", f"{script('bash').read_text()}\n{call}"]).split()) == expected


def test_fish_completes(script: Callable[[str], Path]) -> None:
    asked = "".join(f"echo '? {line}'; complete -C {shlex.quote(line)}\n" for line, _ in ASKED)
    blocks = output([program("fish"), "--no-config", "-c", f"source {script('fish')}\n{asked}"]).split("? ")[1:]
    result = {
        each.splitlines()[0]: {line_of_block.partition("\t")[0] for line_of_block in each.splitlines()[1:]} for each in blocks
    }
    assert result == dict(ASKED)


@pytest.mark.parametrize(("line", "expected"), ASKED[:OF_ZSH])
def test_zsh_completes(line: str, expected: set[str], script: Callable[[str], Path], tmp_path: Path) -> None:
    """The keys are typed at a terminal, because the completion of zsh works only there."""
    (tmp_path / "outer").write_text(_ZSH_TYPES)
    (tmp_path / "inner").write_text(_ZSH_TELLS)
    command = [program("zsh"), "-f", str(tmp_path / "outer"), str(script("zsh")), line, str(tmp_path / "inner")]
    assert set(output(command).split()) == expected
