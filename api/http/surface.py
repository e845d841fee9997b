"""A surface: a group of routes with one path prefix, one format of errors and one limit of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, Field

from api.http.cross_origin import CrossOrigin
from api.http.errors import Failure
from api.http.request import Request
from api.http.response import Response

MIB: Final = 1024 * 1024


class FieldProblem(BaseModel):
    """An error in one field."""

    field: str = Field(description="The place of the field as it was sent, such as `tags[2].name`.")
    message: str = Field(description="What is expected there. It never repeats what was sent.")


class Problem(BaseModel):
    """Problem details (RFC 9457), with the transaction id and, for bad input, what is wrong with which field."""

    type: str = Field(
        description="The kind of problem, for programs: `about:blank` where the status says it all, or a path.",
        examples=["about:blank", "/problems/bad-input"],
    )
    title: str = Field(description="The name of the HTTP status.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What went wrong, for people. The text may change.")
    transactionId: str = Field(  # noqa: N815 - its name in JSON
        description="The value of X-Transaction-ID of the request; the log has it too."
    )
    errors: list[FieldProblem] | None = Field(
        default=None, description="What is wrong with which field, at most 50 entries. Only for `/problems/bad-input`."
    )


def problem(failure: Failure, request: Request, **members: object) -> Response:
    """Return the problem document of a failure, with further members."""
    body: dict[str, object] = {
        "type": "about:blank" if failure.slug is None else f"/problems/{failure.slug}",
        "title": failure.title,
        "status": failure.status,
        "detail": failure.detail,
        "transactionId": request.transaction_id,
    }
    if failure.errors:
        body["errors"] = [{"field": error.field, "message": error.message} for error in failure.errors]
    body |= members
    return Response(body, failure.status, failure.headers, "application/problem+json")


@dataclass(frozen=True, slots=True)
class Surface:
    """A group of routes with one path prefix, one format of errors and one limit of bodies."""

    name: str
    prefix: str = ""
    """The beginning of its paths. Unknown paths below it are refused in its format."""
    render: Callable[[Failure, Request], Response] = problem
    error_type: str = "application/problem+json"
    error_model: type[BaseModel] | None = Problem
    body_limit: int = MIB
    client_required: bool = False
    """True if protected calls must name their client."""
    caller_in_path: str | None = None
    """The path parameter that must hold the caller's own name."""
    never_in_path: frozenset[str] = frozenset()
    """First segments that a parameter at the root does not match."""
    never: frozenset[int] = frozenset()
    """Usual statuses that `render` replaces by others."""
    quoted_keys: bool = False
    """True if an API key may come in single quotes."""
    bearer_keys: bool = True
    """True if an API key may come as `Authorization: Bearer`."""
    any_case: bool = False
    """True if the fixed segments of its paths match in any case. Segments with an id or a name never do."""
    keeps_answers: bool = True
    """False: a response holds secrets, so none is stored for a repeated request."""
    typed_bodies: bool = False
    """True if a body without a Content-Type is refused."""
    routine: bool = False
    """True if calls come several times a second. The request log then has only those that fail, as it does for reads."""
    sessions: bool = True
    """False: a browser's session does not count as a key."""
    stored: bool = True
    """False: no cache stores a response, that of a browser neither."""
    cross_origin: CrossOrigin | None = None
    """The rule for pages of other origins; `None`: the application's."""
    unknown_names: Literal["ignored", "told", "refused"] = "ignored"
    """The consequence of fields and parameters that are not documented. "told": the response has a header Warning, and a request
    with `Prefer: handling=strict` is refused."""
