"""Filters over DataFrames of Spark: build them on the executors, and select rows by them.

The executors need the wheel of this package and pyarrow, and nothing else. Only methods of DataFrames are
called, so sessions of Spark Connect work, too.

>>> import umbel.spark
>>> from pyspark.sql import SparkSession
>>> spark = SparkSession.builder.getOrCreate()
>>> members = umbel.Bloom(1000, 0.001)
>>> members.update(["ann", "bob"])
>>> visits = spark.createDataFrame([("ann", 1), ("eve", 2), (None, 3)], "user_id string, page int")
>>> kept = visits.transform(umbel.spark.filter(members, "user_id"))
>>> [row.page for row in kept.collect()]
[1]
"""

from __future__ import annotations

import builtins
import errno
import math
import os
import pickle
import re
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from . import (
    Bloom,
    Error,
    FileError,
    Filter,
    Foreign,
    KeyTypeError,
    ParameterError,
    Sharded,
    UnsupportedError,
    __version__,
    open,
)
from ._umbel import _assemble_pieces, _create_file, _finish_file, _Layout, _Merge, _seal

_INSTALL = "install it with `pip install 'pyspark[sql]'`"
try:
    from . import _spark
except ModuleNotFoundError as _missing:
    raise ImportError(f"umbel.spark needs {_missing.name}: {_INSTALL}", name=_missing.name) from None

if TYPE_CHECKING:
    from ._umbel import _Hash, _Secret, _ShardKind, _Stats

    # pyspark is optional: a type checker that does not find it takes its types as `Any`.
    from pyspark.sql import DataFrame, SparkSession  # type: ignore[import-not-found,unused-ignore]

__all__ = ["build", "build_sharded", "filter"]

# The names of the types whose columns `Filter.update` takes.
_KEY_TYPES = frozenset(
    ["string", "char", "varchar", "binary", "boolean", "tinyint", "smallint", "int", "bigint", "void"]
)


def build(
    df: DataFrame,
    column: str,
    *,
    n: float | None = None,
    p: float = 0.01,
    kind: _ShardKind = "blocked",
    hash: _Hash | None = None,
    secret: _Secret | None = None,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    embed_secret: bool = False,
) -> Bloom:
    """Builds a filter of the values of a column on the executors.

    The result is that of `Bloom(n, p, ...)` after `update` with all values, in memory on the driver. It
    has the same bytes however the rows are partitioned, even if tasks fail or run twice. Nulls are left
    out. The column holds text, bytes, Booleans or integers.

    Without `n`, another job first counts the distinct values with `approx_count_distinct`. Its standard
    error is 2 %, and the filter has room for 6 % more than the estimate, so that it keeps its rate.

    With `path`, the executors write the filter to this file, on a file system that they share with the
    driver, and the result is the opened file. A build that fails leaves no file. For `hash` and
    `secret`, see `Bloom`; for `embed_secret`, see `Bloom.save`.

    >>> import umbel.spark
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> users = spark.createDataFrame([("ann",), ("bob",), (None,), ("ann",)], "user_id string")
    >>> f = umbel.spark.build(users, "user_id", n=1000, p=0.001)
    >>> "ann" in f, "eve" in f, f.inserted
    (True, False, 3)
    """
    _check_frame("build()", df)
    target = None if path is None else _shared_path(path)
    options = {"kind": kind, "hash": hash, "secret": secret, "seed": seed, "embed_secret": embed_secret}
    layout = _layout(1 if n is None else n, p, in_file=target is not None, **options)
    with _explained():
        keys = _keys(df, column)
        if n is None:
            layout = _layout(_capacity(keys), p, in_file=target is not None, **options)
        if target is None:
            f = _fetch(keys, layout)
        else:
            _write(keys, layout, target)
            f = cast(Bloom, open(target, secret=secret))
    _warn_if_overfull([f.stats()], p)
    return f


