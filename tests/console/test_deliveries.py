"""Deliveries in the console: find the webhook that fails, mend its receiver, resend, see it delivered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.console.journeys import finds_a_failed_delivery, resends
from tests.console.test_jobs import failed_job
from tests.support.product import Product
from tests.support.waiting import until

GONE = 410  # ends a delivery at once
ANSWER = b"<b>no such hook</b>"


class Receiver(ThreadingHTTPServer):
    """Answers as it is told to."""

    status = GONE

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, because the output belongs to the tests."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    with Receiver(("127.0.0.1", 0), _Hook) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@contextmanager
def failed_webhook(http: httpx.Client) -> Iterator[tuple[Receiver, str]]:
    """A webhook whose receiver has refused a delivery for good, and the id of the webhook."""
    with receiver() as hook:
        webhook = http.post("/api/webhook/", json={"webhookUrl": hook.url}).json()["id"]
        try:
            http.post("/api/event/", json={"title": "Told", "scheduledStart": "2031-01-02T20:00:00Z"}).raise_for_status()
            until(lambda: http.get(f"/api/webhook/{webhook}").json()["disabledAt"] is not None)
            yield hook, webhook
        finally:
            http.delete(f"/api/webhook/{webhook}")


def deliveries(http: httpx.Client, webhook: str, *, state: int) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = http.get(f"/api/webhook/{webhook}/deliveries/", params={"state": state}).json()["results"]
    return shown


def enable(http: httpx.Client, webhook: str) -> None:
    http.put(f"/api/webhook/{webhook}", json={"disabledAt": None}).raise_for_status()


def overview(http: httpx.Client) -> dict[str, Any]:
    shown: dict[str, Any] = http.get("/api/health/overview/").json()
    return shown


async def test_a_failing_webhook_is_found_and_its_delivery_is_sent_again(signed_in: Page, http: httpx.Client) -> None:
    with failed_webhook(http) as (hook, webhook):
        row = await finds_a_failed_delivery(signed_in, hook.url, condition="Nothing is sent: disabled since", having="410")
        await row.click()
        await expect(signed_in.locator(".tries")).to_contain_text("HTTP 410")
        await expect(signed_in.locator(".tries .answer")).to_have_text(ANSWER.decode())
        await expect(signed_in.get_by_role("button", name="Resend")).to_be_disabled()
        await signed_in.keyboard.press("Escape")

        hook.status = 200
        await signed_in.get_by_role("button", name="Test", exact=True).click()
        await expect(signed_in.get_by_role("dialog")).to_contain_text("The receiver answered")
        await signed_in.keyboard.press("Escape")
        await signed_in.get_by_role("button", name="Enable", exact=True).click()
        await signed_in.get_by_role("dialog").get_by_role("button", name="Enable").click()
        await expect(signed_in.get_by_role("button", name="Disable", exact=True)).to_be_visible()
        await resends(signed_in, row)
        await expect(signed_in.locator(".delivery .badge")).to_have_text("Delivered")
        await expect(signed_in.locator(".tries li")).to_have_count(2)
        delivered = deliveries(http, webhook, state=1)
        assert [each["attempts"][-1]["status"] for each in delivered] == [200]


async def test_a_new_secret_is_shown_once_and_lost_notifications_are_recovered(
    signed_in: Page, http: httpx.Client, product: Product
) -> None:
    with failed_webhook(http) as (hook, webhook):
        hook.status = 200
        enable(http, webhook)
        await signed_in.goto(f"{product.address}/console/deliveries?webhook={webhook}&state=FAILED")
        await signed_in.get_by_role("button", name="New secret", exact=True).click()
        await signed_in.get_by_role("button", name="Make a new secret").click()
        await expect(signed_in.locator(".secret")).to_contain_text("whsec_")
        await signed_in.get_by_role("button", name="I have stored it").click()
        assert "whsec_" not in await signed_in.content()
        await signed_in.get_by_role("button", name="Recover", exact=True).click()
        await signed_in.get_by_label("Since").fill("2020-01-01T00:00")
        await signed_in.get_by_role("button", name="Send again").click()
        await expect(signed_in.get_by_text("sent again").first).to_be_visible()
        until(lambda: deliveries(http, webhook, state=2) == [])


async def test_deliveries_and_health_are_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    with failed_webhook(http) as (_, webhook):
        failed = deliveries(http, webhook, state=2)[-1]["id"]
        pages = {
            f"/console/deliveries?webhook={webhook}&state=FAILED": ".deliveries-list tbody tr",
            f"/console/deliveries?webhook={webhook}&delivery={failed}": ".tries li",
            "/console/health": ".hour-line",
        }
        async with visitor(browser, product.address, key=KEY) as came:
            page = await came.open("/console/deliveries")
            for path, shown in pages.items():
                await page.goto(product.address + path)
                await expect(page.locator(shown).first).to_be_visible()
                assert (path, await violations_in_all_sizes(page)) == (path, [])
            assert came.complaints == []


async def test_health_names_what_needs_attention_and_the_page_that_helps(
    signed_in: Page, http: httpx.Client, product: Product
) -> None:
    number = failed_job(http, f"gone-{uuid4().hex[:8]}")
    await signed_in.goto(f"{product.address}/console/health")
    await signed_in.get_by_role("link", name="Failed jobs").click()
    await expect(signed_in.get_by_role("link", name=f"{number} gone-")).to_be_visible()
    await signed_in.goto(f"{product.address}/console/health")
    shown = overview(http)
    await expect(signed_in.locator(".inner-table").first.locator("tbody tr")).to_have_count(len(shown["consumers"]))
    await expect(signed_in.get_by_text(shown["database"]["version"], exact=True)).to_be_visible()
