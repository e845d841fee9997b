"""Credentials in what is provisioned: what a profile says is stored and shown, and so is what a provisioner tells."""

from __future__ import annotations

from typing import Any

from domain.kernel.credentials import speaks_of_credential


def credentials(node: object) -> list[str]:
    """The places below, of names that hint at a credential and have a value."""
    if isinstance(node, dict):
        places = []
        for name, value in node.items():
            if _is_one(name, value):
                places.append(name)
            places += [f"{name}.{place}" for place in credentials(value)]
        return places
    if isinstance(node, list):
        return [f"{index}.{place}" for index, value in enumerate(node) for place in credentials(value)]
    return []


def without_credentials(node: Any) -> Any:
    """A copy without what has such a name."""
    if isinstance(node, dict):
        return {name: without_credentials(value) for name, value in node.items() if not _is_one(name, value)}
    return [without_credentials(value) for value in node] if isinstance(node, list) else node


def _is_one(name: str, value: object) -> bool:
    return value not in (None, "") and speaks_of_credential(name)
