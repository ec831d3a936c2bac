"""The client library: producers and consumers that know both sites. Imported as `from twinlog import ...`."""
