"""Entry points of other packages. One that cannot be loaded is left out: the product starts, and others are not affected."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_log = logging.getLogger(__name__)


def plugins(group: str) -> Sequence[EntryPoint]:
    """In a fixed order. It reads the metadata of every installed distribution."""
    return sorted(entry_points(group=group), key=lambda plugin: (plugin.name, plugin.value))


def loaded(group: str, *, taken: Sequence[str]) -> Mapping[str, Any]:
    """What the entry points name, by their names in lower case, without those that are `taken`. The first of a name counts."""
    found: dict[str, Any] = {}
    for plugin in plugins(group):
        name = plugin.name.lower()
        if name in (*taken, *found):
            _log.error("%s (%s) is left out: there is one of this name already", plugin.name, plugin.value)
            continue
        try:
            found[name] = plugin.load()
        except (Exception, SystemExit) as fault:  # a module of another package may raise anything
            _log.error("%s (%s) is left out: %s: %s", plugin.name, plugin.value, type(fault).__name__, fault)
    return found
