"""Published and measured values that our formats must equal: `drm_vectors.json`."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from domain.drm.systems import KeyMaterial, Scheme

Vector = dict[str, Any]

_DOCUMENT: Final = json.loads(Path(__file__).with_name("drm_vectors.json").read_text())
IV: Final = bytes(range(16))


def kinds() -> Counter[str]:
    return Counter(vector["kind"] for vector in _DOCUMENT["vectors"])


def system_ids() -> dict[str, UUID]:
    return {name: UUID(text) for name, text in _DOCUMENT["system_ids"].items()}


def of_kind(kind: str) -> pytest.MarkDecorator:
    """Runs the test with each vector of a kind."""
    chosen = [pytest.param(vector, id=vector["id"]) for vector in _DOCUMENT["vectors"] if vector["kind"] == kind]
    return pytest.mark.parametrize("vector", chosen)


def material(vector: Vector) -> KeyMaterial:
    return KeyMaterial(UUID(vector["kid"]), bytes.fromhex(vector["content_key_hex"]), IV)


def scheme(vector: Vector) -> Scheme:
    return Scheme(vector["protection_scheme"])


def raw(vector: Vector, member: str) -> bytes:
    return b64decode(vector[member], validate=True)


def header_text(playready_object: bytes) -> str:
    """Return the header of an object with one record."""
    return playready_object[10:].decode("utf-16-le")
