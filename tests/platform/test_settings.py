from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import SecretStr

from api.wiring.settings import MASK, VARIABLES, Settings
from api.wiring.settings_checks import SettingsError
from workers.ports.buckets import BucketAddress

ADMIN_KEY = "a-very-secret-admin-key"
URL = "postgresql://ledger:pass%40word@db.example:5433/media?sslmode=require"


def test_without_any_variable_everything_has_a_default() -> None:
    settings = Settings.from_env({})
    home = Path(".medialedger").absolute()
    assert (settings.home, settings.host, settings.port) == (home, "127.0.0.1", 8080)
    assert settings.database_url is None
    assert settings.admin_api_key is None
    assert settings.master_key_file == home / "master.key"
    assert settings.media_root == home / "media"
    assert settings.outbound_allow == ()
    assert (settings.log_level, settings.shutdown_seconds) == ("INFO", 10)


def test_an_argument_goes_before_the_environment_and_the_listing_says_so() -> None:
    settings = Settings.from_env({"MEDIALEDGER_PORT": "9000", "MEDIALEDGER_HOST": "::1"}, {"port": "9001", "home": "/srv/a"})
    assert (settings.port, settings.host, settings.master_key_file) == (9001, "::1", Path("/srv/a/master.key"))
    origins = {line.name: line.origin for line in settings.listing()}
    assert [origins[f"MEDIALEDGER_{name}"] for name in ("PORT", "HOST", "LOG_LEVEL")] == ["argument", "environment", "default"]
    with pytest.raises(SettingsError, match=r"^--port must be a whole number"):
        Settings.from_env({}, {"port": "x"})


