"""A real Apache Kafka broker without a container: issue 5, point 3."""
