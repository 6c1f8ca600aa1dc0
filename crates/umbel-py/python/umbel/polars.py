"""Lookups in expressions of polars: `pl.col("id").umbel.isin(f)`.

Importing this module registers the namespace `umbel` for expressions.

>>> import polars as pl
>>> import umbel.polars
>>> from umbel import Bloom
>>> f = Bloom(1000, 0.01)
>>> f.update(["apple", "pear"])
>>> fruit = pl.DataFrame({"id": ["apple", "plum", None]})
>>> fruit.filter(pl.col("id").umbel.isin(f))["id"].to_list()
['apple']
>>> fruit.select(~pl.col("id").umbel.isin(f))["id"].to_list()
[False, True, None]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from . import Filter
from ._errors import KeyTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UmbelExpr", "isin"]


def isin(expr: pl.Expr, filter: Filter) -> pl.Expr:
    """Returns an expression that looks up each value of a column in a filter.

    The same as `expr.umbel.isin(filter)`, for programs whose type checker does not know the
    namespace.

    >>> import polars as pl
    >>> import umbel.polars
    >>> f = umbel.Bloom(1000, 0.01)
    >>> f.update([1, 2])
    >>> numbers = pl.DataFrame({"id": [1, 2, 3]})
    >>> numbers.select(umbel.polars.isin(pl.col("id"), f))["id"].to_list()
    [True, True, False]
    """
    if not isinstance(filter, Filter):
        raise TypeError(
            "isin() takes a filter of umbel, such as umbel.Bloom, not "
            f"{type(filter).__name__}: for a list of values, use is_in() of polars"
        )
    return expr.map_batches(_look_up(filter), return_dtype=pl.Boolean, is_elementwise=True)


@pl.api.register_expr_namespace("umbel")
class UmbelExpr:
    """The namespace `umbel` of expressions."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def isin(self, filter: Filter) -> pl.Expr:
        """Returns an expression that looks up each value of the column in a filter.

        Its values are Booleans, true where the filter may have the value; null stays null. The column
        holds text, bytes, integers, Booleans, categories or enumerations: another type raises
        `KeyTypeError` when the query runs. The lookups happen then, too, in the items that the
        filter has at that time. Lazy frames, the streaming engine and groups are supported.

        >>> import polars as pl
        >>> import umbel.polars
        >>> f = umbel.Bloom(1000, 0.01)
        >>> f.update(["apple", "pear"])
        >>> fruit = pl.LazyFrame({"id": ["apple", "plum", None]})
        >>> fruit.select(pl.col("id").umbel.isin(f)).collect()["id"].to_list()
        [True, False, None]
        """
        return isin(self._expr, filter)


def _look_up(filter: Filter) -> Callable[[pl.Series], pl.Series]:
    """Returns the function that looks up one batch."""

    def look_up(column: pl.Series) -> pl.Series:
        if column.dtype == pl.Null:
            # polars exports such a column in a form that Arrow libraries refuse.
            return pl.repeat(None, len(column), dtype=pl.Boolean, eager=True).alias(column.name)
        if column.dtype == pl.Object:
            # Their Arrow form is the addresses of the objects.
            raise KeyTypeError(
                "a polars column of Python objects does not hold keys: convert it to text, bytes or "
                "integers, or pass column.to_list() to contains_many() of a filter with key="
            )
        return pl.Series(column.name, filter.contains_many(column), dtype=pl.Boolean)

    return look_up
