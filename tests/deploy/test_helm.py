"""The Helm chart, rendered by helm: each setting, role and command in it exists; only the migration has the login of the owner."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from api.cli.main import COMMANDS
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.settings import Settings
from tests.support.programs import program
from tests.support.waiting import ROOT

CHART: Final = ROOT / "deploy" / "helm" / "medialedger"
SCHEMA: Final = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: Final = yaml.safe_load((CHART / "values.yaml").read_text())
LEAST: Final[Mapping[str, Any]] = {
    "image": {"repository": "registry.example/medialedger"},
    "database": {"existingSecret": "medialedger-database"},
    "masterKey": {"existingSecret": "medialedger-keys"},
    "adminApiKey": {"existingSecret": "medialedger-keys"},
    "media": {"root": "s3://bucket/vod"},
}
MOST: Final[Mapping[str, Any]] = {
    **LEAST,
    "media": {"existingClaim": "films"},
    "publicUrl": "https://media.example",
    "trustedProxies": "10.0.0.0/8",
    "settings": {
        "MEDIALEDGER_STEPS": 8,
        "MEDIALEDGER_LOG_LEVEL": "DEBUG",
        "MEDIALEDGER_LOG_PARTITION_EVENTS": 100_000_000,
        "MEDIALEDGER_MEDIA_SERVE": True,
        "MEDIALEDGER_ORIGIN": False,
    },
    "secretSettings": "medialedger-s3",
    "imagePullSecrets": [{"name": "registry"}],
    "podAnnotations": {"example.com/owner": "playout"},
    "api": {"autoscaling": {"enabled": True}, "nodeSelector": {"disk": "ssd"}},
    "workers": [
        {"name": "media", "roles": ["controller", "work"], "replicas": 2, "tolerations": [{"operator": "Exists"}]},
        {"name": "rest", "roles": ["webhooks", "deliveries"], "replicas": 1},
    ],
    "ingress": {"enabled": True, "host": "media.example", "className": "nginx", "tlsSecret": "tls"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}


def given(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults with these values, merged as helm merges them."""
    joined: dict[str, Any] = json.loads(json.dumps(DEFAULTS))
    for change in changes:
        for name, value in change.items():
            joined[name] = {**joined[name], **value} if isinstance(value, dict) and isinstance(joined[name], dict) else value
    return joined


def rendered(place: Path, values: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    file = place / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    for command in (["lint", "--strict", str(CHART)], ["template", "main", str(CHART), "--kube-version", "1.31.0"]):
        done = subprocess.run([program("helm"), *command, "--values", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])
def test_values_are_of_the_schema(values: Mapping[str, Any]) -> None:
    jsonschema_rs.validate(SCHEMA, given(values))


@pytest.mark.parametrize(
    "change",
    [
        {"image": {"repository": ""}},
        {"masterKey": {"existingSecret": ""}},
        {"media": {"root": ""}},
        {"media": {"existingClaim": "films"}},
        {"media": {"root": "/media"}},
        {"settings": {"STEPS": "8"}},
        {"settings": {"MEDIALEDGER_DATABASE_URL": "postgresql://a:secret@b/c"}},
        {"settings": {"MEDIALEDGER_S3_SECRET_KEY": "secret"}},
        {"publicUrl": "https://media.example/path"},
        {"workers": [{"name": "A b", "replicas": 1}]},
        {"ingress": {"enabled": True}},
        {"replicas": 3},
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused(change: Mapping[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(SCHEMA, given(LEAST, change))


def test_every_secret_setting_of_the_product_is_refused_among_the_plain_ones() -> None:
    secrets = [name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)]
    assert len(secrets) > 3
    for name in secrets:
        assert not jsonschema_rs.is_valid(SCHEMA, given(LEAST, {"settings": {f"MEDIALEDGER_{name.upper()}": "x"}})), name


@pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])
def test_what_is_rendered_names_what_exists(values: Mapping[str, Any], tmp_path: Path) -> None:
    documents = rendered(tmp_path, values)
    kinds = [document["kind"] for document in documents]
    assert kinds.count("Deployment") == 1 + len(given(values)["workers"])
    assert ("Ingress" in kinds, "ServiceMonitor" in kinds, "HorizontalPodAutoscaler" in kinds) == ((values is MOST),) * 3
    names = {f"MEDIALEDGER_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"MEDIALEDGER_[A-Z0-9_]+", yaml.safe_dump_all(documents))) <= names
    for document, pod in pods(documents):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "they would set MEDIALEDGER_PORT"
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        [container] = pod["containers"]
        command, *given_roles = container["args"]
        assert command in COMMANDS
        assert set(given_roles) <= set(WORKER_ROLES)
        assert ("owner-url" in str(container)) == (command == "migrate"), document["metadata"]["name"]
        selector = document["spec"].get("selector", {}).get("matchLabels", {})
        assert selector.items() <= document["spec"]["template"]["metadata"]["labels"].items()


def test_settings_are_rendered_as_the_product_reads_them(tmp_path: Path) -> None:
    [rendered_settings] = [document["data"] for document in rendered(tmp_path, MOST) if document["kind"] == "ConfigMap"]
    settings = Settings.from_env(rendered_settings)
    assert (settings.steps, settings.log_partition_events, settings.log_level) == (8, 100_000_000, "DEBUG")
    assert (settings.media_serve, settings.origin) == (True, False)


def test_the_job_of_what_is_scraped_is_the_one_that_alerts_ask_for(tmp_path: Path) -> None:
    documents = rendered(tmp_path, MOST)
    [of_services] = [document["spec"] for document in documents if document["kind"] == "ServiceMonitor"]
    services = [document["metadata"]["labels"] for document in documents if document["kind"] == "Service"]
    wanted = of_services["selector"]["matchLabels"].items()
    assert [labels[of_services["jobLabel"]] for labels in services if wanted <= labels.items()] == ["medialedger"]
    [of_pods] = [document["spec"] for document in documents if document["kind"] == "PodMonitor"]
    [others] = of_pods["selector"]["matchExpressions"]
    scraped = {}
    for document, pod in pods(documents):
        labels = document["spec"]["template"]["metadata"]["labels"]
        if of_pods["selector"]["matchLabels"].items() <= labels.items() and labels[others["key"]] not in others["values"]:
            scraped[labels[others["key"]]] = (labels[of_pods["jobLabel"]], [port["name"] for port in pod["containers"][0]["ports"]])
    assert scraped == dict.fromkeys(("workers-media", "workers-rest"), ("medialedger", [of_pods["podMetricsEndpoints"][0]["port"]]))


def pods(documents: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for document in documents:
        if document["kind"] in ("Deployment", "Job"):
            yield document, document["spec"]["template"]["spec"]
