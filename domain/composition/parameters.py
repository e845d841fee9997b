"""A playlist as parameters of the job that makes its film."""

from __future__ import annotations

from typing import Any, Final

from domain.composition.values import Item, Playlist

_USED: Final = ("start", "end", "frameAccurate", "outputDescription")
"""The properties that the job uses."""


def job_parameters(playlist: Playlist) -> dict[str, Any]:
    """Return a playlist as the workflow takes it, without members that it does not use, because parameters are kept short."""
    wanted = playlist.loudness
    loudness = {} if wanted is None else {"loudness": wanted.model_dump(exclude_none=True)}
    items = [_item(item) for item in playlist.items]
    return {"name": playlist.name, "looped": playlist.looped, **loudness, "items": items}


def _item(item: Item) -> dict[str, Any]:
    used = {name: item.properties[name] for name in _USED if item.properties.get(name) is not None}
    markers = [
        {
            "startAt": marker.start_at,
            "duration": marker.duration,
            "type": marker.type.value,
            **({} if marker.frame_accurate is None else {"frameAccurate": marker.frame_accurate}),
        }
        for marker in item.markers or ()
    ]
    parameters = {"type": item.type.value, "value": item.value, "properties": used, "markers": markers}
    return {name: value for name, value in parameters.items() if value not in ({}, [])}
