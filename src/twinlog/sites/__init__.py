"""Sites: Kafka clusters that Twinlog runs (processes, certificates, credentials) or reaches."""
