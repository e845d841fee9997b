"""One Kafka broker in KRaft mode, as a process of ours: for tests, and for people by `make kafka`.

It is its own controller, keeps everything in one folder, listens on loopback only and dies with the process that started it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.kafka.jars import REMEDY, KafkaUnavailable, jars, program, version

HOST = "127.0.0.1"
START_SECONDS = 120.0
STOP_SECONDS = 30.0
_POLL = 0.02
_STARTED = b"Kafka Server started"
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# The machine is shared with what is tested: a small heap, the simplest collector, only the quick compiler.
_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="kafka-broker")
# PR_SET_PDEATHSIG = 1. Set in the child before it becomes Java; a parent that is gone already is noticed by its number.
_LEASH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]): os.execv(sys.argv[2], sys.argv[2:])
"""
_SETTINGS = """\
# Written by deploy/kafka/broker.py at every start.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=CLIENT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=CLIENT://{host}:{port}
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
controller.listener.names=CONTROLLER
log.dirs={records}
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# A killed broker may come back only when its former session is over; 9 s is the default.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=16777216
"""


class BrokerError(Exception):
    """One line on why the broker does not run."""


class Broker:
    """The broker of one folder. `start` and `stop` block. The port that the first start finds is kept for the next ones."""

    def __init__(self, data: Path, *, port: int = 0, environment: Mapping[str, str] | None = None) -> None:
        self.data = data.resolve()
        self.log = self.data / "broker.log"
        self.port = port
        self._records = self.data / "records"
        self._environment = dict(os.environ if environment is None else environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """The bootstrap address, once clients are answered there."""
        if self.running:
            return self.bootstrap
        java = [program("java", self._environment), *_JVM, f"-Dlog4j2.configurationFile={_LOG_SETTINGS}"]
        java += ["-cp", f"{jars(self._environment)}/*"]
        self.data.mkdir(parents=True, exist_ok=True)
        self.port = self.port or _free_port()
        if _accepts(self.port):
            raise BrokerError(f"port {self.port} on {HOST} is in use; stop the other program, or choose another port")
        settings = self.data / "server.properties"
        settings.write_text(_SETTINGS.format(host=HOST, port=self.port, controller=_free_port(), records=self._records))
        if not (self._records / "meta.properties").exists():  # the last file that formatting writes
            self._format([*java, "kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(settings)])
        self._launch([*java, "kafka.Kafka", str(settings)])
        return self.bootstrap

    def stop(self) -> None:
        """As an operator stops it: what is buffered is written and the log is closed. One that hangs is killed."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """As an accident ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _format(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if "UnsupportedClassVersionError" in done.stderr:
            raise KafkaUnavailable(f"Kafka needs Java 17 or newer: {REMEDY}")
        if done.returncode:
            raise BrokerError(f"Kafka cannot make its folder {self._records}: {_complaint(done.stderr or done.stdout)}")

    def _launch(self, command: Sequence[str]) -> None:
        beginning = self.log.stat().st_size if self.log.exists() else 0
        self._process = _leashed(command, log=self.log, environment=self._environment)
        deadline = time.monotonic() + START_SECONDS
        while not (_STARTED in (said := self._said(beginning)) and _accepts(self.port)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLL)
                raise BrokerError(f"Kafka did not start: {_complaint(said.decode(errors='replace'))}; see {self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"Kafka was not ready within {START_SECONDS:.0f} s; see {self.log}")

    def _said(self, beginning: int) -> bytes:
        with self.log.open("rb") as file:
            file.seek(beginning)
            return file.read()


def _leashed(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process that the kernel kills when its starter dies, in a session of its own: Ctrl-C is ours to answer.

    To the kernel the starter is a thread. So one thread starts them all and stays: a caller may come from a pool of threads that
    is closed before the broker is.
    """
    leash = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *command]
    with log.open("ab") as out:
        started = _STARTER.submit(
            subprocess.Popen, leash, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        return started.result()


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5):
        return True
    return False


def _free_port() -> int:
    """Below those that the kernel gives to outgoing connections: a client that calls a stopped broker must not sit on its port."""
    lowest = int(_PORTS.read_text().split()[0]) if _PORTS.exists() else 32768
    candidates = (random.randrange(max(lowest - 16384, 1024), lowest) for _ in range(100))
    return next(port for port in candidates if not _accepts(port))


def _cluster_id() -> str:
    """Without "-" and "_": one that began with "-" would be taken for an option."""
    return base64.b64encode(uuid.uuid4().bytes, altchars=b"AB").rstrip(b"=").decode()


def _complaint(text: str) -> str:
    """The line of Java's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    grave = [line for line in lines if "Exception" in line or " FATAL " in line or " ERROR " in line]
    return (grave or lines or ["no reason given"])[0][:300]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m deploy.kafka.broker", description="Run a Kafka broker until Ctrl-C.")
    parser.add_argument("--port", type=int, default=9092, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path(".kafka"), metavar="FOLDER", help="kept (default: %(default)s)")
    given = parser.parse_args()
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: asked.set())
    broker = Broker(given.data, port=given.port)
    try:
        _run(broker, asked)
    except (BrokerError, KafkaUnavailable) as error:
        sys.exit(f"error: {error}")
    finally:
        broker.stop()


def _run(broker: Broker, asked: threading.Event) -> None:
    print(f"Kafka {version()} starts; the first time it is downloaded", flush=True)
    print(f"Kafka answers at {broker.start()}, its data is in {broker.data}; Ctrl-C stops it", flush=True)
    print(f"In another terminal: MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS={broker.bootstrap} make run", flush=True)
    while not asked.wait(0.2):
        if not broker.running:
            raise BrokerError(f"Kafka has stopped by itself; see {broker.log}")


if __name__ == "__main__":
    main()
