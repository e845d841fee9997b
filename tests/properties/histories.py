"""Strategies: any command that a caller may send, and any history that stored events may make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from domain.client.aggregate import Client, NewKey
from domain.client.commands import RegisterClient
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.commands import (
    AddOrUpdateEvent,
    AmendEvent,
    Expectation,
    Replacement,
    flow_task,
)
from domain.event.facets import Particulars
from domain.event.values import AudioInput, EventState, Mp4State, Trigger, VodFile, VodJobEnd, VodResult, VodWorkflow
from domain.kernel.command import Command, DecisionCommand
from domain.kernel.encryption import SecretRef
from domain.record.configured_record import ConfiguredRecord, SentConfiguration
from domain.record.record import Record, RegisterRecord

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
keys = st.integers(1, 4).map(lambda number: UUID(int=number))
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-9))])
moments = st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1), timezones=zones)  # noqa: DTZ001 - hypothesis adds the zone
states = st.sampled_from(EventState)
mp4_states = st.sampled_from(Mp4State)
json_texts = st.sampled_from(["{}", "[]", '{"drm_data": {"a": 1.50}}', "null"])

_OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "str | None": st.none() | texts,
    "datetime.datetime | None": st.none() | moments,
    "uuid.UUID | None": st.none() | keys,
    "int | None": st.none() | st.integers(0, 2**40),
    "<class 'bool'>": st.booleans(),
    "tuple[uuid.UUID, ...]": st.lists(keys, unique=True, max_size=3).map(tuple),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    name: (st.none() | json_texts) if name.endswith("_json") else _OF_TYPE[str(field.annotation)]
    for name, field in Particulars.model_fields.items()
}
changes = st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: VALUES[name] for name in names})
)


def _steps() -> st.SearchStrategy[Any]:
    def valued(step: type[Any]) -> st.SearchStrategy[Any]:
        of_fact = st.sampled_from(sorted(VALUES)).flatmap(lambda name: VALUES[name].map(lambda value: step(name, value)))
        return of_fact | states.map(lambda state: step("state", state)) | mp4_states.map(lambda state: step("mp4_state", state))

    return st.lists(valued(Replacement) | valued(Replacement) | valued(Expectation), max_size=4).map(tuple)


def _vod_job_commands(key: UUID) -> st.SearchStrategy[Command[MediaEvent]]:
    """Any job, and any outcome of it."""
    jobs, versions, times = st.integers(1, 2), st.integers(0, 3), st.sampled_from(["capture_vod_start", "capture_vod_end"])
    workflows = st.sampled_from(VodWorkflow)
    captured = st.dictionaries(times, moments, max_size=2)
    results = st.none() | st.builds(VodResult, drm_json=st.none() | json_texts, thumbnail=st.none() | texts, size=st.none() | jobs)
    return st.one_of(
        st.builds(
            MediaEvent.start_vod_job.on,
            st.just(key),
            jobs,
            workflows,
            publish=st.none() | st.booleans(),
            captured=captured,
            rerun_of=st.none() | jobs,
        ),
        st.builds(
            MediaEvent.end_vod_job.on,
            st.just(key),
            jobs,
            st.sampled_from(VodJobEnd),
            version=versions,
            reason=texts,
            result=results,
        ),
        st.builds(MediaEvent.resume_vod_job.on, st.just(key), jobs, version=versions),
        st.builds(MediaEvent.move_vod_job.on, st.just(key), jobs, rerun_of=jobs),
        st.builds(MediaEvent.sync_vod_metadata.on, st.just(key), st.builds(VodFile, size=jobs), available=st.booleans()),
    )


def _encoding_commands(key: UUID) -> st.SearchStrategy[Command[MediaEvent]]:
    """Any order, and any report of a session."""
    sessions, versions = st.integers(1, 3), st.integers(1, 9)
    inputs = st.lists(st.builds(AudioInput, id=texts), max_size=2)
    return st.one_of(
        st.builds(MediaEvent.take_channel.on, st.just(key)),
        st.builds(MediaEvent.release_channel.on, st.just(key), keys),
        st.builds(MediaEvent.record_encoder_start.on, st.just(key), sessions),
        st.builds(MediaEvent.record_encoder_stop.on, st.just(key), sessions, reason=texts),
        st.builds(MediaEvent.record_encoder_failure.on, st.just(key), versions, session=st.none() | sessions, reason=texts),
        st.builds(MediaEvent.record_audio_inputs.on, st.just(key), inputs),
    )


@cache
def event_commands(key: UUID) -> st.SearchStrategy[Command[MediaEvent]]:
    """Anything that may be asked of one Event."""
    return st.one_of(
        st.builds(AddOrUpdateEvent, st.just(key), changes, st.none() | states, st.none() | mp4_states),
        st.builds(AmendEvent, st.just(key), _steps()),
        st.builds(flow_task, st.just(key), json_texts, state=st.none() | states, mp4_state=st.none() | mp4_states),
        st.builds(MediaEvent.change_state.on, st.just(key), states, trigger=st.just(Trigger.OPERATOR)),
        st.builds(MediaEvent.force_stop.on, st.just(key)),
        st.builds(MediaEvent.change_protection.on, st.just(key), st.sampled_from([EventState.VOD_PRIVATE, EventState.VOD_PUBLIC])),
        st.builds(MediaEvent.force_notification.on, st.just(key)),
        st.builds(MediaEvent.delete.on, st.just(key)),
        st.builds(MediaEvent.restore.on, st.just(key)),
        st.builds(MediaEvent.start_on_schedule.on, st.just(key), moments, scheduled_end=st.none() | moments),
        st.builds(MediaEvent.end_on_schedule.on, st.just(key), moments),
        _vod_job_commands(key),
        _encoding_commands(key),
    )


names = st.sampled_from(["football", "Football", "handball", "ski", "%", ""])


_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **_OF_TYPE,
    "<class 'str'>": names,
    "<class 'uuid.UUID'>": keys,
    "<class 'datetime.date'>": st.dates(date(2001, 1, 1), date(2099, 1, 1)),
    "<class 'datetime.datetime'>": moments,
    "tuple[str, ...]": st.lists(st.sampled_from(["HLS", "DASH"]), unique=True).map(tuple),
}
_PLACES = ['["encoders",0,"apiKey"]', '["encoders",1,"apiKey"]', '["password"]']
_refs = st.builds(SecretRef, reference=keys, fingerprint=st.sampled_from(["aa", "bb"]))
_origins = st.sampled_from([frozenset[str](), frozenset(["url=https://encoder.test"])])
_configurations = st.builds(
    SentConfiguration,
    st.sampled_from(['{"encoders": [{}, {}]}', '{"encoders":[{},{}]}']),
    st.dictionaries(st.sampled_from(_PLACES), st.none() | _refs),
    st.dictionaries(st.sampled_from(["[]", '["encoders",0]', '["encoders",1]']), _origins),
    st.frozensets(st.sampled_from(_PLACES)),
    st.lists(st.sampled_from(_PLACES), max_size=1).map(tuple),
)


_OF_KIND: dict[str, st.SearchStrategy[Any]] = {
    "destination.target": st.sampled_from(Target),
    "setting.name": st.sampled_from(["max_jobs", "retry_delay", "mine", "api_key"]),
    "setting.setting": st.sampled_from([0, 1, 1.0, 2.5, True, "1", "text", 10**6]),
    "webhook.webhook_url": st.sampled_from(["https://hooks.test/a", "http://10.0.0.1:8080/b?c=d", "ftp://hooks.test"]),
    "webhook.additional_properties_json": st.none()
    | st.sampled_from(
        [f'{{"headers":[{{"name":"{name}","value":{value}}}]}}' for name in ("X-A", "Authorization") for value in ('"b"', "null")]
    ),
}


@cache
def record_commands(kind: type[Record], key: object) -> st.SearchStrategy[Command[Any]]:
    """Anything that may be asked of one record, its values made from its fields alone."""
    fields = {name: field for name, field in kind.DETAILS.model_fields.items() if name != "secrets"}
    values = {name: _field(kind, name, str(field.annotation)) for name, field in fields.items()}
    needed = {name: values.pop(name) for name, field in fields.items() if field.is_required()}
    return st.one_of(
        st.builds(RegisterRecord, st.just(key), st.just(kind), st.fixed_dictionaries(needed, optional=values)),
        st.builds(kind.amend.on, st.just(key), st.fixed_dictionaries({}, optional={**needed, **values})),
        st.builds(kind.delete.on, st.just(key)),
    )


def _field(kind: type[Record], name: str, annotation: str) -> st.SearchStrategy[Any]:
    if name == "configuration_json" and issubclass(kind, ConfiguredRecord):
        return _configurations
    own = f"{kind.KIND}.{name}"
    return _OF_KIND[own] if own in _OF_KIND else _FIELDS[annotation]


def client_lives(name: str, *, longest: int = 20) -> st.SearchStrategy[list[Command[Any]]]:
    """Return sequences of commands for one client. Key ids are random in production, so no two keys share one here either."""
    roles = st.lists(st.sampled_from(["viewer", "operator", "admin"]), min_size=1, max_size=3).map(tuple)
    unnamed = NewKey("", "")
    asked: st.SearchStrategy[Command[Any]] = st.one_of(
        st.builds(RegisterClient, st.just(name), roles, st.just(unnamed)),
        st.builds(Client.change.on, st.just(name), roles, other_admins=st.booleans()),
        st.builds(Client.issue_key.on, st.just(name), st.just(unnamed), expire_others_after=st.none() | st.integers(0, 1000)),
        st.builds(
            Client.revoke_key.on,
            st.just(name),
            st.integers(0, 5).map(lambda number: f"{name} {number}"),
            other_admins=st.booleans(),
        ),
        st.builds(Client.delete.on, st.just(name), other_admins=st.booleans()),
    )

    def with_keys(commands: list[Command[Any]]) -> list[Command[Any]]:
        keys = (NewKey(f"{name} {number}", f"hash of {name} {number}") for number in count())
        return [_with_key(command, keys) for command in commands]

    return st.lists(asked, max_size=longest).map(with_keys)


def _with_key(command: Command[Any], keys: Iterator[NewKey]) -> Command[Any]:
    if isinstance(command, RegisterClient):
        return replace(command, first=next(keys))
    if isinstance(command, DecisionCommand) and command.method is Client.issue_key.method:
        return replace(command, arguments=(next(keys),))
    return command
