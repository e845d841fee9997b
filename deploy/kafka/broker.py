"""A Kafka broker in KRaft mode as a child process, for tests and `make kafka`.

It is its own controller, stores everything in one folder, listens on loopback only and ends with the process that started it.
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

from deploy.kafka.jars import REMEDY, KafkaUnavailable, class_archive, jars, program, version

HOST = "127.0.0.1"
START_SECONDS = 120.0
STOP_SECONDS = 30.0
_POLL = 0.02
_STARTED = b"Kafka Server started"
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# The machine also runs the tests: a small heap, the serial collector, only the first compiler.
_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="kafka-broker")
# PR_SET_PDEATHSIG = 1, set in the child before it executes Java. The comparison of the parent's id finds a parent that has ended.
_PARENT_DEATH_LAUNCHER = """
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
    """Raised when the broker does not run. The text is one line with the reason."""


class Broker:
    """The broker of one folder. `start` and `stop` block. The port of the first start is used again. `settings` are further lines
    of its properties, which replace those above them; `scram` are credentials for Kafka's storage tool."""

    def __init__(
        self,
        data: Path,
        *,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        settings: str = "",
        scram: Sequence[str] = (),
    ) -> None:
        self.data = data.resolve()
        self.log = self.data / "broker.log"
        self.port = port
        self._records = self.data / "records"
        self._environment = dict(os.environ if environment is None else environment)
        self._settings = settings
        self._scram = [part for argument in scram for part in ("--add-scram", argument)]
        self._process: subprocess.Popen[bytes] | None = None
        self._class_archive = Path()

    @property
    def _archive_draft(self) -> Path:
        return self._class_archive.with_suffix(f".{os.getpid()}-{id(self)}")

    def _keep_class_archive(self) -> None:
        """Store the archive of loaded classes that the first orderly stop wrote, for all later brokers."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._archive_draft, self._class_archive)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """Start the broker. Returns the bootstrap address when it accepts connections."""
        if self.running:
            return self.bootstrap
        java_program = program("java", self._environment)
        folder = jars(self._environment)
        self._class_archive = class_archive(java_program, folder)
        java = [java_program, *_JVM, f"-Dlog4j2.configurationFile={_LOG_SETTINGS}", "-cp", f"{folder}/*"]
        if self._class_archive.exists():
            java.insert(1, f"-XX:SharedArchiveFile={self._class_archive}")
        self.data.mkdir(parents=True, exist_ok=True)
        self.port = self.port or _free_port()
        if _accepts_connections(self.port):
            raise BrokerError(f"port {self.port} on {HOST} is in use; stop the other program, or choose another port")
        settings = self.data / "server.properties"
        common = _SETTINGS.format(host=HOST, port=self.port, controller=_free_port(), records=self._records)
        settings.write_text(common + self._settings)
        if not (self._records / "meta.properties").exists():  # the last file that formatting writes
            self._format([*java, "kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(settings), *self._scram])
        if not self._class_archive.exists():
            java.insert(1, f"-XX:ArchiveClassesAtExit={self._archive_draft}")
        self._launch([*java, "kafka.Kafka", str(settings)])
        return self.bootstrap

    def stop(self) -> None:
        """Stop in order: buffered records are written and the log is closed. A broker that does not end is killed."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
                self._keep_class_archive()
        self.kill()

    def kill(self) -> None:
        """Kill the broker, as in a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._archive_draft.unlink(missing_ok=True)

    def freeze(self) -> None:
        """Stop the broker like a machine that hangs: connections stay open, and nothing answers. `thaw` and `kill` end this."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen broker continue."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _format(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if "UnsupportedClassVersionError" in done.stderr:
            raise KafkaUnavailable(f"Kafka needs Java 17 or newer: {REMEDY}")
        if done.returncode:
            raise BrokerError(f"Kafka cannot create its folder {self._records}: {_error_line(done.stderr or done.stdout)}")

    def _launch(self, command: Sequence[str]) -> None:
        beginning = self.log.stat().st_size if self.log.exists() else 0
        self._process = _start_bound_to_parent(command, log=self.log, environment=self._environment)
        deadline = time.monotonic() + START_SECONDS
        while not (_STARTED in (output := self._read_log(beginning)) and _accepts_connections(self.port)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLL)
                raise BrokerError(f"Kafka did not start: {_error_line(output.decode(errors='replace'))}; see {self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"Kafka was not ready within {START_SECONDS:.0f} s; see {self.log}")

    def _read_log(self, beginning: int) -> bytes:
        with self.log.open("rb") as file:
            file.seek(beginning)
            return file.read()


def _start_bound_to_parent(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that the kernel kills when its parent ends, in a session of its own: Ctrl-C does not reach it.

    For the kernel the parent is a thread. So one permanent thread starts all brokers: the calling thread may end before the broker
    does.
    """
    launcher = [sys.executable, "-I", "-S", "-c", _PARENT_DEATH_LAUNCHER, str(os.getpid()), *command]
    with log.open("ab") as out:
        started = _STARTER.submit(
            subprocess.Popen, launcher, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        return started.result()


def _accepts_connections(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5):
        return True
    return False


def _free_port() -> int:
    """Return a free port below the range for outgoing connections.

    Otherwise a client that connects to a stopped broker could get its port.
    """
    lowest = int(_PORTS.read_text().split()[0]) if _PORTS.exists() else 32768
    candidates = (random.randrange(max(lowest - 16384, 1024), lowest) for _ in range(100))
    return next(port for port in candidates if not _accepts_connections(port))


def _cluster_id() -> str:
    """Return an id without "-" and "_": one that begins with "-" would be parsed as an option."""
    return base64.b64encode(uuid.uuid4().bytes, altchars=b"AB").rstrip(b"=").decode()


def _error_line(text: str) -> str:
    """Return the line of Java's output that names the error: the first one with a severity, else the first one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Exception" in line or " FATAL " in line or " ERROR " in line]
    return (errors or lines or ["no reason given"])[0][:300]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m deploy.kafka.broker", description="Run a Kafka broker until Ctrl-C.")
    parser.add_argument("--port", type=int, default=9092, help="0 is any free one (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path(".kafka"), metavar="FOLDER", help="the data (default: %(default)s)")
    given = parser.parse_args()
    stop_requested = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop_requested.set())
    broker = Broker(given.data, port=given.port)
    try:
        _run(broker, stop_requested)
    except (BrokerError, KafkaUnavailable) as error:
        sys.exit(f"error: {error}")
    finally:
        broker.stop()


def _run(broker: Broker, stop_requested: threading.Event) -> None:
    print(f"Kafka {version()} starts; the first time it is downloaded", flush=True)
    print(f"Kafka answers at {broker.start()}, its data is in {broker.data}; Ctrl-C stops it", flush=True)
    print(f"In another terminal: MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS={broker.bootstrap} make run", flush=True)
    while not stop_requested.wait(0.2):
        if not broker.running:
            raise BrokerError(f"Kafka has stopped by itself; see {broker.log}")


if __name__ == "__main__":
    main()
