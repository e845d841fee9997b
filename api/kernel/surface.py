"""A surface is one way of speaking: where its paths begin, how it words errors, how much it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.errors import Failure

MIB: Final = 1024 * 1024


class FieldProblem(BaseModel):
    """One thing wrong with one field."""

    field: str
    message: str


class Problem(BaseModel):
    """RFC 9457, with the transaction id and, for bad input, what is wrong with which field."""

    type: str = Field(examples=["about:blank", "/problems/bad-input"])
    title: str
    status: int
    detail: str
    transactionId: str  # noqa: N815 - the wire's spelling
    errors: list[FieldProblem] | None = None


def problem(failure: Failure, call: Call) -> Answer:
    body: dict[str, object] = {
        "type": "about:blank" if failure.slug is None else f"/problems/{failure.slug}",
        "title": failure.title,
        "status": failure.status,
        "detail": failure.detail,
        "transactionId": call.transaction_id,
    }
    if failure.errors:
        body["errors"] = [{"field": error.field, "message": error.message} for error in failure.errors]
    return Answer(failure.status, body, headers=failure.headers, media_type="application/problem+json")


@dataclass(frozen=True, slots=True)
class Surface:
    """`prefix` is where its routes begin; unknown paths below it are refused in its words. `render` words a failure;
    `error_type` and `error_model` document it. `client_required`: protected calls must name their client.

    `caller_in_path` is the path parameter that must hold the caller's own name; `never_in_path` are first segments that a
    parameter at the root leaves to others. `quoted_keys`: an API key may come in single quotes. `keeps_answers=False`: an
    answer holds secrets, so none is kept for a repeat."""

    name: str
    prefix: str = ""
    render: Callable[[Failure, Call], Answer] = problem
    error_type: str = "application/problem+json"
    error_model: type[BaseModel] | None = Problem
    body_limit: int = MIB
    client_required: bool = False
    caller_in_path: str | None = None
    never_in_path: frozenset[str] = frozenset()
    quoted_keys: bool = False
    keeps_answers: bool = True


MEDIA: Final = Surface("media", prefix="/api")
AUDIT_LOG: Final = Surface("audit", prefix="/api/audit")
OPERATIONS: Final = Surface("operations")