def build_sharded(
    df: DataFrame,
    column: str,
    *,
    n: float | None = None,
    p: float = 0.01,
    shards: int,
    path: str | os.PathLike[str],
    kind: _ShardKind = "blocked",
    hash: _Hash | None = None,
    secret: _Secret | None = None,
    seed: int = 0,
    embed_secret: bool = False,
) -> Sharded:
    """Builds a filter of the values of a column as a folder of shards, each written by a task.

    The folder is on a file system that the executors share with the driver. It must not contain a
    manifest: the driver writes it last, so a folder without one is not a filter. The files have the same
    bytes however the rows are partitioned, even if tasks fail or run twice.

    Each task has one shard in memory at a time. The result is the opened folder. The other parameters are
    those of `build`.

    >>> import umbel.spark
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> ids = umbel.spark.build_sharded(spark.range(1000), "id", n=1000, p=0.001, shards=2, path="ids")
    >>> 999 in ids, 1000 in ids
    (True, False)
    >>> sorted(file.name for file in ids.path.iterdir())
    ['manifest', 'shard-0000.umbel', 'shard-0001.umbel']
    """
    _check_frame("build_sharded()", df)
    target = _shared_path(path)
    options = {"kind": kind, "hash": hash, "secret": secret, "seed": seed}
    options |= {"embed_secret": embed_secret, "shards": shards}
    layout = _layout(1 if n is None else n, p, in_file=True, **options)
    _refuse_manifest(target)
    with _explained():
        keys = _keys(df, column)
        if n is None:
            layout = _layout(_capacity(keys), p, in_file=True, **options)
        _save_shards(keys, layout, target)
    _warn_if_overfull(_sample(target, shards, secret), p)
    return cast(Sharded, open(target, secret=secret))


def filter(f: _spark.Lookup, column: str, keep: bool = True) -> Callable[[DataFrame], DataFrame]:
    """Returns a function for `DataFrame.transform` that keeps the rows whose key may be in a filter.

    With `keep=False` it keeps the other rows, whose keys are certainly not in the filter. A null is never a
    member: `keep=True` drops its row, and `keep=False` keeps it. All columns and their types stay.
    The column holds text, bytes, Booleans or integers.

    The filter is sent to the executors once for each call of the function, with the items that it has
    then: as a broadcast variable, or on Spark Connect as an artifact of the session. Each Python process
    on an executor has a copy of it in memory. A `Sharded` is sent as its path, and the processes share
    the memory of its files.

    >>> import umbel.spark
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> seen = umbel.Bloom(1000, 0.001)
    >>> seen.update([1, 2])
    >>> new = spark.range(5).transform(umbel.spark.filter(seen, "id", keep=False))
    >>> sorted(row.id for row in new.collect())
    [0, 3, 4]
    """
    if not isinstance(f, (Filter, Foreign, Sharded)):
        raise TypeError(
            f"filter() takes a filter of umbel, such as umbel.Bloom, not {type(f).__name__}: for a list of "
            "values, use isin() of Spark"
        )

    def select(df: DataFrame) -> DataFrame:
        _check_frame("filter()", df)
        with _explained():
            position = _position(df, column)
            task = _spark.Select(_send(df.sparkSession, f), position, bool(keep))
            return _map_all(df, task)

    return select


def _map_all(df: DataFrame, task: _spark.Task) -> DataFrame:
    """Applies a task that keeps the columns of its batches."""
    from pyspark.sql.types import StructField, StructType  # type: ignore[import-not-found,unused-ignore]

    # Spark looks up the columns by their names, which may be ambiguous or look like paths.
    schema = df.schema
    plain = [f"c{i}" for i in range(len(schema.fields))]
    fields = [
        StructField(name, field.dataType, field.nullable) for name, field in zip(plain, schema.fields)
    ]
    selected = df.toDF(*plain).mapInArrow(task, StructType(fields))
    columns = [
        selected[name].alias(field.name, metadata=field.metadata)
        for name, field in zip(plain, schema.fields)
    ]
    return selected.select(*columns)


# Examples of the secrets of hashes that have one, for messages. Only that of a keyed hash is embedded.
_SECRETS = {
    "keyed": "secrets.token_bytes(16), or embed_secret=True",
    "sealed": "secrets.token_bytes(32)",
}


