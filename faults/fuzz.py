"""The key provider under documents that are wrong in every way: no crash, no 5xx, no key in any log.

The whole application runs in this process, on a separate PostgreSQL. Its log goes to a file, which is searched at the end for every
content key that was returned.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Final, TextIO

import httpx
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree

from api.kernel.log import JsonFormatter, RequestLog
from api.speke.rate import TokenBuckets
from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import core, prepare
from api.wiring.siblings import Alone, Siblings
from faults.mutations import CPIX, PSKC, Mutator
from tests.support.application import assembled, introduce
from tests.support.cpix.keys import DOCUMENTS, certificate
from tests.support.services import services
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient

NAME: Final = "fuzz"
MEANING: Final = "ten minutes of CPU of CPIX documents gone wrong"
FULL_SECONDS: Final = 600.0
QUICK_SECONDS: Final = 20.0
_AT_ONCE: Final = 8
_UNLIMITED: Final = 10**9
_LONGEST: Final = 300
_MOST_FAULTS: Final = 50
_KEY_BYTES: Final = 16
_PARSER: Final = frozenset({"SPEKE-4001", "SPEKE-4002", "SPEKE-4003", "SPEKE-4130"})
_HEX: Final = re.compile(r"[0-9a-fA-F]{32,}")
_BASE64: Final = re.compile(r"[0-9A-Za-z+/_-]{22,}")
_TYPES: Final = (
    "text/xml",
    "application/xml; charset=utf-16",
    "application/json",
    "multipart/form-data",
    "x",
    "",
    "text/xml; charset",
)
_VERSIONS: Final = ("1", "1.0", "2.0", "2.0", "2.1", "2.1", " 2.0 ", "3.0", "", "é", "2" * 1000)
_OTHERS: Final = (
    ("API-KEY", "wrong"),
    ("API-KEY", ""),
    ("Accept", "application/json"),
    ("Content-Encoding", "gzip"),
    ("Content-Length", "7"),
    ("Expect", "100-continue"),
    ("Host", "é:x"),
    ("Idempotency-Key", "k"),
    ("If-Match", '"1"'),
    ("X-Transaction-ID", "a\x01b"),
    ("X-Forwarded-Proto", "x"),
)
_CLIENTS: Final = (*("packager",) * 30, "other", "nobody", "%00", "a%2Fb", "x" * 5000)


@dataclass
class Report:
    """The result. `faults` are violations, each with the file that holds the document."""

    documents: int = 0
    understood: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    keys: set[bytes] = field(default_factory=set, repr=False)
    in_order: list[bytes] = field(default_factory=list, repr=False)
    """The keys in the order in which they were returned, for drawing from them."""
    in_logs: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.faults and self.in_logs == 0 and len(self.keys) > 0

    @property
    def line(self) -> str:
        counts = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        return (
            f"{NAME}: {self.documents} documents, {self.understood} past the parser; {counts}; {len(self.keys)} keys given,"
            f" {self.in_logs} keys in logs, {len(self.faults)} faults"
        )


@dataclass(frozen=True, slots=True)
class Question:
    body: bytes
    client: str
    headers: Sequence[tuple[bytes, bytes]]


async def run_fuzzing(folder: Path, *, seconds: float, dice: random.Random) -> Report:
    """Fuzz for `seconds` of this process's CPU. The folder must exist and be empty."""
    report, log = Report(), folder / "log"
    with log.open("w") as stream, _everything_logged(stream):
        async with _provider(folder, stream) as (http, key):
            mutator = _mutator(dice, report.in_order)
            until = time.process_time() + seconds
            while time.process_time() < until and len(report.faults) < _MOST_FAULTS:
                questions = [_question(mutator, dice, key) for _ in range(_AT_ONCE)]
                answers = await asyncio.gather(*(_request(http, asked) for asked in questions))
                for question, answer in zip(questions, answers, strict=True):
                    _note(question, answer, report, folder)
    with log.open() as stream:
        _search(stream, report)
    return report


def _search(log: Iterable[str], report: Report) -> None:
    leaked: set[bytes] = set()
    for line in log:
        leaked.update(key for key in possible_keys(line) if key in report.keys)
        if '"level":"ERROR"' in line or '"level":"CRITICAL"' in line:
            report.faults.append(f"the log has an error: {line[:300]}")
    report.in_logs = len(leaked)


