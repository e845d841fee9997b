"""Completion of commands, in real shells."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from api.cli.completion import SCRIPTS, words
from api.cli.main import COMMANDS

ASKED = (
    ("medialedger jo", {"jobs"}),
    ("medialedger jobs re", {"rerun", "resume"}),
    ("medialedger jobs list --st", {"--state"}),
    ("medialedger jobs list --state queued --fo", {"--format"}),
    ("medialedger jobs show 17 --lo", {"--local"}),
    ("medialedger completion z", {"zsh"}),
    ("medialedger publish --fo", {"--follow"}),
)


def test_every_command_and_action_is_known() -> None:
    found = words()
    assert set(found[""]) == set(COMMANDS)
    assert {"list", "show", "break"} <= set(found["jobs"])
    assert "--parent" in found["migrate"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell](words()))
    assert all(len(line) < 8192 for line in script.read_text().splitlines())
    if program is not None:
        done = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("line", "expected"), ASKED)
def test_bash_completes(line: str, expected: set[str]) -> None:
    typed = shlex.split(line)
    call = f"COMP_WORDS=({shlex.join(typed)}); COMP_CWORD={len(typed) - 1}; _medialedger; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{SCRIPTS['bash'](words())}\n{call}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (set(done.stdout.split()), done.stderr) == (expected, "")