def _layout(n: float, p: float, *, in_file: bool, **options: Any) -> _Layout:
    """Plans a filter; the exceptions are those of `Bloom`."""
    if isinstance(n, bool):
        raise TypeError("n is a number of keys, not a bool")
    if isinstance(n, float) and n.is_integer():
        n = int(n)
    hash = options["hash"]
    if in_file and hash in _SECRETS and options["secret"] is None and not options["embed_secret"]:
        raise ParameterError(
            f"hash = {hash} needs a secret if the filter is written to files: pass secret=, such as "
            + _SECRETS[hash]
        )
    try:
        return _Layout(n, p, **options)  # type: ignore[arg-type]
    except ParameterError as error:
        # The names of these parameters in `Bloom`.
        names = str(error).replace("expected_items", "n").replace("false_positive_rate", "p")
        raise ParameterError(names) from None


def _capacity(keys: DataFrame) -> int:
    """Returns the capacity of a filter that has room for all distinct keys."""
    from pyspark.sql.functions import approx_count_distinct  # type: ignore[import-not-found,unused-ignore]

    # Three standard errors above the estimate: the filter is too small in one of 700 cases.
    # Spark takes twice as long for an error of 1 %.
    error = 0.02
    [counted] = keys.agg(approx_count_distinct("key", error)).collect()
    return max(1, math.ceil(cast(int, counted[0]) * (1 + 3 * error)))


# The rows of tasks that return pieces.
_PIECES = "range int, piece binary"


def _merged(keys: DataFrame, layout: _Layout, task: _spark.MergeTask, schema: str) -> DataFrame:
    """Returns the rows of a task that gets all pieces of the keys, sorted by range.

    `groupBy("range").applyInArrow(...)` would be the same shuffle and sort. Before Spark 4.1 it needs all
    pieces of a range in one batch of at most 2 GiB; here a task reads one batch after another.
    """
    parts = min(layout.ranges, int(_setting(keys.sparkSession, "spark.sql.shuffle.partitions") or 200))
    pieces = keys.mapInArrow(_spark.Collect(layout), _PIECES)
    return _by_range(pieces, parts).sortWithinPartitions("range").mapInArrow(task, schema)


def _by_range(pieces: DataFrame, parts: int) -> DataFrame:
    """Moves all pieces of a range to the same task."""
    if hasattr(pieces, "repartitionById"):
        # From Spark 4.1 on. A hash of a few numbers would leave some tasks without a range.
        return pieces.repartitionById(parts, "range")
    return pieces.repartition(parts, "range")


# The most bytes of pieces that Spark passes to a process of Python at once, and as a number of pieces.
_MAX_BATCH_BYTES = 256 << 20
_MAX_BATCH_PIECES = _MAX_BATCH_BYTES >> 17
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30}


@contextmanager
def _bounded_batches(session: SparkSession) -> Iterator[None]:
    """Keeps batches of pieces far below 2 GiB, whatever limits the session has."""
    records = "spark.sql.execution.arrow.maxRecordsPerBatch"
    size = "spark.sql.execution.arrow.maxBytesPerBatch"
    # None if the session has Spark's own limit; Spark 3 has no limit of bytes.
    limit = _setting(session, size)
    if 0 < int(_setting(session, records) or 0) <= _MAX_BATCH_PIECES:
        changed = None
    elif limit is None:
        changed = (records, str(_MAX_BATCH_PIECES))
    else:
        number, unit = re.findall(r"^(\d+)\s*([a-z]*)$", limit.strip().lower())[0]
        # Larger units do not fit.
        fits = int(number) * _UNITS.get(unit, 1 << 40) <= _MAX_BATCH_BYTES
        changed = None if fits else (size, str(_MAX_BATCH_BYTES))
    if changed is None:
        yield
        return
    name, value = changed
    before = _setting(session, name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, before)


# The bytes of a filter that the driver fetches in one job; two are under way at a time. By default Spark
# refuses results of a job above 1 GiB.
_FETCHED_BYTES = 64 << 20


def _fetch(keys: DataFrame, layout: _Layout) -> Bloom:
    """Builds a filter in the memory of the driver."""
    pieces = _merged(keys, layout, _spark.MergePieces(layout), _PIECES)
    # Another shuffle, so that all ranges are merged at the same time and the driver reads them in turn.
    parts = _by_range(pieces, math.ceil(layout.file_bytes / _FETCHED_BYTES))
    with _bounded_batches(keys.sparkSession):
        rows = parts.toLocalIterator(prefetchPartitions=True)
        return _assemble_pieces(layout, (row.piece for row in rows))


