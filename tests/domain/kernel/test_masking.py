"""Masking of credentials in job parameters."""

from __future__ import annotations

import json
import signal
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel.credentials import hints_at_credential, speaks_of_credential
from domain.kernel.internal_addresses import InternalAddresses
from domain.kernel.masking import (
    clean_line,
    mask_secrets,
    mask_secrets_in_texts,
    masked,
    masked_for_strangers,
    masked_headers,
    secret_texts,
)
from domain.kernel.token_patterns import MASK
from tests.domain.kernel.secrets_given import ADDRESSES, GIVEN, HARMLESS_ADDRESSES, TOKENS

SPEAKING = [
    "password", "PASSWORD", "dbPassword", "passwd", "passWord", "passphrase", "pass", "ftp_pass", "pwd", "secret",
    "clientSecret", "client_secret", "secretAccessKey", "token", "accessToken", "token2", "OAuth2Token", "key", "keys",
    "apiKey", "api-key", "API_KEY", "APIKey", "apikey", "srvaApiKey", "privatekey", "accessKeyId", "authorization",
    "Proxy-Authorization", "auth", "oauth", "cookie", "Set-Cookie", "credential", "awsCredentials", "signature",
    "pin", "doorPin", "sas", "hmac", "bearer", "Kennwort", "otp", "to\u212aen", "\uff30assword",
    "X-Amz-Signature", "session", "jwt", "keyframeSecret", "authorKey", "pw", "dbPw", "pswd", "cred", "creds", "psk", "tok", "dsn",
    "connectionString", "wachtwoord", "contraseña", "mot_de_passe", "motDePasse", "senha",
]  # fmt: skip
MAYBE = ["license", "licence", "login", "sk", "ftpLogin"]
HARMLESS = [
    "keyframes", "keyFrameInterval", "key_frames", "monkey", "hockey", "Turkey", "keywords", "keyboard", "keynote", "chromaKey",
    "author", "authors", "secretary", "twoPass", "2pass", "multi_pass", "bypass", "passage", "passes", "title", "url", "content_id",
    "custom_data", "sha256", "size", "file_name", "", "ключ", "name", "value", "pinned", "spinning", "Sasha",
    "option", "significant",
]  # fmt: skip


@pytest.mark.parametrize("name", SPEAKING)
def test_what_stands_under_a_name_that_speaks_of_a_credential_is_masked(name: str) -> None:
    assert speaks_of_credential(name)
    for value in ("hunter2", "", 7, 1.5, True, ["a", {"b": "c"}], {"a": "b"}):
        assert masked({"a": [{name: value}]}) == {"a": [{name: MASK}]}
    assert masked({name: None}) == {name: None}


@pytest.mark.parametrize("name", MAYBE)
def test_what_may_be_a_credential_is_not_shown_to_everybody(name: str) -> None:
    assert not speaks_of_credential(name)
    assert masked({name: "hunter2", "text": f"{name}=hunter2"}) == {name: MASK, "text": f"{name}={MASK}"}


@pytest.mark.parametrize("name", HARMLESS)
def test_other_names_leave_what_they_hold(name: str) -> None:
    assert not speaks_of_credential(name)
    assert masked({name: ["a", 7, None]}) == {name: ["a", 7, None]}


@pytest.mark.parametrize(
    "name", [name for name in SPEAKING if name not in ("passWord", "ftp_pass", "doorPin", "dbPw", "motDePasse")]
)
def test_a_header_is_judged_more_strictly(name: str) -> None:
    assert hints_at_credential(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://host/a/b.mp4", "https://host/a/b.mp4"),
        ("HTTPS://user:pass@host:8080/a?b=c#d", "HTTPS://host:8080/a"),
        ("https://token@host", "https://host"),
        ("https://a@b@host/@x", "https://host/@x"),
        ("https://user:pa/ss@host/a", "https://"),
        ("https://user:pa?ss@host/a", "https://"),
        ("https://user:pa'\"ss@host/a", "https://host/a"),
        ("https://host?sig=x", "https://host"),
        ("https://host/a#t=1", "https://host/a"),
        ("s3://AKIA:abc@bucket/file", "s3://bucket/file"),
        ("srt://:9000?passphrase=0123456789", "srt://:9000"),
        ("rtmp://[::1]:1935/live?k=1", "rtmp://[::1]:1935/live"),
        ("ftp://u:p@h/ sftp://u:p@h/", "ftp://h/ sftp://h/"),
        ("see https://u:p@h/a?b=c and\nhttp://x/?y.", "see https://h/a and\nhttp://x/"),
        ("https://proxy/https://u:p@h/a?b", "https://proxy/https://h/a"),
        ("https://a:1,https://u:p@b:2/c", "https://a:1,https://b:2/c"),
        ("a://b://u:p@h", "a://b://h"),
        ("://", "://"),
        ("mail@host.test 50:50 a?b#c", "mail@host.test 50:50 a?b#c"),
    ],
)
def test_urls_lose_userinfo_query_and_fragment(text: str, shown: str) -> None:
    assert masked(text) == masked(shown) == shown
    assert masked({"url": [text]}) == {"url": [shown]}
    assert list(masked({text: 1})) == [shown]


