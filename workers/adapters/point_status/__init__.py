"""Adapters of the port `PointStatus`: docs/reference/api/health.md#strategies."""
