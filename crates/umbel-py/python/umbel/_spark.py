"""What `umbel.spark` sends to the executors of Spark: functions over Arrow batches, and their errors.

Executors import this module, so that an executor needs the wheel of the driver and no other code.
Its objects are pickled by the names of their classes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,import-not-found,unused-ignore]

from . import Error, Filter, Foreign, __version__, _errors

# Batches of pyarrow, which has no types.
Batches: TypeAlias = Iterator[Any]

# An exception of a task reaches the driver as text, between the frames of Python and of Java.
_MARK = "umbel.spark: "


class TaskError(RuntimeError):
    """An exception of umbel in a task, as one line that the driver turns into the exception again."""

    def __init__(self, error: Error) -> None:
        arguments = [error.errno, error.strerror, error.filename] if isinstance(error, _errors.FileError) else [str(error)]
        # ASCII: the text passes through logs and sockets of the JVM.
        super().__init__(_MARK + json.dumps([type(error).__name__, *arguments], default=str))


def error_in(text: str) -> Error | None:
    """Returns the exception of umbel that a text from Spark quotes, if there is one."""
    found = re.search(re.escape(_MARK) + r"(\[.*\])", text)
    if found is None:
        return None
    try:
        name, *arguments = json.loads(found[1])
        error: Error = getattr(_errors, name)(*arguments)
        return error
    except (ValueError, AttributeError, TypeError):
        return Error(found[1])


class Task:
    """A function over the Arrow batches of a partition."""

    def __init__(self) -> None:
        self._version = __version__

    def __call__(self, batches: Batches) -> Batches:
        try:
            if self._version != __version__:
                raise Error(
                    f"this executor has umbel {__version__}, and the driver {self._version}: install the same wheel on both"
                )
            yield from self._run(batches)
        except Error as error:
            raise TaskError(error) from None

    def _run(self, batches: Batches) -> Batches:
        raise NotImplementedError


class Select(Task):
    """Keeps the rows whose key may be in a filter, or the others."""

    def __init__(self, source: Source, column: int, keep: bool) -> None:
        super().__init__()
        self._source = source
        self._column = column
        self._keep = keep

    def _run(self, batches: Batches) -> Batches:
        filter = self._source.filter()
        for batch in batches:
            mask = pa.array(filter.contains_many(batch.column(self._column)))
            if not self._keep:
                # A null is not a member.
                mask = pc.invert(pc.fill_null(mask, False))
            # Rows whose answer is null are dropped.
            yield batch.filter(mask)


class Source:
    """A place from which a task gets a filter."""

    def filter(self) -> Filter | Foreign:
        raise NotImplementedError


class Broadcast(Source):
    """A broadcast variable, which Spark sends to each executor once."""

    def __init__(self, broadcast: Any) -> None:
        self._broadcast = broadcast

    def filter(self) -> Filter | Foreign:
        value: Filter | Foreign = self._broadcast.value
        return value


class Artifact(Source):
    """A file of the session, which Spark Connect sends to each executor once."""

    # The last filter of this process, which lives for many tasks.
    _last: tuple[str, Filter | Foreign] | None = None

    def __init__(self, name: str) -> None:
        self._name = name

    def filter(self) -> Filter | Foreign:
        import pickle

        from pyspark import SparkFiles  # type: ignore[import-not-found,unused-ignore]

        last = Artifact._last
        if last is None or last[0] != self._name:
            Artifact._last = None
            with open(SparkFiles.get(self._name), "rb") as file:
                last = (self._name, pickle.load(file))
            Artifact._last = last
        return last[1]
