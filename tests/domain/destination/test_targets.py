"""The configurations of targets: what is required, what is refused, and what is kept apart as a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.channel.secrets import opened, split
from domain.destination.targets import FIELD, SECRETS, S3Config, SftpConfig, Target, parse_config
from domain.kernel.errors import Malformed

S3 = {"endpoint": "https://s3.example", "bucket": "b", "accessKeyId": "AK", "secretAccessKey": "sk"}
SFTP = {"host": "sftp.example", "path": "in", "username": "u", "password": "pw", "hostKey": "ssh-ed25519 AAAA"}
HTTP = {"url": "https://h.example/{contentId}.mp4", "headers": [{"name": "Authorization", "value": "Bearer x"}]}


def fields(target: Target, config: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Malformed) as refused:
        parse_config(target, json.dumps(config))
    return {error.field: error.message for error in refused.value.errors}


def apart(config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    separated = split(json.dumps(config), field=FIELD, members=SECRETS)
    return json.loads(separated.text), {json.loads(path)[-1]: secret for path, secret in separated.sent.items()}


def test_a_configuration_is_read_as_its_target_wants_it() -> None:
    s3, sftp = parse_config(Target.S3, json.dumps(S3)), parse_config(Target.SFTP, json.dumps({**SFTP, "port": 2222, "mine": 1}))
    assert isinstance(s3, S3Config)
    assert (s3.bucket, s3.prefix) == ("b", None)
    assert isinstance(sftp, SftpConfig)
    assert (sftp.host, sftp.port, sftp.host_key) == ("sftp.example", 2222, "ssh-ed25519 AAAA")
    assert "sk" not in repr(s3)
    assert "pw" not in repr(sftp)


@pytest.mark.parametrize("target", [Target.FACEBOOK, Target.TWITTER, Target.YOUTUBE, Target.MPX])
def test_of_platforms_any_object_is_kept(target: Target) -> None:
    parse_config(target, '{"anything": [1]}')
    with pytest.raises(Malformed):
        parse_config(target, "[]")


def test_what_is_missing_is_named_by_its_path() -> None:
    assert fields(Target.S3, {}) == dict.fromkeys(
        ("destinationJson.endpoint", "destinationJson.bucket", "destinationJson.accessKeyId"), "is required"
    )
    assert fields(Target.SFTP, {}).keys() == {"destinationJson.host", "destinationJson.path", "destinationJson.username"}
    assert fields(Target.HTTP, {}).keys() == {"destinationJson.url"}
    assert fields(Target.FILESYSTEM, {}).keys() == {"destinationJson.path"}
    assert fields(Target.CUSTOM, {}).keys() == {"destinationJson.cstm_streamUrl"}


@pytest.mark.parametrize(
    ("target", "config", "field"),
    [
        (Target.S3, {**S3, "endpoint": "ftp://s3.example"}, "endpoint"),
        (Target.S3, {**S3, "endpoint": "https://u:p@s3.example"}, "endpoint"),
        (Target.S3, {**S3, "prefix": "a/../b"}, "prefix"),
        (Target.S3, {**S3, "bucket": " "}, "bucket"),
        (Target.SFTP, {**SFTP, "port": 0}, "port"),
        (Target.SFTP, {**SFTP, "host": "a b"}, "host"),
        (Target.SFTP, {**SFTP, "path": "../../etc"}, "path"),
        (Target.HTTP, {**HTTP, "method": "DELETE"}, "method"),
        (Target.HTTP, {"url": "/only/a/path"}, "url"),
        (Target.HTTP, {**HTTP, "headers": [{"value": "x"}]}, "headers[0].name"),
        (Target.FILESYSTEM, {"path": ".."}, "path"),
        (Target.CUSTOM, {"cstm_streamUrl": "https://not.a.stream"}, "cstm_streamUrl"),
        (Target.CUSTOM, {"cstm_streamUrl": "rtmp://u:p@live.example/app"}, "cstm_streamUrl"),
    ],
)
def test_what_is_wrong_is_named_and_never_repeated(target: Target, config: dict[str, Any], field: str) -> None:
    names = fields(target, config)
    assert list(names) == [f"destinationJson.{field}"]
    assert not any(str(value) in names[f"destinationJson.{field}"] for value in config.values() if len(str(value)) > 3)


def test_secrets_are_kept_apart_and_other_members_stay() -> None:
    assert apart(S3) == ({**S3, "secretAccessKey": None}, {"secretAccessKey": "sk"})
    assert apart(SFTP) == ({**SFTP, "password": None}, {"password": "pw"})
    stream = {"cstm_streamUrl": "rtmp://live.example/app", "cstm_streamName": "key-1"}
    assert apart(stream) == ({**stream, "cstm_streamName": None}, {"cstm_streamName": "key-1"})
    assert apart({"yt_clientId": "id", "yt_refreshToken": "r"}) == (
        {"yt_clientId": "id", "yt_refreshToken": None},
        {"yt_refreshToken": "r"},
    )


def test_what_speaks_of_a_credential_is_a_secret_under_any_name() -> None:
    config = {"consumerSecret": "a", "useToken": True, "auth": {"user": "u", "passphrase": "b"}, "keyframes": "x"}
    assert apart(config) == (
        {"consumerSecret": None, "useToken": True, "auth": {"user": "u", "passphrase": None}, "keyframes": "x"},
        {"consumerSecret": "a", "passphrase": "b"},
    )


def test_of_headers_only_credentials_are_secrets_and_they_keep_their_places() -> None:
    config = {
        "url": "https://h.example/{x}",
        "headers": [{"value": "Bearer [1]", "name": "Authorization"}, {"name": "X-Site", "value": "nord"}],
    }
    text = json.dumps(config)
    separated = split(text, field=FIELD, members=SECRETS)
    assert separated.text == text.replace('"Bearer [1]"', "null")
    assert opened(separated.text, separated.sent, members=SECRETS) == config


def test_a_secret_belongs_to_the_addresses_of_the_objects_around_it() -> None:
    def holders(url: str) -> Any:
        return split(json.dumps({**HTTP, "url": url}), field=FIELD, members=SECRETS).holders['["headers",{"name":"Authorization"}]']

    assert holders("https://h.example/a") == holders("https://h.example/b")
    assert holders("https://h.example/a") != holders("https://evil.example/a")


@pytest.mark.parametrize(
    "text",
    [
        '{"headers": [{"name": "Authorization", "value": "s"}], "headers": []}',
        '{"password": "a", "PASSWORD": "b"}',
        '{"token": ["s"]}',
        '{"password": {"in": "s"}}',
        '{"headers": [{"name": "Cookie", "value": "s", "more": {"a": 1}}]}',
    ],
)
def test_what_could_hide_a_secret_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        split(text, field=FIELD, members=SECRETS)
