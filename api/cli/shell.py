"""The person at the shell: environment variables, the name in the audit, the consent to a final action, and texts with secrets.
The actor of an action at a shell is `shell:<user>`. No client can have this name, since a client's name has no colon."""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from api.cli.terminal_text import printable
from api.wiring.startup import StartError

if TYPE_CHECKING:
    from domain.kernel.ports import Invocation

URL: Final = "MEDIALEDGER_URL"
KEY: Final = "MEDIALEDGER_API_KEY"
CONTEXT: Final = "MEDIALEDGER_CONTEXT"


def environment() -> Mapping[str, str]:
    return os.environ  # noqa: TID251 - not a setting


def variable(name: str) -> str | None:
    """Return the value of a variable; None if it is unset or empty."""
    return environment().get(name, "").strip() or None


def home() -> Path:
    """Return the home as the settings define it, without their imports."""
    return Path(variable("MEDIALEDGER_HOME") or ".medialedger").expanduser().absolute()


_LONGEST_NAME: Final = 64


def invocation(*, correlation_id: str | None = None) -> Invocation:
    """Return an invocation on behalf of the user of the shell."""
    from domain.kernel.ports import Invocation

    return Invocation.by(user_of_shell(), correlation_id=correlation_id)


def user_of_shell() -> str:
    return actor(os.geteuid(), environment())


def actor(user_id: int, environment: Mapping[str, str]) -> str:
    """Return the actor of a user; for root, the user who called sudo. SUDO_USER is ignored for any other user, who could forge it;
    root could do anything in any case."""
    name = environment.get("SUDO_USER", "") if user_id == 0 else ""
    return f"shell:{re.sub(r'[^A-Za-z0-9._@-]', '_', name or _name(user_id))[:_LONGEST_NAME]}"


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:  # in a container, a user may have a number only
        return str(user_id)


def confirm(yes: bool, what: str) -> None:
    """Ask for confirmation on the terminal, unless `--yes` is given. Raise `StartError` if the answer is no or there is no
    terminal."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StartError(f"nothing was done: give --yes to {printable(what)}, since there is no terminal to ask on")
    print(f"{printable(what)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise StartError("nothing was done")


STANDARD_INPUT: Final = "-"
_LONGEST_TEXT: Final = 1024 * 1024


def secret_text(file: str) -> str:
    """Return the text. Raise `StartError` if it cannot be read."""
    from workers.adapters.keyfiles import KeyFileError, read_secret_file

    try:
        text = _standard_input() if file == STANDARD_INPUT else read_secret_file(Path(file))
    except KeyFileError as error:
        raise StartError(str(error)) from None
    if len(text) > _LONGEST_TEXT:
        raise StartError(f"the text has more than {_LONGEST_TEXT} characters")
    return text


def _standard_input() -> str:
    try:
        return sys.stdin.read(_LONGEST_TEXT + 1)
    except UnicodeDecodeError:
        raise StartError("standard input cannot be read: it is not text") from None
