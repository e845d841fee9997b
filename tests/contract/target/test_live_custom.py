"""The live side of a CUSTOM target: the address of its destination or its publication, shown without the key."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.support.targets.stages import guarded
from workers.adapters.targets.live_only import CustomTarget
from workers.adapters.targets.registry import TargetRegistry
from workers.ports.live import LiveIngest, live_face
from workers.ports.targets import PublicationOrder, TargetFailed

KEY = "marked-key-41aa"
ADDRESSES = {
    "rtmp://host.example/live": ("rtmp://host.example/live", "live", False),
    "rtmps://host.example:8443/app/a?token=marked": ("rtmps://host.example:8443/app/a", "app/a", True),
    "rtmp://[2001:db8::1]:9000/live?token=marked": ("rtmp://[2001:db8::1]:9000/live", "live", False),
}


async def opened(config: dict[str, Any], **options: Any) -> LiveIngest:
    target = CustomTarget(config, client=guarded())
    try:
        return await live_face(target).open_live(PublicationOrder(uuid4(), "event", options=options), None)
    finally:
        await target.close()


@pytest.mark.parametrize("url", ADDRESSES)
async def test_the_address_of_the_destination_is_pushed_to(url: str) -> None:
    ingest = await opened({"cstm_streamUrl": url, "cstm_streamName": KEY})
    assert (ingest.url, ingest.stream_name) == (url, KEY)
    [shown] = ingest.details["ingestionDetails"]
    assert (shown["rtmpServerUrl"], shown["rtmpApplicationName"], shown["isSsl"]) == ADDRESSES[url]
    assert shown["rtmpStreamName"] is None
    assert "marked" not in repr((ingest, ingest.details))


async def test_a_publication_may_have_an_address_of_its_own() -> None:
    own = {"cstm_streamUrl": "rtmp://other.example:9000/live", "cstm_streamName": "own"}
    ingest = await opened({"cstm_streamUrl": "rtmp://host.example/live", "cstm_streamName": KEY}, **own)
    assert (ingest.url, ingest.stream_name) == (own["cstm_streamUrl"], own["cstm_streamName"])


@pytest.mark.parametrize(
    "own",
    [
        "rtmp://other.example/live",
        "rtmps://host.example/live",
        "rtmp://host.example:1936/live",
        "rtmp://host.example@other.example/live",
    ],
)
async def test_the_key_of_the_destination_goes_to_its_own_server_only(own: str) -> None:
    config = {"cstm_streamUrl": "rtmp://host.example/live", "cstm_streamName": KEY}
    with pytest.raises(TargetFailed, match="cstm_streamName of the publication is required") as caught:
        await opened(config, cstm_streamUrl=own)
    assert (caught.value.kind, KEY in str(caught.value)) == ("publication", False)
    assert (await opened(config, cstm_streamUrl=own, cstm_streamName="own")).stream_name == "own"
    same = await opened(config, cstm_streamUrl="rtmp://HOST.example:1935/other")
    assert (same.url, same.stream_name) == ("rtmp://HOST.example:1935/other", KEY)


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "srt://host.example:9000", "http://host.example/live", "rtmp://", "rtmp://host:99999/live"]
)
async def test_what_is_no_address_of_a_stream_is_the_destinations_fault(url: str) -> None:
    with pytest.raises(TargetFailed) as caught:
        await opened({"cstm_streamUrl": url, "cstm_streamName": KEY})
    assert caught.value.kind == "destination"
    assert KEY not in str(caught.value)


async def test_a_stream_needs_its_name() -> None:
    with pytest.raises(TargetFailed, match="cstm_streamName"):
        await opened({"cstm_streamUrl": "rtmp://host.example/live"})


def test_targets_of_files_take_no_streams() -> None:
    with pytest.raises(TargetFailed, match="no live streams"):
        live_face(TargetRegistry(guarded)(8, {}))
