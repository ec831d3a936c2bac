"""The files that Kafka clients are configured with, read and written."""
