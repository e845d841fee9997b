"""Helpers that the tests, the benchmarks and the fault suite share. It imports the product and itself, never a test."""
