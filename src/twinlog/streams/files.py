"""Files below one path, on whatever file system Hadoop reaches: this machine's, HDFS, an object store.

For what is kept beside a checkpoint, and for the checkpoint itself when a failover makes it go back.
Spark's own process does the reading and writing, so that both see the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

_NEW = ".new"


class Files:
    """Reads, writes and removes files below a path."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        context: Any = spark.sparkContext
        # Looked up once: each name of a package, a class or a member is a question to Spark's process.
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._as_path = self._hadoop.Path
        self._as_text = context._jvm.org.apache.commons.io.IOUtils.toString
        self._gateway = context._gateway
        self._configuration = context._jsc.hadoopConfiguration()
        self._root = self._as_path(root)
        self._system = self._root.getFileSystem(self._configuration)

    def exists(self, name: str) -> bool:
        """True if a file or directory is there."""
        return bool(self._system.exists(self._path(name)))

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        if not self.exists(name):
            return None
        stream = self._system.open(self._path(name))
        try:
            return str(self._as_text(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Replace a file at once: nobody sees half of it."""
        new = self._path(name + _NEW)
        stream = self._system.create(new, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        context, options = self._renaming
        context.rename(new, self._path(name), options)

    def names(self, directory: str) -> list[str]:
        """The names of what is in a directory; none if it is not there."""
        if not self.exists(directory):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._path(directory))]

    def below(self, directory: str) -> list[str]:
        """All files in a directory and those in it, by their names below the root."""
        if not self.exists(directory):
            return []
        start = self._system.makeQualified(self._root).toUri()
        found, files = [], self._system.listFiles(self._path(directory), True)
        while files.hasNext():
            found.append(start.relativize(files.next().getPath().toUri()).getPath())
        return found

    def delete(self, name: str) -> None:
        """Remove a file or directory, and the sum that Spark may have written beside it."""
        self._system.delete(self._path(name), True)
        self._system.delete(self._path(f"{name}.crc"), True)

    @cached_property
    def _renaming(self) -> tuple[Any, Any]:
        """What puts one file in another's place; not every file system that can be read has it."""
        context = self._hadoop.FileContext.getFileContext(self._system.getUri(), self._configuration)
        rename = self._hadoop.Options.Rename
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        return context, options

    def _path(self, name: str) -> Any:
        return self._as_path(self._root, name) if name else self._root
