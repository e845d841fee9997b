"""How aggregates name the callbacks that are told of them."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict

from domain.kernel.encryption import SecretRef


class NamedCallback(BaseModel):
    """A callback that is told of an aggregate. `url` is its address as it is shown, `sealed_url` the secret of the whole address,
    if that has more."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: UUID
    url: str
    sealed_url: SecretRef | None = None


def held_callback(callback: object) -> str:
    """The scope in which each aggregate claims its key as long as it may have more to tell this callback, which is not removed
    then. Jobs were the first to do so."""
    return f"job.of_callback.{callback}"
