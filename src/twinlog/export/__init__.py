"""What a site looks like to Prometheus."""
