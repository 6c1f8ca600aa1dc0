"""Filters over DataFrames of Spark: select the rows whose key is in a filter.

The tasks run on the executors of Spark, which need the wheel of this package and pyarrow, and nothing
else. Only methods of DataFrames are called, so sessions of Spark Connect work, too.

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

import os
import pickle
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import Error, Filter, Foreign, KeyTypeError, ParameterError, __version__

_INSTALL = "install it with `pip install 'pyspark[sql]'`"
try:
    from . import _spark
except ModuleNotFoundError as _missing:
    raise ImportError(f"umbel.spark needs {_missing.name}: {_INSTALL}", name=_missing.name) from None

if TYPE_CHECKING:
    # pyspark is optional: a type checker that does not find it takes its types as `Any`.
    from pyspark.sql import DataFrame, SparkSession  # type: ignore[import-not-found,unused-ignore]

__all__ = ["filter"]

# The names of the types whose columns `Filter.update` takes.
_KEY_TYPES = frozenset(
    ["string", "char", "varchar", "binary", "boolean", "tinyint", "smallint", "int", "bigint", "void"]
)


def filter(f: Filter | Foreign, column: str, keep: bool = True) -> Callable[[DataFrame], DataFrame]:
    """Returns a function for `DataFrame.transform` that keeps the rows whose key may be in a filter.

    With `keep=False` it keeps the others, which are certainly not in the filter. A null is never a
    member: `keep=True` drops its row, and `keep=False` keeps it. All columns and their types stay.
    The column holds text, bytes, Booleans or integers.

    The filter is sent to the executors once for each call of the function, with the items that it has
    then: as a broadcast variable, or on Spark Connect as an artifact of the session. Each process of
    Python on an executor has a copy of it in memory.

    >>> import umbel.spark
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> seen = umbel.Bloom(1000, 0.001)
    >>> seen.update([1, 2])
    >>> new = spark.range(5).transform(umbel.spark.filter(seen, "id", keep=False))
    >>> sorted(row.id for row in new.collect())
    [0, 3, 4]
    """
    if not isinstance(f, (Filter, Foreign)):
        raise TypeError(
            f"filter() takes a filter of umbel, such as umbel.Bloom, not {type(f).__name__}: for a list of values, "
            "use isin() of Spark"
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


def _check_frame(name: str, df: object) -> None:
    try:
        import pyspark.sql  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError(f"umbel.spark needs {error.name}: {_INSTALL}", name=error.name) from None
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"{name} takes a DataFrame of Spark, not {type(df).__module__}.{type(df).__name__}")


def _position(df: DataFrame, column: str) -> int:
    """Returns the position of a column by its name, after a check that its values can be keys."""
    if not isinstance(column, str):
        raise TypeError(f"a column is given by its name, not as {type(column).__name__}")
    fields = df.schema.fields
    found = [i for i, field in enumerate(fields) if field.name == column]
    if not found and df.sparkSession.conf.get("spark.sql.caseSensitive", "false") != "true":
        found = [i for i, field in enumerate(fields) if field.name.lower() == column.lower()]
    if len(found) != 1:
        names = ", ".join(field.name for field in fields[:20]) + (", ..." if len(fields) > 20 else "")
        problem = f"has {len(found)} columns named" if found else "has no column"
        raise ParameterError(
            f'the DataFrame {problem} "{column}"; its columns are {names or "none"}: select() one under a name of its own'
        )
    kind = fields[found[0]].dataType.simpleString()
    if re.split(r"[ (<]", kind)[0] not in _KEY_TYPES:
        raise KeyTypeError(
            f'the column "{column}" has the type {kind}, and keys are text, bytes, Booleans or integers: '
            f'cast it first, as in df.withColumn("key", df["{column}"].cast("string"))'
        )
    return found[0]


def _is_connect(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _send(session: SparkSession, f: Filter | Foreign) -> _spark.Source:
    """Sends a filter to the executors of a session."""
    if not _is_connect(session):
        return _spark.Broadcast(session.sparkContext.broadcast(f.copy()))
    with tempfile.TemporaryDirectory() as folder:
        name = f"umbel-{uuid.uuid4().hex}.pickle"
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            pickle.dump(f, file, protocol=5)
        session.addArtifact(path, file=True)
    return _spark.Artifact(name)


@contextmanager
def _explained() -> Iterator[None]:
    """Turns an exception of Spark into one of umbel, with a message of one line."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.", "grpc.")):
            raise
        # The message of the cause, which ends with the stack of the JVM, is replaced by its first line.
        raise _explain(str(error)) from None


# The lines of a traceback of Python that are not frames: `umbel.Error: message`.
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)


def _explain(text: str) -> Error:
    error = _spark.error_in(text)
    if error is not None:
        return error
    missing = re.search(r"No module named '(umbel|pyarrow|pandas)[.\w]*'", text)
    if missing:
        wheel = f"the wheel of umbel {__version__}" if missing[1] == "umbel" else missing[1]
        return Error(
            f"an executor of Spark cannot import {missing[1]}: install {wheel} in the environment of Python on every "
            "executor, or send one with spark.archives; spark.pyspark.python names its interpreter"
        )
    if "spark.driver.maxResultSize" in text:
        return Error(
            "the filter is larger than the driver accepts: pass path=, so that the executors write it, or raise "
            "spark.driver.maxResultSize"
        )
    raised = _EXCEPTION.findall(text)
    line = ": ".join(raised[-1]) if raised else next(iter(text.strip().splitlines()), "no reason given")
    return Error(f"Spark could not run the query: {line}")
