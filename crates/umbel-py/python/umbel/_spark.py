"""What `umbel.spark` sends to the executors of Spark: functions over Arrow batches, and their errors.

Executors import this module, so that an executor needs the wheel of the driver and no other code.
Its objects are pickled by the names of their classes.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,import-not-found,unused-ignore]

from . import Error, Filter, Foreign, Sharded, __version__, _errors
from ._umbel import _Collector, _Layout, _Merge

# Batches of pyarrow, which has no types.
Batches: TypeAlias = Iterator[Any]
Lookup: TypeAlias = Filter | Foreign | Sharded

# An exception of a task reaches the driver as text, between the frames of Python and of Java.
_MARK = "umbel.spark: "


class TaskError(RuntimeError):
    """An exception of umbel in a task, as one line that the driver turns into the exception again."""

    def __init__(self, error: Error) -> None:
        arguments: list[object] = [str(error)]
        if isinstance(error, _errors.FileError):
            arguments = [error.errno, error.strerror, error.filename]
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
                    f"this executor has umbel {__version__}, and the driver {self._version}: install the same "
                    "wheel on both"
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


class Collect(Task):
    """Turns the keys of a partition into pieces of a filter.

    Its rows are `(range, piece)`. A piece is at most 128 KiB long, and belongs to one range of the bits
    or to one shard.
    """

    def __init__(self, layout: _Layout) -> None:
        super().__init__()
        self._layout = layout

    def _run(self, batches: Batches) -> Batches:
        collector = _Collector(self._layout)
        for batch in batches:
            collector.add(batch.column(0))
            yield from _rows(collector.drain())
        yield from _rows(collector.drain(True))


def _rows(pieces: list[tuple[int, bytes]]) -> Batches:
    """Puts pieces into batches of a few MiB."""
    for start in range(0, len(pieces), 64):
        ranges, values = zip(*pieces[start : start + 64])
        yield pa.record_batch(
            [pa.array(ranges, pa.int32()), pa.array(values, pa.binary())], names=["range", "piece"]
        )


class MergeTask(Task):
    """Merges the pieces of each range, which come one range after another."""

    def __init__(self, layout: _Layout) -> None:
        super().__init__()
        self._layout = layout

    def _run(self, batches: Batches) -> Batches:
        # The bits of one range are in memory at a time, however many tasks have sent pieces of it.
        merge: _Merge | None = None
        current = -1
        for batch in batches:
            ranges = batch.column(0).to_pylist()
            start = 0
            while start < len(ranges):
                end = start + 1
                while end < len(ranges) and ranges[end] == ranges[start]:
                    end += 1
                if merge is None or ranges[start] != current:
                    if merge is not None:
                        yield from self._finish(current, merge)
                    merge, current = _Merge(self._layout, ranges[start]), ranges[start]
                merge.update(batch.column(1)[start:end])
                start = end
        if merge is not None:
            yield from self._finish(current, merge)

    def _finish(self, range: int, merge: _Merge) -> Batches:
        raise NotImplementedError


class MergePieces(MergeTask):
    """Returns the merged ranges, again as pieces."""

    def _finish(self, range: int, merge: _Merge) -> Batches:
        yield from _rows([(range, piece) for piece in merge.pieces()])


class WriteRanges(MergeTask):
    """Writes each range into a file that all executors and the driver share.

    Its rows are `(range, inserted, sums)`. A task that runs twice writes the same bytes twice.
    """

    SCHEMA = "range int, inserted bigint, sums binary"

    def __init__(self, layout: _Layout, partial: str) -> None:
        super().__init__(layout)
        self._partial = partial

    def _finish(self, range: int, merge: _Merge) -> Batches:
        sums = merge.write(self._partial)
        yield pa.record_batch(
            [
                pa.array([range], pa.int32()),
                pa.array([merge.inserted], pa.int64()),
                pa.array([sums], pa.binary()),
            ],
            names=["range", "inserted", "sums"],
        )


class SaveShards(MergeTask):
    """Saves each shard to a folder that all executors and the driver share.

    Its rows are the numbers of the shards.
    """

    SCHEMA = "shard int"

    def __init__(self, layout: _Layout, staging: str) -> None:
        super().__init__(layout)
        self._staging = staging

    def _finish(self, range: int, merge: _Merge) -> Batches:
        save_shard(self._staging, range, merge)
        yield pa.record_batch([pa.array([range], pa.int32())], names=["shard"])


def shard_name(shard: int) -> str:
    return f"shard-{shard:04}.umbel"


def save_shard(staging: str, shard: int, merge: _Merge) -> None:
    """Saves a shard to a folder.

    A task can be killed while it writes. So each attempt writes to a folder of its own, and moves the
    complete file out of it: a second attempt replaces the file by one with the same bytes.
    """
    attempt = os.path.join(staging, uuid.uuid4().hex)
    with file_errors(attempt):
        os.mkdir(attempt)
    merge.save_shard(attempt)
    with file_errors(attempt):
        os.replace(os.path.join(attempt, shard_name(shard)), os.path.join(staging, shard_name(shard)))
        os.rmdir(attempt)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turns an error of the system into one of umbel."""
    try:
        yield
    except OSError as error:
        classes: dict[type[OSError], type[_errors.FileError]] = {
            FileNotFoundError: _errors.MissingFileError,
            PermissionError: _errors.FilePermissionError,
            IsADirectoryError: _errors.DirectoryError,
        }
        kind = classes.get(type(error), _errors.FileError)
        raise kind(error.errno, f"cannot write to {path}: {error.strerror}", path) from None


class Source:
    """A place from which a task gets a filter."""

    def filter(self) -> Lookup:
        raise NotImplementedError


class Broadcast(Source):
    """A broadcast variable, which Spark sends to each executor once."""

    def __init__(self, broadcast: Any) -> None:
        self._broadcast = broadcast

    def filter(self) -> Lookup:
        value: Lookup = self._broadcast.value
        return value


class Artifact(Source):
    """A file of the session, which Spark Connect sends to each executor once."""

    # The last filter of this process, which lives for many tasks.
    _last: tuple[str, Lookup] | None = None

    def __init__(self, name: str) -> None:
        self._name = name

    def filter(self) -> Lookup:
        import pickle

        from pyspark import SparkFiles  # type: ignore[import-not-found,unused-ignore]

        last = Artifact._last
        if last is None or last[0] != self._name:
            Artifact._last = None
            with open(SparkFiles.get(self._name), "rb") as file:
                last = (self._name, pickle.load(file))
            Artifact._last = last
        return last[1]
