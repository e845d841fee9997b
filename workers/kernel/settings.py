"""Settings of parts of a process. A constructor asks for the one that it needs by its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from workers.ports.buckets import BucketAddress


@dataclass(frozen=True, slots=True)
class Identity:
    """The names of this process. `public_host` is the host name under which callers reach the API."""

    machine: str
    public_host: str
    version: str


@dataclass(frozen=True, slots=True)
class AggregateKinds:
    """All kinds of aggregates, and those whose events are relayed to Kafka."""

    all: frozenset[str]
    relayed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of the product, and the program that provisions templates; None to search the usual places."""

    path: Path
    terraform: Path | None = None


@dataclass(frozen=True, slots=True)
class MediaPlace:
    """The directory in which steps work on this machine. It holds media too, unless there is a bucket."""

    root: Path
    bucket: BucketAddress | None = None

    @property
    def directory(self) -> Path | None:
        """The directory of the media; None if they are in a bucket."""
        return self.root if self.bucket is None else None


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The number of steps of jobs that each queue of this process runs `at_once`; the seconds without a sign of life from a worker
    after which its steps are assigned to others; the seconds for which steps may continue when the process stops."""

    at_once: int = 4
    lease: float = 30.0
    drain: float = 10.0


@dataclass(frozen=True, slots=True)
class OutboundRules:
    """The networks that may be reached although they are not public, and the address of the built-in origin."""

    allow: Sequence[IPv4Network | IPv6Network] = ()
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class EncoderDevices:
    """True if encoders may read cameras and sound cards of the machine."""

    allowed: bool = False
