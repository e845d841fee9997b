"""A real Apache Kafka broker without a container."""
