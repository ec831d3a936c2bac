"""Streams and tables: jobs on the bus's records that Spark runs and the file declares."""
