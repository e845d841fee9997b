"""Credentials in provisioned resources. The content of a profile and the reports of a provisioner are stored and shown."""

from __future__ import annotations

from typing import Any

from domain.kernel.credentials import speaks_of_credential


def credentials(node: object) -> list[str]:
    """Return the places below a node whose names hint at a credential and that have a value."""
    if isinstance(node, dict):
        places = []
        for name, value in node.items():
            if _is_credential(name, value):
                places.append(name)
            places += [f"{name}.{place}" for place in credentials(value)]
        return places
    if isinstance(node, list):
        return [f"{index}.{place}" for index, value in enumerate(node) for place in credentials(value)]
    return []


def without_credentials(node: Any) -> Any:
    """Return a copy without the members whose names hint at a credential."""
    if isinstance(node, dict):
        return {name: without_credentials(value) for name, value in node.items() if not _is_credential(name, value)}
    return [without_credentials(value) for value in node] if isinstance(node, list) else node


def _is_credential(name: str, value: object) -> bool:
    return value not in (None, "") and speaks_of_credential(name)
