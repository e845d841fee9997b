"""Responses of the compose routes. See docs/reference/api/compositions.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.audit.past_states import Moment, Renderer
from api.kernel.wire import Instant, NamedInt, Wire
from domain.composition.aggregate import Composition
from domain.composition.row import CompositionRow
from domain.composition.values import Item, ItemType, Loudness, Marker, MarkerType


class ComposeMarker(Wire):
    """An SCTE-35 marker of an item."""

    start_at: str = Field(description="Start of the break, as sent.")
    duration: str = Field(description="Length of the break, hh:mm:ss.")
    frame_accurate: bool | None = Field(description="True if the film can be cut at exactly this frame; null: the default.")
    type: Annotated[MarkerType, NamedInt(MarkerType)] = Field(description="Kind of the break.")

    @classmethod
    def of(cls, marker: Marker) -> ComposeMarker:
        return cls.model_construct(**{name: getattr(marker, name) for name in cls.model_fields})


class ComposePlaylistItem(Wire):
    """An item of a playlist."""

    type: Annotated[ItemType, NamedInt(ItemType)] = Field(description="Kind of `value`.")
    value: str = Field(description="The id of an Event, or the address of a file.")
    properties: dict[str, Any] = Field(description="The properties as sent, including unknown ones.")
    markers: list[ComposeMarker] | None = Field(description="Breaks of the item; null: none.")

    @classmethod
    def of(cls, item: Item) -> ComposePlaylistItem:
        markers = None if item.markers is None else [ComposeMarker.of(marker) for marker in item.markers]
        return cls.model_construct(type=item.type, value=item.value, properties=item.properties, markers=markers)


class ComposeLoudness(Wire):
    """The requested loudness of the sound of a film."""

    target: float | None = Field(description="Integrated loudness in LUFS; null: the value of the profile.")
    profile: str = Field(description="ebu-r128 or a85.")

    @classmethod
    def of(cls, loudness: Loudness) -> ComposeLoudness:
        return cls.model_construct(target=loudness.target, profile=loudness.profile)


class ComposePlaylist(Wire):
    """The playlist of an Event."""

    id: UUID = Field(description="Id of the playlist.")
    name: str = Field(description='Name of the playlist, or "".')
    items: list[ComposePlaylistItem] = Field(description="The items in the order of playback.")
    looped: bool = Field(description="True if it begins again after its last item.")
    loudness: ComposeLoudness | None = Field(description="Loudness of a film; null: the default.")
    live_stream_start: Instant | None = Field(description="The scheduled time of making the film; null: immediately.")

    @classmethod
    def of(cls, row: CompositionRow) -> ComposePlaylist:
        return cls.model_construct(
            id=row.id,
            name=row.playlist.name,
            items=[ComposePlaylistItem.of(item) for item in row.playlist.items],
            looped=row.playlist.looped,
            loudness=None if row.playlist.loudness is None else ComposeLoudness.of(row.playlist.loudness),
            live_stream_start=row.live_stream_start,
        )


def past_states() -> Mapping[str, Renderer]:
    async def composition(root: Composition, moment: Moment) -> Any:
        return ComposePlaylist.of(CompositionRow.of(root))

    return {Composition.KIND: composition}
