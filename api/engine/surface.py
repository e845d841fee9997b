"""How the job engine speaks: document 3, "Job engine" and "Errors"; contract.md, "Errors".

Document 3 knows one refusal, 400 with `{"error"}`: what the domain does not find or refuses is 400 too. What HTTP refuses, lost
races and what is down keep their status.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, Field

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.errors import Failure
from api.kernel.surface import Surface

_OF_THE_DOMAIN: Final = ("not-found", "refused")
_CREATING: Final = ("POST", "/engine/job")
_UPDATING: Final = ("PUT", "/engine/job/{job_id}")
_HEALTH: Final = "/engine/health"


class EngineErrorWire(BaseModel):
    """`<field>: <message>` for each thing that is wrong, or a sentence."""

    error: str = Field(examples=["job.priority: 1 to 10"])
    id: int | None = Field(default=None, description="Of the job; null when one is created, absent in other answers")


def render(failure: Failure, call: Call) -> Answer:
    """Only what nobody foresaw is plain text, except where document 3 shows it otherwise."""
    if failure.status == HTTPStatus.INTERNAL_SERVER_ERROR and call.path != _HEALTH:
        return Answer(failure.status, f"{failure.detail}\n".encode(), media_type="text/plain; charset=utf-8")
    status = 400 if failure.slug in _OF_THE_DOMAIN else failure.status
    said = "; ".join(f"{error.field}: {error.message}" for error in failure.errors) or failure.detail
    return Answer(status, {**_job(call), "error": said}, headers=failure.headers)


def _job(call: Call) -> dict[str, int | None]:
    named = (call.method, call.path)
    if named == _CREATING:
        return {"id": None}
    if named != _UPDATING:
        return {}
    digits = call.params.get("job_id", "")
    return {"id": int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None}


ENGINE: Final = Surface(
    "engine",
    prefix="/engine",
    render=render,
    error_type="application/json",
    error_model=EngineErrorWire,
    client_required=True,
)