@asynccontextmanager
async def _provider(folder: Path, stream: TextIO) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """Yield an HTTP client of the product, and the key of the client `packager`."""
    server = EmbeddedPostgres(folder / "database")
    outbound = GuardedClient([ip_network("127.0.0.0/8")])
    try:
        address = await asyncio.to_thread(server.start)
        inner = core(address, role=await prepare(address))
        siblings = Alone(inner.registry, buckets=TokenBuckets(_UNLIMITED))
        container = services(inner, outbound=outbound, files=MediaDirectory(folder), given={Siblings: siblings})
        usage, request_log = container[UsageRecorder], RequestLog(stream, clock=inner.clock)
        await inner.start()
        await usage.start()
        application = assembled(inner, container, request_log=request_log, registry=inner.registry)
        key = await introduce(inner, "packager", "keys")
        await introduce(inner, "other", "keys")
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://keys.test") as http:
            yield http, key
        await usage.stop()
        request_log.flush()
        await inner.stop()
    finally:
        await outbound.close()
        await asyncio.to_thread(server.stop)


@contextmanager
def _everything_logged(stream: TextIO) -> Iterator[None]:
    """Log all messages, including those that the product would omit; only the HTTP client of this test is silent."""
    handler, root = logging.StreamHandler(stream), logging.getLogger()
    handler.setFormatter(JsonFormatter())
    level = root.level
    logging.getLogger("httpx").setLevel(logging.WARNING)
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _mutator(dice: random.Random, keys: list[bytes]) -> Mutator:
    seeds = [path.read_bytes() for path in sorted(DOCUMENTS.glob("*.request.xml"))]
    return Mutator(seeds, dice, certificate=certificate(rsa.generate_private_key(65537, 2048)), keys=keys)


def _question(mutator: Mutator, dice: random.Random, key: str) -> Question:
    headers = {"API-KEY": key, "Content-Type": "application/xml"}
    if dice.random() < 0.03:
        headers["Content-Type"] = dice.choice(_TYPES)
    if dice.random() < 0.1:
        headers["X-Speke-Version"] = dice.choice(_VERSIONS)
    if dice.random() < 0.03:
        headers.update([dice.choice(_OTHERS)])
    client = dice.choice(_CLIENTS) if dice.random() < 0.1 else "packager"
    return Question(mutator.document(), client, [(name.encode(), value.encode()) for name, value in headers.items()])


async def _request(http: httpx.AsyncClient, question: Question) -> httpx.Response | Exception:
    try:
        return await http.post(f"/{question.client}/speke", content=question.body, headers=question.headers)
    except Exception as escaped:
        return escaped


def _note(question: Question, answer: httpx.Response | Exception, report: Report, folder: Path) -> None:
    report.documents += 1
    if isinstance(answer, Exception):
        why: str | None = f"{type(answer).__name__} escaped: {answer}"
    else:
        report.statuses[answer.status_code] += 1
        report.understood += _past_the_parser(answer)
        why = _given(answer, report) if answer.status_code == 200 else _wrong_refusal(answer, report)
    if why is not None:
        place = folder / f"question-{len(report.faults)}.xml"
        place.write_bytes(question.body)
        report.faults.append(f"{why}; POST /{question.client[:40]}/speke, {question.headers}, {place}")


def _past_the_parser(answer: httpx.Response) -> bool:
    """Return True if the document was read. Codes that end in 0 are the surface's own, raised before it looks at the document."""
    code = str(answer.headers.get("x-error-code", ""))
    return answer.status_code == 200 or not (code.endswith("0") or code in _PARSER)


def _given(answer: httpx.Response, report: Report) -> str | None:
    """Record the keys of an answer, and return its fault, if any."""
    try:
        root = etree.fromstring(answer.content)
        keys = [b64decode(plain.text or "", validate=True) for plain in root.iter(f"{{{PSKC}}}PlainValue")]
    except (etree.XMLSyntaxError, ValueError) as error:
        return f"an answer is not what it should be: {error}"
    if any(len(key) != _KEY_BYTES for key in keys):
        return "an answer has a key that is not 16 bytes long"
    if keys and root.find(f"{{{CPIX}}}DeliveryDataList") is not None:
        return "keys are in plain text although encryption was requested"
    report.in_order.extend(key for key in dict.fromkeys(keys) if key not in report.keys)
    report.keys.update(keys)
    return None


def _wrong_refusal(answer: httpx.Response, report: Report) -> str | None:
    if answer.status_code >= 500:
        return f"status {answer.status_code}"
    if len(answer.content) > _LONGEST or answer.text.count("\n") != 1 or not answer.text.endswith("\n"):
        return f"a refusal is not one short line: {answer.text[:400]!r}"
    if any(key in report.keys for key in possible_keys(answer.text)):
        return f"a refusal holds a key: {answer.text!r}"
    return None


def possible_keys(text: str) -> Iterator[bytes]:
    """Yield everything that might be 16 bytes, in hexadecimal or Base64, at any place of the text."""
    for run in _HEX.findall(text):
        for place in range(len(run) - 31):
            yield bytes.fromhex(run[place : place + 32])
    for run in _BASE64.findall(text):
        standard = run.replace("-", "+").replace("_", "/")
        for place in range(len(run) - 21):
            yield b64decode(standard[place : place + 22] + "==")
