"""The task engine of a flow: its first flow configuration, parsed and without keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from api.media.flow import TaskEngine
from domain.channel.flow import first_flow
from domain.channel.secrets import split
from tests.domain.channel.texts_given import FLOW, STREAM, Place, changed, without

FIRST: Place = ("flows", 0)
TASK_ENGINE: dict[str, Any] = {
    "name": "main",
    "flowType": 0,
    "flowDetails": {"apiUrl": "http://api", "flowGuiUrl": "http://gui"},
    "streamingServerDetails": {
        "type": "SRVA",
        "primaryPublishingPoint": {"srvaApi": "http://srva/1"},
        "secondaryPublishingPoint": {"srvaApi": "http://srva/2"},
    },
    "outputStreams": [{**STREAM, "streamProtocol": 0}],
    "callbackUrls": ["http://callback"],
    "ismUrl": "http://ism",
}


def task_engine(text: str) -> dict[str, Any]:
    """Return the task engine as it is sent."""
    sent: dict[str, Any] = from_json(to_json(TaskEngine.of(first_flow(text)), by_alias=True))
    return sent


def test_it_is_the_first_flow_without_keys() -> None:
    second = {**FLOW["flows"][0], "name": "second"}
    for text in (json.dumps(FLOW), split(json.dumps({"flows": [*FLOW["flows"], second]})).text):
        assert task_engine(text) == TASK_ENGINE


@pytest.mark.parametrize("settings", [{}, {"not set": ""}, {"not set": "x"}], ids=str)
def test_with_srvb_settings_both_publishing_points_are_null(settings: dict[str, str]) -> None:
    details = task_engine(changed(FLOW, (*FIRST, "streamingServer", "streamingServerSpecific"), to=settings))
    assert details["streamingServerDetails"] == {
        "type": "SRVA",
        "primaryPublishingPoint": None,
        "secondaryPublishingPoint": None,
    }


@pytest.mark.parametrize(("sent", "number"), [("HLS", 0), ("hss", 1), ("DASH", 2), (3, 3), ("HLSe", 4), ("2", 2)])
def test_a_stream_has_a_number_and_null_for_what_is_not_configured(sent: object, number: int) -> None:
    stream = {"streamProtocol": sent, "vodCdnPrimaryUrl": "c", "vodOriginPrimaryUrl": "o"}
    assert task_engine(changed(FLOW, (*FIRST, "outputUrls"), to=[stream]))["outputStreams"] == [
        dict.fromkeys(STREAM) | stream | {"streamProtocol": number}
    ]


def test_without_callback_addresses_it_has_an_empty_list() -> None:
    assert task_engine(without(FLOW, (*FIRST, "taskEngineSpecific", "callbackUrls")))["callbackUrls"] == []
