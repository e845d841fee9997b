"""The alerts and the dashboard in deploy/, with a real Prometheus that scrapes a running product."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.support.postgres import new_database
from tests.support.product import Product, client, migrated_home, products
from tests.support.programs import program
from tests.support.waiting import ROOT, until

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "medialedger.json"
RULES: Final[Sequence[dict[str, Any]]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
PANELS: Final = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel.get("targets", ())]
QUERIES: Final = {rule["alert"]: rule["expr"] for rule in RULES} | {query: query for query in PANELS}
SEEN_SELDOM: Final = ("http_connections_refused", "append_conflicts")
"""Counters whose labels are unknown before the first occurrence."""
_JOB: Final = 'job="medialedger"'


@dataclass(frozen=True)
class Case:
    """Series in promtool's notation, with one value a minute for 60 minutes."""

    firing: Mapping[str, str]
    quiet: Mapping[str, str]


def case_of(series: str, firing: str, quiet: str, **others: str) -> Case:
    return Case({series: firing, **others}, {series: quiet, **others})


_BUCKETS: Final = ('le="0.1"', 'le="1"', 'le="10"', 'le="+Inf"')


def _slow(name: str, labels: str = "") -> Case:
    series = [f"{name}_bucket{{{labels}{each}}}" for each in _BUCKETS]
    return Case(dict(zip(series, ("0+0x60", "0+0x60", "0+60x60", "0+60x60"), strict=True)), dict.fromkeys(series, "0+60x60"))


CASES: Final = {
    "MedialedgerDown": case_of(f"up{{{_JOB}}}", "0x60", "1x60"),
    "MedialedgerErrors": case_of(
        'medialedger_http_requests_total{status="503"}',
        "0+10x60",
        "0+1x60",
        **{'medialedger_http_requests_total{status="200"}': "0+90x60"},
    ),
    "MedialedgerSlow": _slow("medialedger_http_request_seconds", 'route="/api/event/",'),
    "MedialedgerAppendsWait": case_of("medialedger_append_queue_age_seconds", "3x60", "0.5x60"),
    "MedialedgerClockAhead": case_of("medialedger_log_ahead_of_clock_seconds", "3600x60", "0x60"),
    "MedialedgerConsumerFails": case_of('medialedger_consumer_failing_seconds{consumer="webhooks"}', "400x60", "100x60"),
    "MedialedgerBrokerGivesNothing": case_of('medialedger_consumer_reads_log_seconds{consumer="webhooks"}', "90x60", "30x60"),
    "MedialedgerConsumerBehind": case_of('medialedger_consumer_lag_events{consumer="webhooks"}', "20000x60", "9000x60"),
    "MedialedgerConsumerNotRun": case_of(
        'medialedger_consumer_shards_held{consumer="work"}',
        "63x60",
        "64x60",
        **{'medialedger_consumer_shards{consumer="work"}': "64x60"},
    ),
    "MedialedgerRecordsParked": case_of('medialedger_parked_records{consumer="webhooks"}', "1x60", "0x60"),
    "MedialedgerDeliveriesLate": case_of("medialedger_deliveries_oldest_seconds", "1000x60", "100x60"),
    "MedialedgerReceiverDown": case_of('medialedger_delivery_endpoints{phase="resting"}', "1x60", "0x60"),
    "MedialedgerDeliveriesFailed": case_of('medialedger_delivery_attempts_total{outcome="failed",answer="5xx"}', "0+1x60", "5x60"),
    "MedialedgerEventsLate": case_of('medialedger_events_due{action="start"}', "3x60", "0x60"),
    "MedialedgerLogNotSealed": case_of("medialedger_log_unsealed_seconds", "700x60", "70x60"),
    "MedialedgerSecretsUnreadable": case_of("medialedger_unreadable_secrets", "1x60", "0x60"),
    "MedialedgerLogNotAnchored": case_of("medialedger_log_unanchored_seconds", "8000x60", "60x60"),
    "MedialedgerSessionsDown": case_of('medialedger_sessions{kind="encoder",state="waiting"}', "1x60", "0x60"),
    "MedialedgerSessionsSilent": case_of('medialedger_session_silent_seconds{kind="encoder"}', "90x60", "2x60"),
    "MedialedgerSessionsGivenUp": case_of('medialedger_sessions_given_up_total{kind="encoder"}', "0+1x60", "5x60"),
    "MedialedgerPushesDown": case_of('medialedger_pushes{connected="false"}', "1x60", "0x60"),
    "MedialedgerProvisionWaits": case_of("medialedger_provision_oldest_seconds", "9000x60", "60x60"),
    "MedialedgerProvisionFailed": Case(
        {'medialedger_provision_ends_total{state="TERMINATING_FAILED"}': "0+1x60"},
        {
            'medialedger_provision_ends_total{state="TERMINATING_FAILED"}': "5x60",
            'medialedger_provision_ends_total{state="PROVISIONED"}': "0+1x60",
        },
    ),
    "MedialedgerJobsWait": case_of("medialedger_jobs_oldest_queued_seconds", "7200x60", "60x60"),
    "MedialedgerNoStepWorkers": case_of(
        "medialedger_step_workers", "0x60", "1x60", **{'medialedger_steps{queue="work",state="ready"}': "2x60"}
    ),
    "MedialedgerJobsFailed": case_of('medialedger_jobs{state="failed"}', "2x60", "0x60"),
    "MedialedgerStepsLost": case_of('medialedger_step_runs_total{outcome="lost"}', "0+1x60", "3x60"),
    "MedialedgerPoolTimeouts": case_of('medialedger_database_pool_timeouts_total{pool="lists"}', "0+5x60", "7x60"),
    "MedialedgerNotificationQueue": case_of("medialedger_notification_queue_usage", "0.6x60", "0.1x60"),
    "MedialedgerDiskFills": case_of('medialedger_free_bytes{directory="home"}', "1000000000x60", "3000000000x60"),
    "MedialedgerFilesRunOut": case_of(
        f'process_open_fds{{{_JOB},process="api 1"}}',
        "900x60",
        "500x60",
        **{f'process_max_fds{{{_JOB},process="api 1"}}': "1000x60"},
    ),
    "MedialedgerConnectionsRefused": case_of('medialedger_http_connections_refused_total{status="503"}', "0+5x60", "5x60"),
    "MedialedgerLoopBlocked": _slow("medialedger_event_loop_delay_seconds"),
    "MedialedgerRestarts": case_of("medialedger_process_restarts_total", "0+1x60", "4x60"),
    "MedialedgerTaskFaults": case_of('medialedger_task_faults_total{task="webhooks"}', "0+1x60", "5x60"),
    "MedialedgerPointsOffAir": case_of('medialedger_points{state="unknown"}', "1x60", "0x60"),
    "MedialedgerProberLate": _slow("medialedger_point_sample_late_seconds"),
    "MedialedgerLogDamaged": case_of("medialedger_log_bad_position", "12x60", "0x60"),
    "MedialedgerLogNotVerified": case_of("medialedger_log_verified_age_seconds", "4000x120", "60x120"),
}


