"""References from aggregates to the callbacks that are notified of them."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict

from domain.kernel.encryption import SecretRef


class NamedCallback(BaseModel):
    """A callback that is notified of an aggregate. `url` is its address without secret parts; `sealed_url` is the secret of the
    whole address, if that has more."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: UUID
    url: str
    sealed_url: SecretRef | None = None


def callback_scope(callback: object) -> str:
    """Return the scope in which each aggregate claims its key while it may have more to report to this callback. The claim prevents
    the callback's removal. Jobs were the first to use the scope, hence its name."""
    return f"job.of_callback.{callback}"
