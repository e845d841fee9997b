"""Values of publications."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from domain.kernel.encryption import SecretRef
from domain.kernel.named_callback import NamedCallback

MOST_AT_ONCE: Final = 100
"""Publications that one request creates: they are one append."""


class PublicationKind(IntEnum):
    VOD = 0
    LIVE = 1


class PublicationState(IntEnum):
    """As clients know it. A film is Processing, Completed or failed; a live stream also Scheduled and InProgress."""

    Processing = 0
    Scheduled = 1
    InProgress = 2
    Completed = 3
    FailedDestination = 4
    FailedMediaAsset = 5
    FailedPublication = 6


RUNNING: Final = frozenset({PublicationState.Processing, PublicationState.InProgress})


class PublicationText(BaseModel):
    """What a client says of a publication. `options_json` are the members that only the target knows, as a JSON object with null in
    place of every secret; `secrets` are these by their places."""

    model_config = ConfigDict(frozen=True)

    title: str = ""
    description: str = ""
    options_json: str = "{}"
    secrets: dict[str, SecretRef] = {}
    callbacks: tuple[NamedCallback, ...] = ()