def _write(keys: DataFrame, layout: _Layout, path: str) -> None:
    """Lets the tasks write the ranges of one file."""
    partial = _create_file(layout, path)
    try:
        written = _merged(keys, layout, _spark.WriteRanges(layout, partial), _spark.WriteRanges.SCHEMA)
        with _bounded_batches(keys.sparkSession):
            rows = written.collect()
        inserted = sum(row.inserted for row in rows)
        _finish_file(layout, path, partial, inserted, [(row.range, row.sums) for row in rows])
    except BaseException:
        with suppress(OSError):
            os.remove(partial)
        raise


def _save_shards(keys: DataFrame, layout: _Layout, folder: str) -> None:
    """Lets the tasks save the shards, and writes the manifest."""
    is_new = not os.path.isdir(folder)
    # Files that are in progress must not be among the shards when their tasks are killed.
    staging = os.path.join(folder, f".building-{uuid.uuid4().hex}")
    try:
        with _spark.file_errors(folder):
            os.makedirs(staging)
        saved = _merged(keys, layout, _spark.SaveShards(layout, staging), _spark.SaveShards.SCHEMA)
        with _bounded_batches(keys.sparkSession):
            done = {row.shard for row in saved.collect()}
        # Another process may have built a filter there in the meantime.
        _refuse_manifest(folder)
        for shard in range(layout.ranges):
            if shard not in done:
                # This shard has no keys.
                _spark.save_shard(staging, shard, _Merge(layout, shard))
            name = _spark.shard_name(shard)
            with _spark.file_errors(folder):
                os.replace(os.path.join(staging, name), os.path.join(folder, name))
        shutil.rmtree(staging, ignore_errors=True)
        _seal(layout, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        if is_new:
            # If it is empty.
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _shared_path(path: str | os.PathLike[str]) -> str:
    """Returns an absolute path, since the executors have working folders of their own."""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError("a path is a str or an os.PathLike")
    if re.match(r"[A-Za-z][\w+.-]+:/", name):
        raise ParameterError(
            f"path = {name} cannot be used: it needs a place in a file system that the driver and all "
            "executors have mounted, not a URL"
        )
    return os.path.abspath(name)


def _refuse_manifest(folder: str) -> None:
    for name in ("manifest", "manifest.next"):
        manifest = os.path.join(folder, name)
        if not os.path.lexists(manifest):
            continue
        message = f"cannot create {manifest}: the folder has a filter already: choose another path, or delete it"
        raise FileError(errno.EEXIST, message, manifest)


# The bytes of shards that are read to find their rate; keys are spread evenly over shards.
_SAMPLED_BYTES = 64 << 20


def _sample(folder: str, shards: int, secret: _Secret | None) -> list[_Stats]:
    sample: list[_Stats] = []
    size = 0
    for shard in range(shards):
        path = os.path.join(folder, _spark.shard_name(shard))
        size += os.path.getsize(path)
        sample.append(open(path, secret=secret).stats())
        if size >= _SAMPLED_BYTES:
            break
    return sample


def _warn_if_overfull(sample: list[_Stats], p: float) -> None:
    """Warns if a filter, or shards of one, have clearly more keys than they were planned for."""
    rate = sum(stats["fpr_now"] for stats in sample) / len(sample)
    keys = error = 0.0
    for stats in sample:
        count = stats["estimated_count"]
        # A filter in which all bits are set has no estimate.
        keys += math.inf if count is None else count
        error = math.hypot(error, stats["estimated_count_error"] or 0)
    planned = sum(stats["capacity"] or 0 for stats in sample)
    if rate > 1.1 * p and keys - 3 * error > planned:
        found = f"about {keys / planned:.3g} times as many" if keys < math.inf else "many times more"
        warnings.warn(
            f"n is too small: the column has {found} keys, and the false-positive rate of the filter is "
            f"{rate:.2g} instead of {p:g}; build it again with a larger n",
            RuntimeWarning,
            stacklevel=3,
        )


def _check_frame(name: str, df: object) -> None:
    try:
        import pyspark.sql  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError(f"umbel.spark needs {error.name}: {_INSTALL}", name=error.name) from None
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"{name} takes a DataFrame of Spark, not {type(df).__module__}.{type(df).__name__}")


