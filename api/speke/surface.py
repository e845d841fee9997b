"""The surface of the key provider and the form of its errors: docs/reference/speke-errors.md.

Every refusal is one line of plain text that begins with a code; the code is also in a header, for programs. The line never
contains a key, and from the request only valid names, such as a system id.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from api.http.cross_origin import NOBODY
from api.http.errors import Failure
from api.http.request import Request
from api.http.response import Response
from api.http.routing import Route
from api.http.surface import Surface
from api.speke.cpix.elements import LARGEST_BODY
from domain.client.names import SEGMENTS

NEVER_STORED: Final = ("cache-control", "no-store")
_BEARER: Final = ("www-authenticate", 'Bearer realm="api"')
_LONGEST_LINE: Final = 290
_WRONG_KEY: Final = "the API-KEY is missing, or is not a valid key of this client"


def refusal(code: str, status: int, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Return a response of one line. Line breaks and control characters are removed from the text."""
    line = " ".join(f"{code} {text}".split())
    line = "".join(character for character in line if character.isprintable())
    body = line.encode("utf-8", "replace")[:_LONGEST_LINE].decode("utf-8", "ignore")
    all_headers = (NEVER_STORED, ("x-error-code", code), *headers)
    return Response(f"{body}\n".encode(), status, headers=all_headers, media_type="text/plain; charset=utf-8")


def render(failure: Failure, request: Request) -> Response:
    """Render a failure outside CPIX. All 401 responses have the same text, so that they do not reveal which clients exist."""
    detail = "; ".join(f"{error.field}: {error.message}" for error in failure.errors) or failure.detail
    text = _WRONG_KEY if failure.status == HTTPStatus.UNAUTHORIZED else detail
    headers = tuple(header for header in failure.headers if header != _BEARER)
    return refusal(f"SPEKE-{failure.status}0", failure.status, text, headers=headers)


KEY_PROVIDER: Final = Surface(
    "key provider",
    render=render,
    error_type="text/plain",
    error_model=None,
    body_limit=LARGEST_BODY,
    caller_in_path="client_name",
    never_in_path=SEGMENTS,
    quoted_keys=True,
    bearer_keys=False,
    any_case=True,
    keeps_answers=False,
    sessions=False,
    cross_origin=NOBODY,
)


class KeyProviderRoute(Route):
    """A route of the key provider."""

    surface = KEY_PROVIDER
