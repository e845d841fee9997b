"""Kafka's jars, downloaded once by Maven (pom.xml) to the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

POM = Path(__file__).with_name("pom.xml")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_SECONDS = 900
ALTERNATIVE = "set MEDIALEDGER_TEST_KAFKA=host:port"
NO_REGISTRY = f"allow access to its registry, or {ALTERNATIVE}"
REMEDY = f"apt-get install openjdk-17-jre-headless maven, or {ALTERNATIVE}"


class KafkaUnavailable(Exception):
    """Raised when no broker can run. The text is one line with the reason and a remedy."""


def program(name: str, environment: Mapping[str, str]) -> str:
    path = shutil.which(name, path=environment.get("PATH", ""))
    if path is None:
        raise KafkaUnavailable(f"Kafka needs {name}, which is not installed: {REMEDY}")
    return path


def jars(environment: Mapping[str, str]) -> Path:
    """Return the folder of the jars.

    Concurrent processes wait for the one that downloads; a folder with the final name is complete.
    """
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medialedger"
    folder = cache / f"kafka-{version()}-{hashlib.sha256(POM.read_bytes()).hexdigest()[:8]}"
    if not folder.exists():
        maven = program("mvn", environment)
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "kafka.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _fetch(maven, folder, environment=environment, lock=lock.fileno())
    return folder


def class_archive(java: str, folder: Path) -> Path:
    """Return the path of the JVM's archive of loaded classes for this Java and these jars.

    A start without one takes twice the time.
    """
    program = Path(java).resolve()
    made_for = hashlib.sha256(f"{program} {program.stat().st_mtime_ns}".encode()).hexdigest()[:8]
    return folder.with_name(f"{folder.name}-{made_for}.jsa")


def version() -> str:
    """Return the version of Kafka, which is that of the first dependency in pom.xml."""
    number = ElementTree.parse(POM).findtext("{*}dependencies/{*}dependency/{*}version")
    assert number is not None
    return number


def _fetch(maven: str, folder: Path, *, environment: Mapping[str, str], lock: int) -> None:
    """Download to another folder and rename it. Maven inherits the lock: the next process waits for it, also after a kill."""
    draft = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    command = [maven, "--quiet", "--batch-mode", "-Dstyle.color=never", "--file", str(POM)]
    command += [COPY, f"-DoutputDirectory={draft}", "-Dmaven.wagon.http.retryHandler.count=3"]
    try:
        done = subprocess.run(
            command, env=environment, pass_fds=[lock], capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise KafkaUnavailable(f"Maven did not fetch Kafka within {FETCH_SECONDS} s: {NO_REGISTRY}") from None
    if done.returncode:
        raise KafkaUnavailable(f"Maven cannot fetch Kafka ({_error_line(done.stdout + done.stderr)}): {NO_REGISTRY}")
    os.rename(draft, folder)


def _error_line(text: str) -> str:
    """Return the first error line of Maven's output, without the advice after it."""
    lines = [line.partition("[ERROR]")[2].strip() for line in text.splitlines() if "[ERROR]" in line]
    return (lines or ["no reason given"])[0].partition(" -> [Help")[0][:400]