def _keys(df: DataFrame, column: str) -> DataFrame:
    """Returns the column of keys, under the name `key`."""
    name = df.columns[_position(df, column)].replace("`", "``")
    return df.select(df[f"`{name}`"].alias("key"))


def _position(df: DataFrame, column: str) -> int:
    """Returns the position of a column by its name, after a check that its values can be keys."""
    if not isinstance(column, str):
        raise TypeError(f"a column is given by its name, not as {type(column).__name__}")
    fields = df.schema.fields
    found = [i for i, field in enumerate(fields) if field.name == column]
    if not found and _setting(df.sparkSession, "spark.sql.caseSensitive") != "true":
        found = [i for i, field in enumerate(fields) if field.name.lower() == column.lower()]
    if len(found) != 1:
        names = ", ".join(field.name for field in fields[:20]) + (", ..." if len(fields) > 20 else "")
        problem = f"has {len(found)} columns named" if found else "has no column"
        raise ParameterError(
            f'the DataFrame {problem} "{column}"; its columns are {names or "none"}: select() one under a '
            "name of its own"
        )
    kind = fields[found[0]].dataType.simpleString()
    if re.split(r"[ (<]", kind)[0] not in _KEY_TYPES:
        raise KeyTypeError(
            f'the column "{column}" has the type {kind}, and keys are text, bytes, Booleans or integers: '
            f'cast it first, as in df.withColumn("key", df["{column}"].cast("string"))'
        )
    return found[0]


def _setting(session: SparkSession, name: str) -> str | None:
    value: str | None = session.conf.get(name, None)
    return value


def _is_connect(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _send(session: SparkSession, f: _spark.Lookup) -> _spark.Source:
    """Sends a filter to the executors of a session."""
    if not _is_connect(session):
        return _spark.Broadcast(session.sparkContext.broadcast(f))
    with tempfile.TemporaryDirectory() as folder:
        name = f"umbel-{uuid.uuid4().hex}.pickle"
        path = os.path.join(folder, name)
        with builtins.open(path, "wb") as file:
            pickle.dump(f, file, protocol=5)
        session.addArtifact(path, file=True)
    return _spark.Artifact(name)


@contextmanager
def _explained() -> Iterator[None]:
    """Turns an exception of Spark into one of umbel, with a message of one line."""
    try:
        yield
    except pickle.PicklingError as error:
        # That of a broadcast variable, whose last line is the reason.
        raise UnsupportedError(str(error).strip().splitlines()[-1]) from None
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.", "grpc.")):
            raise
        # The message of the cause, which ends with the stack of the JVM, is replaced by its first line.
        raise _explain(str(error)) from None


# The lines of a traceback of Python that are not frames: `umbel.Error: message`.
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)


def _explain(text: str) -> Error:
    error = _spark.error_in(text)
    if isinstance(error, FileError):
        # It has a message already.
        hint = f"{error}; path= has to be a place that the driver and all executors can write to"
        return type(error)(error.errno, hint, error.filename)
    if error is not None:
        return error
    missing = re.search(r"No module named '(umbel|pyarrow|pandas)[.\w]*'", text)
    if missing:
        wheel = f"the wheel of umbel {__version__}" if missing[1] == "umbel" else missing[1]
        return Error(
            f"an executor of Spark cannot import {missing[1]}: install {wheel} in the environment of Python on "
            "every executor, or send one with spark.archives; spark.pyspark.python names its interpreter"
        )
    if "spark.driver.maxResultSize" in text:
        return Error(
            "the filter is larger than the driver accepts: pass path=, so that the executors write it, or "
            "raise spark.driver.maxResultSize"
        )
    raised = _EXCEPTION.findall(text)
    line = ": ".join(raised[-1]) if raised else next(iter(text.strip().splitlines()), "no reason given")
    return Error(f"Spark could not run the query: {line}")
