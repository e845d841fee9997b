"""How the key provider speaks: document 1; contract.md, "Addresses" and "Errors"; reference/drm.md, e.

Every refusal is one line of plain text that begins with a code; the code stands in a header too, for programs. The line never
holds a key, and of what was sent only names that were understood, such as a system id.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.errors import Failure
from api.kernel.surface import Surface
from api.speke.cpix.parsing import LARGEST_BODY
from domain.client.aggregate import RESERVED

NEVER_STORED: Final = ("cache-control", "no-store")
_LONGEST_LINE: Final = 290
_WHO: Final = "the API-KEY is missing, or is not a valid key of this client"


def refusal(code: str, status: int, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """One line, whatever the text holds."""
    line = " ".join(f"{code} {text}".split())
    line = "".join(character for character in line if character.isprintable())
    body = line.encode("utf-8", "replace")[:_LONGEST_LINE].decode("utf-8", "ignore")
    told = (NEVER_STORED, ("x-error-code", code), *headers)
    return Answer(status, f"{body}\n".encode(), headers=told, media_type="text/plain; charset=utf-8")


def render(failure: Failure, call: Call) -> Answer:
    """A refusal of HTTP, of the log or of ours by accident. One text for every 401, so that it tells nobody which names exist."""
    said = "; ".join(f"{error.field}: {error.message}" for error in failure.errors) or failure.detail
    text = _WHO if failure.status == HTTPStatus.UNAUTHORIZED else said
    return refusal(f"SPEKE-{failure.status}0", failure.status, text, headers=failure.headers)


KEY_PROVIDER: Final = Surface(
    "key provider",
    render=render,
    error_type="text/plain",
    error_model=None,
    body_limit=LARGEST_BODY,
    caller_in_path="client_name",
    never_in_path=RESERVED,
    quoted_keys=True,
    keeps_answers=False,
)
