"""Kafka's jars, fetched once by their Maven coordinates (pom.xml) and kept in the user's cache."""

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
INSTEAD = "name a broker of your own by MEDIALEDGER_TEST_KAFKA=host:port"
NO_REGISTRY = f"open the way to its registry, or {INSTEAD}"
REMEDY = f"apt-get install openjdk-17-jre-headless maven, or {INSTEAD}"


class KafkaUnavailable(Exception):
    """One line on why there is no broker, and what to do about it."""


def program(name: str, environment: Mapping[str, str]) -> str:
    found = shutil.which(name, path=environment.get("PATH", ""))
    if found is None:
        raise KafkaUnavailable(f"Kafka needs {name}, which is not here: {REMEDY}")
    return found


def jars(environment: Mapping[str, str]) -> Path:
    """The folder of the jars. Processes that start at once wait for the one that fetches; a folder in place is whole."""
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


def version() -> str:
    """Of Kafka: the first dependency that pom.xml names."""
    found = ElementTree.parse(POM).findtext("{*}dependencies/{*}dependency/{*}version")
    assert found is not None
    return found


def _fetch(maven: str, folder: Path, *, environment: Mapping[str, str], lock: int) -> None:
    """Beside, and moved into place. Maven holds the lock too: one that outlives us is waited for before the next begins."""
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
        raise KafkaUnavailable(f"Maven cannot fetch Kafka ({_complaint(done.stdout + done.stderr)}): {NO_REGISTRY}")
    os.rename(draft, folder)


def _complaint(text: str) -> str:
    """The line of Maven's output that says what is wrong, without the advice behind it."""
    lines = [line.partition("[ERROR]")[2].strip() for line in text.splitlines() if "[ERROR]" in line]
    return (lines or ["no reason given"])[0].partition(" -> [Help")[0][:400]
