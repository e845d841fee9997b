"""Deliveries to webhooks: fan-out, sending, retries, outcomes."""
