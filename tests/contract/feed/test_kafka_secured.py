"""A broker that wants TLS and a password: the relay and the feed reach it by their settings, and nobody sees the password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from api.wiring.core import Core
from deploy.kafka.broker import HOST, Broker
from domain.kernel.errors import Unavailable
from projections.consumers.timeline import timeline
from projections.kernel.background_task import OperatorNeeded
from projections.log.log_watcher import LogWatcher
from tests.contract.feed.test_feeds import fetched, relayed, some_writes
from tests.contract.feed.transports import KINDS, relaying
from tests.projections.log.helpers import until
from workers.adapters.kafka.cluster import cluster_id
from workers.adapters.kafka.connection import KafkaConnection
from workers.adapters.kafka.feed import KafkaFeed
from workers.adapters.kafka.publisher import KafkaPublisher
from workers.adapters.kafka.topics import Topics
from workers.kernel.log_feed import LogFeed

PASSWORD = "a-password-of-a-test"
_SECURED = """
listener.security.protocol.map=CLIENT:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.client.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.client.scram-sha-256.sasl.jaas.config={scram} required username="ledger" password="{password}";
listener.name.client.scram-sha-512.sasl.jaas.config={scram} required username="ledger" password="{password}";
listener.name.client.plain.sasl.jaas.config={plain} required user_ledger="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
"""


def certificate(folder: Path) -> Path:
    """Create a self-signed certificate for the address of the broker, with its key in `broker.pem`."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a broker of a test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    text = made.public_bytes(Encoding.PEM)
    (folder / "ca.pem").write_bytes(text)
    (folder / "broker.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + text)
    return folder / "ca.pem"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    folder = tmp_path_factory.mktemp("secured")
    authority = certificate(folder)
    broker = Broker(
        folder / "kafka",
        settings=_SECURED.format(
            scram="org.apache.kafka.common.security.scram.ScramLoginModule",
            plain="org.apache.kafka.common.security.plain.PlainLoginModule",
            password=PASSWORD,
            folder=folder,
        ),
        scram=[f"SCRAM-SHA-{bits}=[name=ledger,password={PASSWORD}]" for bits in (256, 512)],
    )
    try:
        yield KafkaConnection(
            broker.start(),
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            username="ledger",
            password=PASSWORD,
            ca_file=authority,
        )
    finally:
        broker.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_each_mechanism_is_let_in(secured: KafkaConnection, mechanism: str) -> None:
    assert await cluster_id(replace(secured, sasl_mechanism=mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_with_a_wrong_password_it_says_what_to_check_and_never_the_password(secured: KafkaConnection, mechanism: str) -> None:
    wrong = replace(secured, sasl_mechanism=mechanism, password="another-password")
    with pytest.raises(Unavailable, match="MEDIALEDGER_KAFKA_PASSWORD") as refusal:
        await cluster_id(wrong)
    assert "another-password" not in f"{refusal.value!r} {wrong!r}"


async def test_a_broker_with_another_certificate_is_not_spoken_to(secured: KafkaConnection, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        await cluster_id(replace(secured, ca_file=certificate(tmp_path / "other")))


async def test_the_log_goes_through_and_kafka_shows_how_far_the_consumer_is(
    inner: Core, log_watcher: LogWatcher, secured: KafkaConnection, topics_prefix: str, database_url: str
) -> None:
    connection, topics = replace(secured, replication_factor=1, min_in_sync_replicas=1), Topics(topics_prefix)
    async with relaying(inner, log_watcher, bootstrap=connection, topics=topics) as name:
        head = await some_writes(inner, 20)
        await until(lambda: relayed(database_url, name) == head)
    past, group = LogFeed(inner.database, log_watcher, kinds=KINDS), topics.group("test")
    feed = KafkaFeed(connection, topics, database=inner.database, past=past, kinds=KINDS, groups=[group], hint_every=0.0)
    assert await fetched(feed, 0, through=head, close=False) == list(range(1, head + 1))
    offsets: dict[str, int] = {}
    async with asyncio.timeout(60):
        while sum(offsets.values()) < head:
            await feed.fetch(head)
            offsets = await asyncio.to_thread(_committed, connection, group)
    await feed.close()
    assert await asyncio.to_thread(_min_isr, connection, topics.of("event")) == "1"


async def test_more_replicas_than_brokers_need_an_operator(inner: Core, secured: KafkaConnection, topics_prefix: str) -> None:
    connection = replace(secured, replication_factor=3)
    cluster = await cluster_id(secured)
    publisher = KafkaPublisher(connection, Topics(topics_prefix), kinds=["event"], cluster=cluster)
    with pytest.raises(OperatorNeeded, match="InvalidReplicationFactor"):
        await publisher.begin((await timeline(inner.database)).origin)
    await publisher.close()


def _committed(connection: KafkaConnection, group: str) -> dict[str, int]:
    admin = KafkaAdminClient(**connection.arguments)
    try:
        offsets = admin.list_group_offsets(group)[group]
        return {str(partition): committed.offset for partition, committed in offsets.items() if committed.offset > 0}
    finally:
        admin.close()


def _min_isr(connection: KafkaConnection, topic: str) -> str:
    admin = KafkaAdminClient(**connection.arguments)
    try:
        asked = ConfigResource("TOPIC", topic, ["min.insync.replicas"])
        return str(admin.describe_configs([asked], config_filter="all")["topic"][topic]["min.insync.replicas"]["value"])
    finally:
        admin.close()
