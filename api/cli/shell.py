"""The actor of actions in a shell: `shell:<user>`. No client can have this name, since a client's name has no colon."""

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
    """Return an invocation on behalf of the user of the shell."""
    from domain.kernel.ports import Invocation

    return Invocation.by(user_of_shell(), correlation_id=correlation_id)


def user_of_shell() -> str:
    return actor(os.geteuid(), environment())


def actor(user_id: int, environment: Mapping[str, str]) -> str:
    """Return the actor of a user; for root, the user who called sudo. SUDO_USER is ignored for any other user, who could forge it;
    root could do anything in any case."""
    name = environment.get("SUDO_USER", "") if user_id == 0 else ""
    return f"shell:{re.sub(r'[^A-Za-z0-9._@-]', '_', name or _name(user_id))[:_LONGEST]}"


def _name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:  # in a container, a user may have a number only
        return str(user_id)
