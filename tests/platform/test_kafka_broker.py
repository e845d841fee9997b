"""The broker for tests and people: a real one that comes back with its records, and reports clearly why it cannot start."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from deploy.kafka.broker import Broker, BrokerError
from deploy.kafka.jars import KafkaUnavailable, jars
from tests.support.kafka import answering
from tests.support.waiting import first_line, python, until

STARTER = """
import sys, signal
from pathlib import Path
from deploy.kafka.broker import Broker
broker = Broker(Path(sys.argv[1]))
broker.start()
print(broker.bootstrap, flush=True)
signal.pause()
"""


def make_topic(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    finally:
        admin.close()


def produce(bootstrap: str, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    try:
        producer.send(topic, key=b"key", value=value).get(timeout=120)
    finally:
        producer.close(timeout=5)


def read(bootstrap: str, topic: str, *, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=120_000)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return [record.value for _, record in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()


def programs(folder: Path, *names: str, saying: str = "", code: int = 0) -> dict[str, str]:
    """Return an environment whose PATH has only these programs, each of which prints a text and ends."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho '{saying}' >&2\nexit {code}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def works_in(data: Path) -> list[str]:
    """Return the processes that were started with a file of this folder as an argument."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(f"{data}/") in path.read_bytes():
                processes.append(path.parent.name)
        except OSError:
            continue
    return processes


@pytest.mark.long
def test_what_was_acknowledged_is_there_however_the_broker_ended(tmp_path: Path) -> None:
    """The broker first dies with its killed starter. Then the program prints its address and stops when asked."""
    starter = python("-c", STARTER, str(tmp_path))
    bootstrap = first_line(starter)
    make_topic(bootstrap, "notes")
    produce(bootstrap, "notes", b"before the kill")
    starter.kill()
    starter.communicate()
    until(lambda: not works_in(tmp_path))

    program = python("-m", "deploy.kafka.broker", "--port", bootstrap.rpartition(":")[2], "--data", str(tmp_path))
    lines = [first_line(program) for _ in range(3)]
    assert str(tmp_path) in lines[1]
    assert lines[2].endswith(f"MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS={bootstrap} make run")
    produce(bootstrap, "notes", b"before the stop")
    program.send_signal(signal.SIGINT)
    output, complaint = program.communicate(timeout=120)
    assert (output, complaint, program.returncode) == ("", "", 0)
    assert not works_in(tmp_path)

    broker = Broker(tmp_path, port=int(bootstrap.rpartition(":")[2]))
    try:
        assert broker.start() == bootstrap
        assert answering(bootstrap) == bootstrap
        assert broker.running
        assert read(bootstrap, "notes", count=2) == [b"before the kill", b"before the stop"]
    finally:
        broker.stop()
    assert not broker.running


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(BrokerError, match="in use"):
        Broker(tmp_path, port=other.getsockname()[1]).start()


@pytest.mark.parametrize(("present", "missing"), [((), "java"), (("java",), "mvn")])
def test_without_java_or_maven_it_says_what_to_install(tmp_path: Path, present: tuple[str, ...], missing: str) -> None:
    environment = programs(tmp_path / "bin", *present)
    with pytest.raises(KafkaUnavailable) as caught:
        Broker(tmp_path / "kafka", environment=environment).start()
    assert str(caught.value) == (
        f"Kafka needs {missing}, which is not installed: apt-get install openjdk-17-jre-headless maven, "
        "or set MEDIALEDGER_TEST_KAFKA=host:port"
    )


def test_an_older_java_is_named_as_such(tmp_path: Path) -> None:
    refusal = "java.lang.UnsupportedClassVersionError: kafka/tools/StorageTool"
    environment = programs(tmp_path / "bin", "java", saying=refusal, code=1)
    environment["XDG_CACHE_HOME"] = str(jars(os.environ).parents[1])
    with pytest.raises(KafkaUnavailable, match="Java 17 or newer: apt-get install"):
        Broker(tmp_path / "kafka", environment=environment).start()


@pytest.mark.long
def test_a_failed_download_is_reported_and_leaves_no_broker(tmp_path: Path) -> None:
    """Maven has an empty repository, and a proxy on which nothing listens."""
    unreachable = f"-Dmaven.repo.local={tmp_path}/m2 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    environment = {**os.environ, "MAVEN_OPTS": unreachable, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(KafkaUnavailable, match=r"Maven cannot fetch Kafka .* MEDIALEDGER_TEST_KAFKA") as caught:
        Broker(tmp_path / "kafka", environment=environment).start()
    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "cache" / "medialedger").iterdir()] == ["kafka.lock"]


@pytest.mark.parametrize("named", ["127.0.0.1:1", "nonsense"])
def test_a_named_broker_that_does_not_answer_is_an_error(named: str) -> None:
    with pytest.raises(KafkaUnavailable, match="MEDIALEDGER_TEST_KAFKA"):
        answering(named)