def test_json_inside_a_text_is_masked_too() -> None:
    assert json.loads(masked('{"a": "b", "password": "x"}')) == {"a": "b", "password": MASK}
    assert json.loads(masked({"custom": ' [{"u": "https://u:p@h/"}]'})["custom"]) == [{"u": "https://h/"}]
    assert json.loads(json.loads(masked(json.dumps([json.dumps({"token": "abcd"})])))[0]) == {"token": MASK}
    twice = '{"password": "hunter2", "password": null}'
    assert "hunter2" not in masked(twice)
    assert "hunter2" in secret_texts(twice)
    for harmless in ('{ "a" : 1.50 }', "[Live] Final", "{", '{"password": null}'):
        assert masked(harmless) == harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc", "Authorization: ****"),
        ("a=1&password=X&b=2", "a=1&password=****&b=2"),
        ("Server=db;Pwd=X;", "Server=db;Pwd=****;"),
        ("user: me\npassword: my pass phrase\nport: 1", "user: me\npassword: ****\nport: 1"),
        ("  - token: 'a b'", "  - token: ****"),
        ("password = X", "password = ****"),
        ("'password':X", "'password':****"),
        ("curl -H 'Bearer abcdefghijklm'", "curl -H 'Bearer ****'"),
        ("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln b", "a **** b"),
        ("x -----BEGIN RSA PRIVATE KEY-----\nabcd\n-----END RSA PRIVATE KEY----- y", "x **** y"),
        ("-----BEGIN PRIVATE KEY-----\nabcd", "****"),
        ("https://hooks.example/services/T01/aB3dEfGhIjKlMnOpQrStUv", "https://hooks.example/services/T01/****"),
        ('{"a": ' + "9" * 5000 + ', "password": "x"}', "****"),
        ('\ufeff{"password":"x"}', '{"password":"****"}'),
    ],
)
def test_credentials_in_texts_are_masked(text: str, shown: str) -> None:
    assert masked(text) == masked(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Sport: the final",
        "https://host/6f1c0d7e-9d7b-4f0e-8f43-0d3a5f9d7c11/a.mp4",
        "https://host/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN CERTIFICATE-----\nabcd\n-----END CERTIFICATE-----",
        "eyJ",
        "A bearer of news",
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert masked(text) == text


def test_a_list_of_name_and_value_is_masked() -> None:
    assert masked([["password", "X"], ["title", "X"], ["key", "b", "c"]]) == [["password", MASK], ["title", "X"], ["key", "b", "c"]]


def test_a_pair_is_masked_by_what_it_is_called() -> None:
    header = {"name": "Authorization", "value": "Bearer x"}
    assert masked({"headers": [header, {"name": "Accept", "value": "b"}]}) == {
        "headers": [{**header, "value": MASK}, {"name": "Accept", "value": "b"}]
    }
    assert masked({"key": "password", "value": "x"}) == {"key": MASK, "value": MASK}


def test_no_depth_breaks_it() -> None:
    deep: Any = "hunter2"
    for _ in range(199):
        deep = [{"a": deep}]
    assert "hunter2" not in json.dumps(masked({"password": deep}))
    for _ in range(3):
        deep = json.dumps([deep])
    masked({"a": deep})
    assert masked("[" * 50_000 + "]" * 50_000) == MASK


def _long(piece: str, size: int = 100_000) -> str:
    return piece * (size // len(piece))


def _encoded_within(levels: int) -> str:
    text = "a"
    for _ in range(levels):
        text = json.dumps(quote(json.dumps([text, {"password": "x"}]), safe=""))
    return text


@pytest.mark.parametrize(
    "text",
    [
        *map(_long, ("a://", "://", "?", "a@", ",a", "https://u:p@h/a?b ", "\u2028", "9", "{", "[", '"', "aA")),
        pytest.param(_long("eyJ-", 400_000), id="beginnings of tokens"),
        *(pytest.param(f"{key}:{_long(blank, 400_000)}x", id=f"{key}:{blank}x") for key in ("a", "key") for blank in " \t"),
        pytest.param("key:\n" + _long(" ", 400_000), id="an empty line below a key"),
        pytest.param(_long("key=****]", 400_000), id="masked values"),
        pytest.param(_long("key:\n- ****]\n", 400_000), id="masked lists"),
        pytest.param('{"a":1,"a":' * 300 + f"[{_long('1,', 600_000)}1]" + "}" * 300, id="the same name on all levels"),
        pytest.param("%" + "25" * 300, id="signs of percent"),
        pytest.param("password%" + "25" * 300 + "3Dx", id="a password after signs of percent"),
        pytest.param(_encoded_within(14), id="encoded documents in one another"),
    ],
)
def test_a_long_text_of_anything_is_masked_in_one_pass(text: str) -> None:
    """A masking that takes more than a minute of processor time needs more than one pass."""

    def late(*_: object) -> None:
        raise AssertionError("the time grows faster than the text")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    try:
        masked({text: text})
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_what_is_encoded_too_often_is_masked_as_a_whole() -> None:
    assert masked("a %25253D b") == "a %25253D b"
    assert masked("a password%25253Dhunter2 b") == masked("a password%2525252525253Dhunter2 b") == f"a {MASK} b"
    assert masked("a %2525253D b") == f"a {MASK} b"
    deep = "[" * 280 + json.dumps(quote("[" * 280 + '"hunter2"' + "]" * 280, safe="")) + "]" * 280
    assert "hunter2" not in masked(deep)


def test_a_token_is_found_after_a_hyphen_and_after_what_only_begins_like_one() -> None:
    assert masked("a-eyJhbGciOiJIUzI1NiJ9.e30.c2ln b") == "a-**** b"
    assert masked("eyJ.eyJ-eyJhbGciOiJIUzI1NiJ9.e30.c2ln") == "eyJ.****"
    assert masked("aeyJhbGciOiJIUzI1NiJ9.e30") == "aeyJhbGciOiJIUzI1NiJ9.e30"


def test_recorded_headers_show_no_credential() -> None:
    sent = {
        "API-KEY": "a",
        "x-auth-key": "b",
        "Authorization": "c",
        "Cookie": "d",
        "client": "admin",
        "Referer": "https://h/?key=e",
        "X-Forwarded-For": "10.1.2.3",
    }
    assert masked_headers(sent) == {**dict.fromkeys(list(sent)[:4], MASK), "client": "admin", "Referer": "https://h/"}


def test_what_was_taken_is_blotted_out_of_a_line() -> None:
    sent = {
        "url": "https://me:s%40crets@h/a?X-Sig=0123456789&profile=main",
        "srvaApiKey": 'say "when"',
        "nested": {"secret": {"pins": [123456, "abc", True]}},
    }
    secrets = secret_texts(sent)
    for line in (
        "GET https://me:s%40crets@h/a?X-Sig=0123456789&profile=main",
        "user me, password s@crets",
        "signed with 0123456789",
        'said say "when"',
        r'said {"x": "say \"when\""}',
        "said say%20%22when%22",
        "pin 123456",
    ):
        shown = mask_secrets(line, secrets)
        assert MASK in shown
        assert not any(secret in shown for secret in secrets)
    assert mask_secrets("me, the main profile, abc, True", secrets) == "me, the main profile, abc, True"
    assert secret_texts({"password": MASK, "token": None}) == frozenset()


def test_a_document_keeps_its_shape_when_it_is_blotted() -> None:
    """Masked as a text, the document would no longer be JSON: these secrets are parts of its syntax."""
    secrets = secret_texts({"password": 1000, "token": '{"size"', "apiKey": "true", "pin": "null"})
    document = {"size": 1000, "said": ["1000 true", {"null": None}], "ok": True}
    assert mask_secrets_in_texts(document, secrets) == {"size": 1000, "said": [f"{MASK} {MASK}", {MASK: None}], "ok": True}


_plain_names = st.sampled_from(["title", "size", "keyframes", "list", "author"])
_secret_names = st.sampled_from(["password", "apiKey", "client_secret", "x-auth-token", "Authorization", "sessionCookie"])
_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc é:/@?&=", max_size=12).filter(lambda text: "://" not in text),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_plain_names, inner, max_size=3),
    max_leaves=8,
)
_tails = st.sampled_from(["", "\n", ";a=b", "&a=b", "\na: b"])
_secrets = st.integers(0, 10**6).map(lambda number: f"s3cr3t{number:07}")
_spoken = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["password", "db.pwd", "X-Api-Key", "'token'"]),
    st.sampled_from(["=", ": ", ":", " = "]),
    _secrets,
    _tails,
)
_written = st.builds(
    lambda shape, name, secret: shape.replace("NAME", name).replace("SECRET", secret),
    st.sampled_from(
        [
            *(
                "--NAME SECRET -x",
                "run --NAME=SECRET",
                "<NAME>SECRET</NAME>",
                "<a NAME='SECRET'/>",
                "NAME => SECRET",
                "NAME\tSECRET",
            ),
            *("NAME%3DSECRET", "a=1&NAME=SECRET&b=2", 'NAME="a\\"SECRET"', "Accept: x\r\nNAME: SECRET\r\n", "-H 'NAME: SECRET'"),
            *("a:\n  NAME: SECRET\n", "NAME: >-\n  SECRET\n", "NAME:\n- SECRET\n", "a:\n  NAME:\n    b: SECRET\nc: 1\n"),
            *(
                'x={"NAME": "SECRET"}',
                'said {"NAME": "SECRET"} twice',
                '"{\\"NAME\\": \\"SECRET\\"}"',
                "x=%7B%22NAME%22%3A+%22SECRET%22%7D",
            ),
        ]
    ),
    st.sampled_from(["password", "apiKey", "client_secret", "x-auth-token", "Authorization", "Cookie"]),
    _secrets,
)
_commands = st.builds(lambda name, secret: ["run", f"--{name}", secret], st.sampled_from(["password", "api-key"]), _secrets)
_urls = st.builds("{}://u:{}@host/p?sig={}#{}".format, st.sampled_from(["http", "s3", "srt"]), _secrets, _secrets, _secrets)


