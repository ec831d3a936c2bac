"""Spark jobs: the mirror's tasks, and who drives them. `spark` is the only importer of pyspark."""
