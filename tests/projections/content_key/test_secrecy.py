"""No content key is in plain text in a table, in a log line or in a repr, in any encoding."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode

import pytest

from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import Core
from domain.content_key.handlers import ImportedKey
from domain.content_key.usage import KeyUse
from projections.content_key.usage import UsageCounts
from tests.api.media.test_configuration_secrecy import tables
from tests.projections.content_key.issuing import KID, SYSTEM, handlers_on, issue, key_request, let_an_hour_pass
from tests.support.clock import HandClock


def spellings(key: bytes) -> list[str]:
    """`tables` shows bytes as hexadecimal, so each spelling is also searched in hexadecimal."""
    little_endian = key[3::-1] + key[5:3:-1] + key[7:5:-1] + key[8:]  # as a GUID of PlayReady
    texts = {
        spelt for form in (key, little_endian) for spelt in (form.hex(), b64encode(form).decode(), urlsafe_b64encode(form).decode())
    }
    plain = {form.rstrip("=") for form in texts} | {f"{key.hex()[:8]}-{key.hex()[8:12]}", repr(key)[2:-1], str(list(key))}
    return [
        *plain,
        *(form.encode().hex() for form in plain),
        *(form.upper() for form in plain if set(form) <= set("0123456789abcdef-")),
    ]


async def test_no_table_and_no_log_line_holds_a_key(
    inner: Core, clock: HandClock, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    keys = handlers_on(inner)
    imported = ImportedKey(key_request("imported").purpose, b"an imported key\1")
    await keys.import_keys([imported], invocation=SYSTEM)
    issued = await issue(
        keys, key_request(), key_request(kid=KID, iv=bytes(16)), key_request(client="other", kid=KID), key_request("imported")
    )
    recorder = UsageRecorder(inner.executor, UsageCounts(inner.database), clock=clock)
    for _ in range(120):  # past a snapshot
        for key in issued:
            recorder.add(KeyUse(key.id, "studio", ("WIDEVINE",), "1", "t-1"))
        await recorder.flush()
        await let_an_hour_pass(inner)
    await inner.executor.stop()

    dumped = tables(database_url)
    assert {"events", "vault", "content_key_view", "snapshots", "unique_claims", "idempotency_keys"} <= dumped.keys()
    for place in ("events", "snapshots"):
        assert b"movie-1".hex() in dumped[place], "the search looks at what it should"
    places = [*dumped.items(), ("log", caplog.text), ("shown", f"{issued} {imported} {keys}")]
    assert imported.key == issued[3].key
    for key in issued:
        assert len(key.key) == 16
        for spelling in spellings(key.key):
            assert [place for place, text in places if spelling in text] == []