def test_every_alert_says_what_to_do() -> None:
    page = (ROOT / "docs" / "how-to" / "alerts.md").read_text()
    named = [rule["alert"] for rule in RULES]
    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == named
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/how-to/alerts.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]


def test_every_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert list(CASES) == [rule["alert"] for rule in RULES]

    def case(name: str, series: Mapping[str, str], *, fires: bool) -> dict[str, Any]:
        asked = {"expr": f'sum(clamp_max(ALERTS{{alertname="{name}",alertstate="firing"}}, 1))', "eval_time": "60m"}
        result = [{"labels": "{}", "value": 1}] if fires else []
        return {
            "interval": "1m",
            "input_series": [{"series": each, "values": values} for each, values in series.items()],
            "promql_expr_test": [asked | {"exp_samples": result}],
        }

    def written(rule: Mapping[str, Any]) -> Path:
        """Write a file with only this rule: promtool would evaluate all rules in each case."""
        name = rule["alert"]
        alone, file = tmp_path / f"{name}.rules.yml", tmp_path / f"{name}.yml"
        alone.write_text(yaml.safe_dump({"groups": [{"name": "alone", "rules": [rule]}]}, width=1000))
        cases = [case(name, CASES[name].firing, fires=True), case(name, CASES[name].quiet, fires=False)]
        file.write_text(yaml.safe_dump({"rule_files": [str(alone)], "evaluation_interval": "1m", "tests": cases}, width=1000))
        return file

    files = [str(written(rule)) for rule in RULES]
    done = subprocess.run([program("promtool"), "test", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["prometheus.yml", "compose.yml"])
def test_the_configuration_is_one(name: str) -> None:
    command = [program("promtool"), "check", "config", str(ALERTS.parent / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_compose_mounts_is_there() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    monitoring = [each for each in services.values() if each.get("profiles") == ["monitoring"]]
    mounted = [each.split(":")[0] for service in monitoring for each in service["volumes"] if each.startswith("./")]
    assert len(mounted) == 4
    assert all((ROOT / "deploy" / each).exists() for each in mounted)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    program("prometheus")
    with products() as started:
        home = tmp_path_factory.mktemp("scraped") / "home"
        settings = {"worker_processes": "1", "api_processes": "1", "outbound_allow": "127.0.0.0/8"}
        yield started.start(migrated_home(home), **settings).until_ready()


@dataclass
class Prometheus:
    """A Prometheus server that listens."""

    http: httpx.Client

    def ask(self, path: str, **parameters: str) -> Any:
        answer = self.http.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, text: str) -> list[Any]:
        series: list[Any] = self.ask("query", query=text)["result"]
        return series


@contextmanager
def running(command: Sequence[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def prometheus(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping([product.address], tmp_path_factory.mktemp("prometheus")) as started:
        yield started


@contextmanager
def scraping(addresses: Sequence[str], folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus with the configuration of deploy/ that scrapes these addresses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    text = (ALERTS.parent / "prometheus.yml").read_text()
    targets = ", ".join(address.removeprefix("http://") for address in addresses)
    for old, new in {"127.0.0.1:8080": targets, "15s": "1s", "alerts.yml": str(ALERTS)}.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "prometheus.yml").write_text(text)
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    command = [program("prometheus"), *(f"--{name}={value}" for name, value in options.items())]
    with (
        running(command, folder / "output") as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=False) as http,
    ):

        def ready() -> bool:
            assert process.poll() is None, (folder / "output").read_text()
            try:
                return http.get("/-/ready").status_code == 200
            except httpx.TransportError:
                return False

        until(ready)
        yield Prometheus(http)


@pytest.mark.long
def test_an_idle_product_alerts_nobody(prometheus: Prometheus) -> None:
    """No rule is firing or pending once the product has been scraped and the rules were evaluated."""
    until(lambda: len(prometheus.query('up{job="medialedger"} == 1')) == 1)
    until(lambda: prometheus.query("medialedger_consumer_shards_held")[0:1] != [])
    until(
        lambda: float(prometheus.query("sum(medialedger_consumer_shards - medialedger_consumer_shards_held)")[0]["value"][1]) == 0
    )

    def evaluated() -> bool:
        rules = prometheus.ask("rules")["groups"][0]["rules"]
        assert [rule["name"] for rule in rules] == list(CASES)
        return all(rule["health"] == "ok" and rule["state"] == "inactive" for rule in rules)

    until(evaluated)


def test_every_query_is_answered_and_asks_for_metrics_that_there_are(prometheus: Prometheus, product: Product) -> None:
    names = families(product)
    for name, query in QUERIES.items():
        prometheus.query(query)
        assert asked(query) <= names, name


def families(product: Product) -> set[str]:
    text = httpx.get(f"{product.address}/metrics", timeout=60, verify=False).text
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


def asked(query: str) -> set[str]:
    return {re.sub(r"_(bucket|sum|count)$", "", each) for each in re.findall(r"\b(?:medialedger|process)_\w+", query)}


OF_SEVERAL: Final = {"medialedger_process_restarts_total"}
"""Metrics that exist only if a supervisor runs several processes."""


@pytest.fixture(scope="module")
def apart(postgres: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Product]]:
    """An API and workers as separate commands: some in one process, some in two."""
    program("prometheus")
    home = tmp_path_factory.mktemp("apart") / "home"
    with new_database(postgres, "apart", template=migrated_template) as url, products() as started:
        api = started.start(home, "api", database_url=url).until_ready()
        settings = {"database_url": url, "metrics_port": "0"}
        others = [
            started.start(home, "workers provisioning", **settings),
            started.start(home, "workers deliveries webhooks", worker_processes="2", **settings),
        ]
        yield [api, *(each.until_ready() for each in others)]


def test_alerts_fire_where_workers_run_apart_from_the_api(apart: Sequence[Product], tmp_path: Path) -> None:
    api, *workers = apart
    for each in workers:
        assert httpx.get(f"{each.address}/livez", timeout=60, verify=False).json() == {"status": "ok"}
    names = set().union(*map(families, apart))
    for rule in RULES:
        assert asked(rule["expr"]) <= names, rule["alert"]
    with scraping([each.address for each in apart], tmp_path) as prometheus:
        until(lambda: len(prometheus.query('up{job="medialedger"} == 1')) == len(apart))
        until(lambda: bool(prometheus.query('medialedger_provision_ends_total{state="PROVISIONING_FAILED"} == 0')))
        provision_what_cannot_be(api)
        until(lambda: bool(prometheus.query('ALERTS{alertname="MedialedgerProvisionFailed",alertstate="firing"}')))


def provision_what_cannot_be(api: Product) -> None:
    """Provision an Event whose template does not exist."""
    request = {"options": {"deploymentType": "template"}, "resources": [{"name": "origin-1", "type": "origin"}]}
    configuration = json.dumps({"request": request, "workflow": {"termination": []}})
    with client(api, (api.home / "admin-api-key").read_text().strip()) as http:
        profile = {"name": "no template", "configurationJson": configuration}
        made = http.post("/api/infrastructureprofile/", json=profile).json()["id"]
        event = http.post("/api/event/", json={"title": "x", "infrastructureProfileId": made}).json()["id"]
        assert http.post(f"/api/provision/{event}").status_code == 200


def test_every_panel_shows_something_when_something_has_happened(prometheus: Prometheus, product: Product) -> None:
    key = (product.home / "admin-api-key").read_text().strip()
    with client(product, key) as http:
        hook = {"name": "nobody listens", "webhookUrl": "http://127.0.0.1:9/hook", "useJsonBody": True}
        assert http.post("/api/webhook/", json=hook).status_code in (200, 201)
        job = {
            "job": {"workflow": "http_fetch_verify"},
            "parameters": {"content_id": "c", "url": "http://10.0.0.1/x.mp4"},
        }
        accepted = http.post("/engine/job", json=job, headers={"client": "admin"})
        assert accepted.status_code == 200, accepted.text
        assert http.post("/api/event/", json={"title": "x"}).status_code == 200

    def empty() -> list[str]:
        return [each for each in PANELS if not any(name in each for name in SEEN_SELDOM) and not prometheus.query(each)]

    until(lambda: not empty())