def test_paths_follow_the_home_unless_they_are_given() -> None:
    settings = Settings.from_env({"MEDIALEDGER_HOME": "/srv/HOME", "MEDIALEDGER_MEDIA_ROOT": "/media/HOME"})
    assert settings.master_key_file == Path("/srv/HOME/master.key")
    assert settings.media_root == Path("/media/HOME")


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("HOST", "::1", "host", "::1"),
        ("HOST", "[::1]", "host", "::1"),
        ("PORT", " 9000 ", "port", 9000),
        ("PORT", "0", "port", 0),
        ("DATABASE_URL", URL, "database_url", URL),
        ("DATABASE_URL", "host=db dbname=media", "database_url", "host=db dbname=media"),
        ("DATABASE_URL", "", "database_url", None),
        ("ADMIN_API_KEY", ADMIN_KEY, "admin_api_key", ADMIN_KEY),
        ("OUTBOUND_ALLOW", "10.0.0.0/8, ::1", "outbound_allow", (ip_network("10.0.0.0/8"), ip_network("::1/128"))),
        ("LOG_LEVEL", "debug", "log_level", "DEBUG"),
        *(("LOG_FORMAT", text, "log_format", text.lower()) for text in ("auto", "json", "TEXT")),
        ("MEDIA_ROOT", "2024", "media_root", Path("2024").absolute()),
        ("PORT", "0" * 15 + "9000", "port", 9000),
        ("SHUTDOWN_SECONDS", "0", "shutdown_seconds", 0),
        ("PORT", "  ", "port", 8080),
        ("PUBLIC_URL", "https://media.example:8443/", "public_url", "https://media.example:8443"),
        ("PUBLIC_URL", "", "public_url", None),
        ("CORS_ORIGINS", "*", "cors_origins", ("*",)),
        (
            "CORS_ORIGINS",
            "https://A.example:443, http://[::1]:80,http://b:8",
            "cors_origins",
            ("https://a.example", "http://[::1]", "http://b:8"),
        ),
    ],
)
def test_a_variable_is_read(name: str, text: str, field: str, value: object) -> None:
    read = getattr(Settings.from_env({f"MEDIALEDGER_{name}": text}), field)
    assert (read.get_secret_value() if isinstance(read, SecretStr) else read) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "http"),
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "9" * 5000),
        ("PORT", "²"),
        ("HOST", "http://localhost"),
        ("HOST", "two hosts"),
        ("HOME", "~nobody-of-that-name/x"),
        ("DATABASE_URL", "host=db sekret"),
        ("DATABASE_URL", "mysql://u:sekret@db/media"),
        ("ADMIN_API_KEY", "sekret"),
        ("ADMIN_API_KEY", "secretsecretsecret"),
        ("ADMIN_API_KEY", "sekret with blanks in it"),
        ("OUTBOUND_ALLOW", "10.0.0.1/8"),
        ("OUTBOUND_ALLOW", "intranet"),
        ("LOG_LEVEL", "LOUD"),
        ("SHUTDOWN_SECONDS", "1.5"),
        ("PUBLIC_URL", "media.example"),
        *(
            ("CORS_ORIGINS", wrong)
            for wrong in ("*,https://a.example", "null", "https://a.example/", "https://*.example", "ftp://a")
        ),
        ("PUBLIC_URL", "https://media.example/api"),
        ("PUBLIC_URL", "https://media.example:x"),
        ("PUBLIC_URL", "https://[media"),
        ("CONNECTIONS", "0"),
        ("CONNECTIONS", "0" * 11 + "1" + "9" * 8),
        ("LOG_PARTITION_EVENTS", "1000000000000"),
        ("LOG_FORMAT", "xml"),
        ("SEAL_BUCKET", "5"),
        ("SEAL_TIMESTAMP_URL", "http://["),
        ("DATABASE_URL", "\udcff"),
        ("S3_ENDPOINT", "https://user:sekret@s3.example"),
        ("KAFKA_BOOTSTRAP_SERVERS", "user:sekret@kafka:9092"),
        ("OUTBOUND_ALLOW", "user:sekret@host"),
        ("OUTBOUND_ALLOW", "a" * 10_000),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_variable_and_no_secret(name: str, text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({f"MEDIALEDGER_{name}": text})
    line = str(refusal.value)
    assert line.startswith(f"MEDIALEDGER_{name} must be ")
    assert "\n" not in line
    assert "sekret" not in line
    assert len(line) < 500
    assert not any(python in line for python in ("codec", "Invalid IPv6"))


@pytest.mark.parametrize("url", [URL, "user=ledger password='pass@word' host=db", "postgresql://db/x?password=pass%40word"])
def test_secrets_are_masked_wherever_settings_are_shown(url: str) -> None:
    settings = Settings.from_env({"MEDIALEDGER_DATABASE_URL": url, "MEDIALEDGER_ADMIN_API_KEY": ADMIN_KEY})
    for shown in (repr(settings), str(settings), f"{settings.listing()}"):
        assert ADMIN_KEY not in shown
        assert "pass@word" not in shown
        assert "pass%40word" not in shown
        assert f"password={MASK}" in shown


def test_the_listing_says_where_each_value_comes_from() -> None:
    listing = Settings.from_env({"MEDIALEDGER_PORT": "9000", "MEDIALEDGER_HOST": ""}).listing()
    assert [line.name for line in listing] == [variable.name for variable in VARIABLES]
    assert all(line.meaning for line in listing)
    assert {line.name for line in listing if line.origin == "environment"} == {"MEDIALEDGER_PORT"}


def test_variables_that_mean_nothing_are_named() -> None:
    settings = Settings.from_env({"MEDIALEDGER_PROT": "1", "MEDIALEDGER_PORT": "1", "PORT": "2", "MEDIALEDGER_A": ""})
    assert settings.unknown == ("MEDIALEDGER_A", "MEDIALEDGER_PROT")


KAFKA = {
    "MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9093",
    "MEDIALEDGER_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
    "MEDIALEDGER_KAFKA_SASL_MECHANISM": "scram-sha-512",
    "MEDIALEDGER_KAFKA_USERNAME": "ledger",
    "MEDIALEDGER_KAFKA_PASSWORD": "a-secret-of-kafka",
    "MEDIALEDGER_KAFKA_REPLICATION_FACTOR": "3",
}


def test_kafka_is_reached_as_the_settings_say_and_its_password_is_not_shown() -> None:
    settings = Settings.from_env(KAFKA)
    kafka = settings.kafka
    assert kafka is not None
    arguments = kafka.arguments
    assert (arguments["security_protocol"], arguments["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (arguments["sasl_plain_username"], arguments["sasl_plain_password"]) == ("ledger", "a-secret-of-kafka")
    assert (kafka.replication_factor, kafka.min_in_sync_replicas) == (3, None)
    assert "a-secret-of-kafka" not in f"{settings!r} {kafka!r} {settings.listing()}"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"PASSWORD": ""}, "MEDIALEDGER_KAFKA_PASSWORD must be set"),
        ({"SECURITY_PROTOCOL": "SSL"}, "MEDIALEDGER_KAFKA_SASL_MECHANISM must stay empty"),
        ({"SASL_MECHANISM": "GSSAPI"}, "MEDIALEDGER_KAFKA_SASL_MECHANISM must be one of"),
        ({"CA_FILE": "/nowhere/ca.pem"}, "MEDIALEDGER_KAFKA_CA_FILE must be a file"),
        ({"CA_FILE": "/" + "a" * 5000}, "MEDIALEDGER_KAFKA_CA_FILE must be a file"),
        ({"MIN_IN_SYNC_REPLICAS": "0"}, "MEDIALEDGER_KAFKA_MIN_IN_SYNC_REPLICAS must be"),
    ],
)
def test_half_of_the_settings_of_kafka_is_an_error(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        Settings.from_env(KAFKA | {f"MEDIALEDGER_KAFKA_{name}": text for name, text in changes.items()})


def test_the_media_root_may_be_a_bucket(tmp_path: Path) -> None:
    home = {"MEDIALEDGER_HOME": str(tmp_path), "MEDIALEDGER_MEDIA_ROOT": "s3://vod-media/live/2026/"}
    settings = Settings.from_env(home)
    assert str(settings.media_root) == "s3://vod-media/live/2026"
    assert settings.media_directory == tmp_path / "work"
    address = settings.media_bucket
    assert address == BucketAddress("vod-media", "live/2026", path_style=False)
    keys = {"MEDIALEDGER_S3_ACCESS_KEY": "id", "MEDIALEDGER_S3_SECRET_KEY": "hidden", "MEDIALEDGER_S3_ENDPOINT": "http://s3:9000"}
    settings = Settings.from_env({**home, **keys, "MEDIALEDGER_MEDIA_WORK": "/work"})
    assert settings.media_directory == Path("/work")
    assert settings.media_bucket == BucketAddress("vod-media", "live/2026", "http://s3:9000", access_key="id", secret_key="hidden")
    assert "hidden" not in f"{settings!r} {settings.listing()} {settings.media_bucket!r}"


def test_a_directory_is_no_bucket(tmp_path: Path) -> None:
    settings = Settings.from_env({"MEDIALEDGER_MEDIA_ROOT": str(tmp_path)})
    assert (settings.media_bucket, settings.media_directory) == (None, tmp_path)


@pytest.mark.parametrize(
    "text", ["s3://", "s3:bucket", "s3://B", "s3://bucket/../x", "s3://bucket/.x", "s3://bucket//x//y", "S3://bucket"]
)
def test_a_bucket_that_cannot_be_one_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="s3://bucket/prefix"):
        Settings.from_env({"MEDIALEDGER_MEDIA_ROOT": text})


def test_an_access_key_without_its_secret_is_refused() -> None:
    with pytest.raises(SettingsError, match="MEDIALEDGER_S3_SECRET_KEY must be set together"):
        Settings.from_env({"MEDIALEDGER_S3_ACCESS_KEY": "id"})


def test_media_are_served_where_that_is_said_or_the_product_is_complete() -> None:
    assert Settings.from_env({}).media_serve is None
    assert Settings.from_env({}).complete().media_serve is True
    assert Settings.from_env({"MEDIALEDGER_MEDIA_SERVE": "off"}).complete().media_serve is False
