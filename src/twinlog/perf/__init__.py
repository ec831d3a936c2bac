"""Measuring how fast a cluster takes and gives records, in the manner of Kafka's own tools."""
