"""Request bodies and query parameters of the compose routes. See docs/reference/api/compositions.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints

from api.kernel.wire import Flag, Instant, Label, NamedInt, Text, Wire
from api.media.event.requests import JsonText
from domain.composition.handlers import NewComposition
from domain.composition.values import MOST_ITEMS, CompositionKind, Item, ItemType, Loudness, MarkerType, Playlist
from domain.composition.values import Marker as MarkerValue
from domain.event.changes import EventChanges

_OPENER: Final = "8f51eaa1-decb-4863-89d3-9eb99768c67b"
_CHANNEL: Final = "5a0c2a4e-6a3b-4f43-9f0c-6a1f2a1f0f11"
_TYPE: Final = "by number or name: 0 EVENT, 1 DIRECT_FULL_MP4 (for encoders only); 2 DIRECT_DREF_MP4 is not supported"
_FILM: Final[dict[str, Any]] = {
    "name": "Evening",
    "items": [
        {
            "type": 0,
            "value": _OPENER,
            "properties": {"start": "00:00:05.000", "end": "00:10:00.000", "frameAccurate": True},
            "markers": [{"startAt": "00:05:00", "duration": "00:00:30", "type": "INSERTION"}],
        }
    ],
}
_LOOP: Final[dict[str, Any]] = {
    "name": "Night loop",
    "looped": True,
    "items": [{"type": "EVENT", "value": _OPENER}, {"type": 1, "value": "https://cdn.example.com/bumper.mp4"}],
}
_NAMES: Final = {
    "workflow_id": "flow_id",
    "auto_provision": "auto_provision_infrastructure",
    "auto_terminate": "auto_terminate_infrastructure",
}
_FLAGS: Final = frozenset(
    ("vod_drm", "auto_start", "auto_end", "auto_publish", "auto_start_publications", "auto_provision", "auto_terminate")
)
Time = Annotated[Text, StringConstraints(max_length=64)]


class MarkerBody(Wire):
    """An SCTE-35 marker: a break that other players fill."""

    start_at: Time = Field(
        description="Start of the break, inside the item: a time hh:mm:ss[.fff] from the start of its source, or an ISO 8601 "
        "date-time of a source that carries timecode. Required."
    )
    duration: Time = Field(description="Length of the break, hh:mm:ss. Required.")
    frame_accurate: Flag | None = Field(
        default=None, description="True if the film can be cut at exactly this frame. null: at the nearest key frame."
    )
    type: Annotated[MarkerType, NamedInt(MarkerType)] = Field(
        description="0 INSERTION: the insertion delays the rest of the item. 1 REPLACEMENT: it replaces a part of the item. "
        "Required."
    )

    def read(self) -> MarkerValue:
        return MarkerValue(start_at=self.start_at, duration=self.duration, frame_accurate=self.frame_accurate, type=self.type)


class ItemBody(Wire):
    """An item of a playlist."""

    type: Annotated[ItemType, NamedInt(ItemType)] = Field(description=f"Kind of `value`, {_TYPE}. Required.")
    value: Text = Field(
        description="For EVENT the id of an Event; for DIRECT_FULL_MP4 an http or https URL or a path below the media root. "
        "Required."
    )
    properties: dict[str, Any] | None = Field(
        default=None,
        description="For a film: `start` and `end` (times hh:mm:ss[.fff] from the start of the source, or ISO 8601 date-times of a "
        "source that carries timecode), `frameAccurate` and `outputDescription` (true or false). Others are stored and shown as "
        "they were sent.",
    )
    markers: list[MarkerBody] | None = Field(default=None, description="Breaks, for films only. null: none.")

    def read(self) -> Item:
        markers = None if self.markers is None else tuple(marker.read() for marker in self.markers)
        return Item(type=self.type, value=self._value, properties=self.properties or {}, markers=markers)

    @property
    def _value(self) -> str:
        """The value, with ids in canonical spelling."""
        try:
            return str(UUID(self.value)) if self.type is ItemType.EVENT else self.value
        except ValueError:
            return self.value


Items = Annotated[list[ItemBody], Field(min_length=1, max_length=MOST_ITEMS)]


class LoudnessBody(Wire):
    """The requested loudness of the sound of a film."""

    target: Annotated[float, Field(ge=-40, le=-9)] | None = Field(
        default=None, description="Integrated loudness in LUFS, -40 to -9. null: the value of the profile."
    )
    profile: Literal["ebu-r128", "a85"] | None = Field(
        default=None, description="ebu-r128: -23 LUFS, peaks of -1 dBTP. a85: -24 LUFS, peaks of -2 dBTP. null: ebu-r128."
    )

    def read(self) -> Loudness:
        return Loudness(target=self.target, profile=self.profile or "ebu-r128")


_LOUDNESS: Final = "Loudness of its sound. null: the default, -23 LUFS if sound is encoded again."
_ITEMS: Final = f"The items in the order of playback, 1 to {MOST_ITEMS}."
_PLAYLIST_NAME: Final = 'Name of the playlist. null or absent: "".'


class NewFilmPlaylist(Wire):
    """The playlist of a film."""

    name: Label | None = Field(default=None, description=_PLAYLIST_NAME)
    live_stream_start: Instant | None = Field(
        default=None,
        description="The time when the film is made; until then the Event is COMPOSE_WAITING. null or past: immediately.",
    )
    loudness: LoudnessBody | None = Field(default=None, description=_LOUDNESS)
    items: Items = Field(description=f"{_ITEMS} All have the type EVENT. Required.")


class NewEncoderPlaylist(Wire):
    """The playlist of an encoder."""

    name: Label | None = Field(default=None, description=_PLAYLIST_NAME)
    looped: Flag | None = Field(default=None, description="True if it begins again after its last item. Default false.")
    items: Items = Field(description=f"{_ITEMS} They have the types EVENT and DIRECT_FULL_MP4, without markers. Required.")


class _ComposedEvent(Wire):
    """The fields of an Event that both kinds of composition write. Absent fields stay unchanged; null clears."""

    id: UUID | None = Field(
        default=None,
        description="The Event that receives the playlist; unknown: a new Event with this id. null or absent: a new Event.",
    )
    room_id: UUID | None = Field(default=None, description="The room, which must exist. null removes it.")
    event_type_id: UUID | None = Field(default=None, description="The event type, which must exist. null removes it.")
    category_ids: Annotated[list[UUID], Field(max_length=MOST_ITEMS)] | None = Field(
        default=None, description="The categories, which must exist; they replace the present ones. null or [] removes all."
    )
    title: Label | None = Field(default=None, description='The title. null or "" clears it.')
    description: Text | None = Field(default=None, description='The description. null or "" clears it.')
    ref_id: Label | None = Field(default=None, description='An id in another system; not unique. null or "" clears it.')
    external_id: Label | None = Field(default=None, description='An id in another system; not unique. null or "" clears it.')

    def changes(self) -> EventChanges:
        sent = {name: getattr(self, name) for name in self.model_fields_set if name not in ("id", "set_private_after_generation")}
        return EventChanges({_NAMES.get(name, name): _written(name, value) for name, value in sent.items()})


class FilmEvent(_ComposedEvent):
    """The Event that shows the film."""

    workflow_id: UUID | None = Field(
        default=None, description="The flow for playback on demand, which must exist. null removes it."
    )
    set_private_after_generation: Flag | None = Field(
        default=None,
        alias="setPrivateAFterGeneration",
        description="True if the finished film makes the Event COMPOSE_PRIVATE instead of COMPOSE_PUBLIC. Default false.",
    )
    vod_drm: Flag | None = Field(default=None, description="True if the film is encrypted. null means false; default false.")


class EncoderEvent(_ComposedEvent):
    """The live Event whose encoder plays the playlist."""

    channel_id: UUID = Field(description="The channel, which must exist and have an encoder that supports composition. Required.")
    infrastructure_profile_id: UUID | None = Field(
        default=None, description="The infrastructure profile, which must exist. null removes it."
    )
    scheduled_start: Instant | None = Field(default=None, description="The scheduled start. null clears it.")
    scheduled_end: Instant | None = Field(default=None, description="The scheduled end. null clears it.")
    scheduled_channel_start: Instant | None = Field(
        default=None, description="Start of the reservation of the channel. null clears it."
    )
    scheduled_channel_end: Instant | None = Field(
        default=None, description="End of the reservation of the channel. null clears it."
    )
    scheduled_provision_at: Instant | None = Field(
        default=None, description="The time when infrastructure is provisioned. null clears it."
    )
    scheduled_terminate_at: Instant | None = Field(
        default=None, description="The time when infrastructure is terminated. null clears it."
    )
    auto_start: Flag | None = Field(
        default=None, description="True if the Event starts at `scheduledStart`. null means false; default false."
    )
    auto_end: Flag | None = Field(
        default=None, description="True if the Event stops at `scheduledEnd`. null means false; default false."
    )
    auto_publish: Flag | None = Field(
        default=None, description="True if the Event is public when it starts. null means false; default false."
    )
    auto_start_publications: Flag | None = Field(
        default=None, description="True if publications start when the Event goes live. null means false; default false."
    )
    auto_provision: Flag | None = Field(
        default=None,
        description="True if infrastructure is provisioned at `scheduledProvisionAt`. null means false; default false.",
    )
    auto_terminate: Flag | None = Field(
        default=None,
        description="True if infrastructure is terminated at `scheduledTerminateAt`. null means false; default false.",
    )
    drm_json: JsonText | None = Field(default=None, description='DRM settings, as a text that holds JSON. null or "" clears them.')


class ComposeFilmRequest(Wire):
    """A playlist from which a film is made."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"event": {"title": "Evening", "setPrivateAFterGeneration": False, "vodDrm": False}, "playlist": _FILM}]
        }
    )

    event: FilmEvent = Field(default=FilmEvent(), description="The Event that shows the film. Absent: a new one.")
    playlist: NewFilmPlaylist = Field(description="The playlist. Required.")

    def new_composition(self) -> NewComposition:
        playlist = self.playlist
        return NewComposition(
            kind=CompositionKind.STANDARD,
            playlist=Playlist(name=playlist.name or "", items=_items(playlist.items), loudness=_loudness(playlist.loudness)),
            event_id=self.event.id,
            changes=self.event.changes(),
            private=bool(self.event.set_private_after_generation),
            live_stream_start=playlist.live_stream_start,
        )


