"""Entry points of other packages. One that cannot be load_plugins is skipped: the product starts, and other entry points are not
affected."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_log = logging.getLogger(__name__)


def plugins(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group in a fixed order. It reads the metadata of every installed distribution."""
    return sorted(entry_points(group=group), key=lambda plugin: (plugin.name, plugin.value))


def load_plugins(group: str, *, taken: Sequence[str]) -> Mapping[str, Any]:
    """Load the objects of the entry points, by name in lower case, except those with a name that is `taken`. If several have the
    same name, the first is used."""
    objects: dict[str, Any] = {}
    for plugin in plugins(group):
        name = plugin.name.lower()
        if name in (*taken, *objects):
            _log.error("%s (%s) is skipped: another one has the same name", plugin.name, plugin.value)
            continue
        try:
            objects[name] = plugin.load()
        except (Exception, SystemExit) as fault:  # a module of another package may raise anything
            _log.error("%s (%s) is skipped: %s: %s", plugin.name, plugin.value, type(fault).__name__, fault)
    return objects
