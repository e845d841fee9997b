"""Standard Webhooks signatures, compared with the example and the library of the specification."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Receiving

from domain.webhook.endpoint import decode_secret
from workers.webhook.sender.attempt import signatures


def test_the_example_of_the_specification() -> None:
    key = decode_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signatures([key], b'{"test": 2432232314}', message="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_keys_give_two_signatures_with_a_space_between() -> None:
    keys = [bytes(32), bytes(range(32))]
    first, two = (signatures([key], b"{}", message="m", timestamp=1) for key in keys)
    assert signatures(keys, b"{}", message="m", timestamp=1) == f"{first} {two}"


@given(st.binary(min_size=24, max_size=64), st.text(), st.integers(0, 2**33))
def test_the_library_of_the_specification_makes_the_same_signature(key: bytes, body: str, timestamp: int) -> None:
    theirs = Receiving(b64encode(key).decode()).sign("msg_1", datetime.fromtimestamp(timestamp, UTC), body)
    assert signatures([key], body.encode(errors="surrogatepass"), message="msg_1", timestamp=timestamp) == theirs


def test_the_library_of_the_specification_accepts_our_signature() -> None:
    now, key, body = int(datetime.now(UTC).timestamp()), bytes(32), '{"a":1}'
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": signatures([bytes(range(32)), key], body.encode(), message="msg_1", timestamp=now),
    }
    assert Receiving(b64encode(key).decode()).verify(body, headers) == {"a": 1}