def _holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    holder = st.lists(inner, max_size=3) | st.dictionaries(_plain_names, inner, max_size=3)
    return holder | holder.map(json.dumps) | st.dictionaries(_secret_names, inner | _secrets, min_size=1, max_size=2)


_with_secrets = st.recursive(
    _plain | _urls | _spoken | _written | _commands | st.dictionaries(_secret_names, _secrets, max_size=2), _holding, max_leaves=8
)


@given(_with_secrets)
def test_no_secret_is_left_and_masking_twice_is_masking_once(value: Any) -> None:
    shown = masked(value)
    assert "s3cr3t" not in json.dumps(shown)
    assert masked(shown) == shown
    assert secret_texts(shown) == frozenset()
    assert "s3cr3t" not in mask_secrets(json.dumps(value), secret_texts(value))


@given(_plain)
def test_without_secrets_nothing_changes(value: Any) -> None:
    assert masked(value) == value
    assert secret_texts(value) == frozenset()
    assert masked(json.dumps(value)) == json.dumps(value)


@pytest.mark.parametrize("token", TOKENS)
def test_a_credential_that_is_known_by_its_form_is_masked_everywhere(token: str) -> None:
    for text in (token, f"the server said {token}.", f'"{token}"', f"url={token}&a=b", f"{token} {token}"):
        assert token not in masked(text)
        assert token not in clean_line(text)
        assert token[:-4] in "".join(secret_texts(text))
    assert masked({"a": [token]}) == {"a": [MASK]}


@pytest.mark.parametrize(("text", "secret"), GIVEN)
def test_a_credential_is_recognised_by_the_text_before_it(text: str, secret: str) -> None:
    assert secret not in masked(text.format(secret))


def test_options_of_commands() -> None:
    assert masked(["mysql", "-p", "hunter2", "--psk", "abcd", "-n", "5"]) == ["mysql", "-p", MASK, "--psk", MASK, "-n", "5"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_strangers_see_no_address_of_the_inside(address: str) -> None:
    inside = InternalAddresses(["media.inside-test.example", "builder-3"])
    for text in (address, f"cannot open {address}", f"'{address}': 404", f'{{"url": {json.dumps(address)}}}', f"({address})"):
        shown = json.dumps(masked_for_strangers({"a": [text]}, inside))
        assert not any(spelling in shown for spelling in (address, json.dumps(address)[1:-1])), shown


@pytest.mark.parametrize("text", HARMLESS_ADDRESSES)
def test_strangers_see_addresses_of_others(text: str) -> None:
    assert masked_for_strangers(f"read {text} in 3.5 s", InternalAddresses()) == f"read {text} in 3.5 s"
