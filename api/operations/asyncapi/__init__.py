"""`/asyncapi.json`: what the product says unasked, to Kafka and to webhooks, made from the event catalogue. Issue 5, "Build", 2."""
