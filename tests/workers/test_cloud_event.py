"""Kafka records that the relay did not send: a writer to a topic can send any bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.consumers.timeline import Origin
from projections.log.reader import LoggedEvent
from workers.adapters.kafka import cloud_event

METADATA = '{"actor": "studio", "correlation_id": "c", "command_id": "d"}'
EVENT = LoggedEvent(7, "room:x", 1, "room.added", UUID(int=5), b"{}", METADATA, datetime(2031, 1, 2, tzinfo=UTC))
ORIGIN = Origin(UUID(int=1), 2)
SENT: dict[str, bytes | None] = dict(cloud_event.headers(EVENT, after=6, origin=ORIGIN))
some = st.none() | st.binary(max_size=40)


def test_what_the_relay_sends_is_read_as_it_was() -> None:
    event, after = cloud_event.logged_event(SENT.items(), b"{}")
    assert (event.position, event.key, event.topic, event.state, after) == (7, "x", "room.added", b"{}", 6)
    assert cloud_event.identity(SENT.items()) == (7, UUID(int=5), ORIGIN)


def test_a_state_that_is_left_out_is_referred_to() -> None:
    sent = dict(cloud_event.headers(replace(EVENT, state=b""), after=6, origin=ORIGIN))
    assert sent == {**SENT, "ce_dataref": b"/api/audit/events/?after=6&pageSize=1"}
    event, after = cloud_event.logged_event(sent.items(), b"")
    assert (event.position, event.event_id, event.state, after) == (7, UUID(int=5), b"", 6)


@pytest.mark.parametrize("name", ["ce_source", "ce_epoch", "ce_position", "ce_id"])
def test_an_identity_without_a_value_is_one_that_is_missing(name: str) -> None:
    with pytest.raises(KeyError):
        cloud_event.identity({**SENT, name: None}.items())


@pytest.mark.parametrize("name", ["ce_position", "ce_id", "ce_type", "ce_subject", "ce_sequence", "ce_after", "ce_time"])
def test_a_header_without_a_value_is_one_that_is_missing(name: str) -> None:
    with pytest.raises(KeyError):
        cloud_event.logged_event({**SENT, name: None}.items(), b"{}")


def test_a_record_without_a_value_is_of_another_product() -> None:
    with pytest.raises(ValueError, match="no value"):
        cloud_event.logged_event(SENT.items(), None)


@pytest.mark.parametrize("number", [b"-1", b"+1", b"1_0", b" 1", b"", b"9223372036854775808", b"9" * 5000, "\u0661".encode()])
@pytest.mark.parametrize("name", ["ce_position", "ce_sequence", "ce_after"])
def test_a_number_that_no_log_has_is_of_another_product(name: str, number: bytes) -> None:
    with pytest.raises(ValueError, match="outside the range"):
        cloud_event.logged_event({**SENT, name: number}.items(), b"{}")


@given(changed=st.dictionaries(st.sampled_from(sorted(SENT)), some), value=some)
def test_any_bytes_are_read_or_refused(changed: dict[str, bytes | None], value: bytes | None) -> None:
    """Any other error would stop the consumer at this record permanently."""
    try:
        position, _, _ = cloud_event.identity({**SENT, **changed}.items())
        event, after = cloud_event.logged_event({**SENT, **changed}.items(), value)
    except (KeyError, ValueError):
        return
    assert 0 <= position == event.position < 1 << 63
    assert 0 <= after < 1 << 63
    assert event.state == value
