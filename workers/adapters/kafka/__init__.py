"""Kafka, over kafka-python."""
