"""Programs and files next to the product: a Kafka broker for tests and trials, a gateway definition, a compose file."""
