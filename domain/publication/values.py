"""Values of publications."""

from __future__ import annotations

from enum import IntEnum
from typing import Final
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict

from domain.kernel.encryption import SecretRef
from domain.kernel.named_callback import NamedCallback

MOST_AT_ONCE: Final = 100
"""The number of publications that one request may create, in one append."""


class PublicationKind(IntEnum):
    VOD = 0
    LIVE = 1


class PublicationState(IntEnum):
    """The states of a publication as clients see them. A film is Processing, Completed or failed; a live stream also Scheduled
    and InProgress."""

    Processing = 0
    Scheduled = 1
    InProgress = 2
    Completed = 3
    FailedDestination = 4
    FailedMediaAsset = 5
    FailedPublication = 6


RUNNING: Final = frozenset({PublicationState.Processing, PublicationState.InProgress})


_TRANSACTIONS: Final = UUID("5f0c2c5e-0f4b-4d1c-9c39-6a4f2f5a1f7e")


def transaction_key(transaction_id: str) -> UUID:
    """Return the id that all publications of a request share: its transaction id if that is a GUID, else a GUID derived from its
    text, so that publications are found by the transaction id that was sent."""
    try:
        return UUID(transaction_id)
    except ValueError:
        return uuid5(_TRANSACTIONS, transaction_id)


class PublicationText(BaseModel):
    """A client's description of a publication. `options_json` are the members that only the target interprets, as a JSON object
    with null in place of every secret; `secrets` holds these by their places."""

    model_config = ConfigDict(frozen=True)

    title: str = ""
    description: str = ""
    options_json: str = "{}"
    secrets: dict[str, SecretRef] = {}
    callbacks: tuple[NamedCallback, ...] = ()
