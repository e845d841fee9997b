"""A trace across processes, as a collector receives it: request, append, consumer, delivery and step."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.e2e.collector import collector
from tests.support.product import client, migrated_home, products

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
QUIET = "0" * 31 + "7"
SECRET = "hook-secret-in-the-path"
TOKEN = "token-of-the-collector"
TITLE = "a title that is nobody's business"


def test_a_trace_goes_on_from_the_request_to_the_webhook_and_the_step(tmp_path: Path) -> None:
    with collector() as collected, products() as started:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collected.address,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={TOKEN}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "MEDIALEDGER_API_PROCESSES": "1",
            "MEDIALEDGER_WORKER_PROCESSES": "1",
            "MEDIALEDGER_OUTBOUND_ALLOW": "127.0.0.0/8",
        }
        product = started.start_in(environment, migrated_home(tmp_path / "home")).until_ready()
        with client(product, (product.home / "admin-api-key").read_text().strip()) as http:
            http.post("/api/webhook/", json={"webhookUrl": f"{collected.address}/{SECRET}?key={SECRET}"}).raise_for_status()
            parent = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Transaction-ID": "from-the-gateway"}
            event = http.post("/api/event/?note=1", json={"title": TITLE}, headers=parent).raise_for_status().json()["id"]
            order = {"job": {"workflow": "probe_media"}, "parameters": {"content_id": event, "file": "missing.mp4"}}
            http.post("/engine/job", json=order, headers={**parent, "client": "admin"}).raise_for_status()
            http.post("/api/event/", json={"title": "not recorded"}, headers={"traceparent": f"00-{QUIET}-{CALLER}-00"})

        request = collected.until("POST /api/event/", trace=TRACE)
        assert (request.parent, request.kind, request.attributes["http.response.status_code"]) == (CALLER, 2, 200)
        assert request.attributes["medialedger.transaction_id"] == "from-the-gateway"
        append = collected.until("append event.registered", trace=TRACE, parent=request.id, db__system__name="postgresql")
        consumer = collected.until("process webhooks", trace=TRACE, parent=append.id, messaging__operation__type="process")
        delivery = collected.until("POST", trace=TRACE, parent=consumer.id)
        assert (delivery.kind, delivery.attributes["server.address"]) == (3, "127.0.0.1")
        assert delivery.attributes["http.response.status_code"] == 200
        assert request.resource["service.name"] == "medialedger"
        assert request.resource["service.instance.id"] != delivery.resource["service.instance.id"]
        assert f"00-{TRACE}-{delivery.id}-01" in [hook["traceparent"] for hook in collected.hooks]

        submitted = collected.until("append job.accepted", trace=TRACE)
        step = collected.until("step", trace=TRACE, parent=submitted.id, medialedger__workflow="probe_media")
        assert step.failed
        collected.until("append job.task_failed", trace=TRACE, parent=step.id)

        product.signal(signal.SIGTERM)
        assert product.ended() == 0
        assert {span.trace for span in collected.spans}.isdisjoint({QUIET})
        assert {headers["authorization"] for headers in collected.export_headers} == {TOKEN}
        everything = collected.raw.decode(errors="replace") + product.errors
        for secret in (SECRET, TITLE, "note=1"):
            assert secret not in everything
        assert TOKEN not in collected.raw.decode(errors="replace") + product.errors
