"""`/asyncapi.json`: the messages to Kafka and to webhooks, generated from the event catalogue."""