class ComposeForEncoderRequest(Wire):
    """A playlist that an encoder plays."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"event": {"channelId": _CHANNEL, "title": "Night", "autoStart": True}, "playlist": {**_LOOP}},
            ]
        }
    )

    event: EncoderEvent = Field(description="The live Event. Required.")
    playlist: NewEncoderPlaylist = Field(description="The playlist. Required.")

    def new_composition(self) -> NewComposition:
        playlist = self.playlist
        return NewComposition(
            kind=CompositionKind.ENCODER,
            playlist=Playlist(name=playlist.name or "", items=_items(playlist.items), looped=bool(playlist.looped)),
            event_id=self.event.id,
            changes=self.event.changes(),
        )


class _PlaylistBody(Wire):
    """Changes of a playlist. Absent fields stay unchanged."""

    name: Label | None = Field(default=None, description='Name of the playlist. null: "".')
    looped: Flag | None = Field(default=None, description="True if it begins again after its last item. null: false.")
    items: Items = Field(default_factory=list, description=f"{_ITEMS} Absent: they stay unchanged.")

    def changes(self) -> Mapping[str, Any]:
        read = {"name": self.name or "", "looped": bool(self.looped), "items": _items(self.items)}
        return {name: value for name, value in read.items() if name in self.model_fields_set}


class ReplaceFilmPlaylistRequest(_PlaylistBody):
    """Changes of the playlist of a film."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FILM]})

    loudness: LoudnessBody | None = Field(default=None, description=_LOUDNESS)

    def changes(self) -> Mapping[str, Any]:
        given = {"loudness": _loudness(self.loudness)} if "loudness" in self.model_fields_set else {}
        return {**super().changes(), **given}


class ReplaceEncoderPlaylistRequest(_PlaylistBody):
    """Changes of the playlist of an encoder, or its first playlist."""

    model_config = ConfigDict(json_schema_extra={"examples": [_LOOP]})


class SetDrmRequest(Wire):
    """DRM settings of an Event."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"drmJson": '{"drm_provider": "medialedger", "drm_data": {"contentId": "film"}}'}]}
    )

    drm_json: JsonText | None = Field(
        description='DRM settings, as a text that holds JSON; stored as sent. null or "" clears them. Required.'
    )


class CloneQuery(Wire):
    """Query of a copy: the Event that receives the playlist."""

    target_event_id: UUID = Field(
        description="Id of the Event whose playlist is replaced, or that receives its first playlist. Required."
    )


def _loudness(body: LoudnessBody | None) -> Loudness | None:
    return None if body is None else body.read()


def _items(items: Iterable[ItemBody]) -> tuple[Item, ...]:
    return tuple(item.read() for item in items)


def _written(name: str, value: Any) -> Any:
    """Return the value as the Event stores it: null is false for a flag and no category; an empty text is None."""
    if name in _FLAGS:
        return bool(value)
    if name == "category_ids":
        return tuple(dict.fromkeys(value or ()))
    return None if value == "" else value
