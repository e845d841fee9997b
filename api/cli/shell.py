"""The actor of what is done in a shell: `shell:<user>`. No client is called so, since a client's name has no colon."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from api.cli.environment import environment

if TYPE_CHECKING:
    from domain.kernel.ports import Invocation  # imports the domain: commands that call the API do not need that

_LONGEST: Final = 64


def invocation(*, correlation_id: str | None = None) -> Invocation:
    """On behalf of the user of the shell."""
    from domain.kernel.ports import Invocation

    return Invocation.by(user_of_shell(), correlation_id=correlation_id)


def user_of_shell() -> str:
    return actor(os.geteuid(), environment())


def actor(user_id: int, environment: Mapping[str, str]) -> str:
    """For root, the user who called sudo. For anybody else SUDO_USER is not believed: only root cannot lie with it about more than
    root could do anyway."""
    name = environment.get("SUDO_USER", "") if user_id == 0 else ""
    return f"shell:{re.sub(r'[^A-Za-z0-9._@-]', '_', name or _name(user_id))[:_LONGEST]}"


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:  # in a container, a user may have a number only
        return str(user_id)
