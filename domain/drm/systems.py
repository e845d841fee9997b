"""DRM systems, encryption schemes and the key material for both: docs/reference/api/key-provider.md#systems."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final
from uuid import UUID

KEY_BYTES: Final = 16


class DrmSystem(Enum):
    """Supported DRM systems, with their ids in the registry of DASH-IF."""

    WIDEVINE = UUID("edef8ba9-79d6-4ace-a3c8-27dcd51d21ed")
    PLAYREADY = UUID("9a04f079-9840-4286-ab92-e65be0885f95")
    FAIRPLAY = UUID("94ce86fb-07ff-4f43-adb8-93d2fa968ca2")

    @property
    def system_id(self) -> UUID:
        return self.value


_SYSTEMS: Final = {system.system_id: system for system in DrmSystem}


def system_of(system_id: UUID) -> DrmSystem | None:
    return _SYSTEMS.get(system_id)


class Scheme(StrEnum):
    """The protection schemes of Common Encryption, by their four characters: ISO/IEC 23001-7, section 4.2."""

    CENC = "cenc"
    CENS = "cens"
    CBC1 = "cbc1"
    CBCS = "cbcs"

    @property
    def counts(self) -> bool:
        """True for AES in counter mode; the other schemes chain blocks."""
        return self in (Scheme.CENC, Scheme.CENS)


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A content key and its kid. Only FairPlay needs the IV, which its licence carries."""

    kid: UUID
    key: bytes = field(repr=False)
    iv: bytes | None = None

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES or (self.iv is not None and len(self.iv) != KEY_BYTES):
            raise ValueError(f"a content key and an IV have {KEY_BYTES} bytes")
