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

import polars as pl

from . import Filter, Foreign, Sharded

__all__ = ["UmbelExpr", "isin"]


def isin(expr: pl.Expr, filter: Filter | Foreign | Sharded) -> pl.Expr:
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
    if not isinstance(filter, (Filter, Foreign, Sharded)):
        raise TypeError(
            "isin() takes a filter of umbel, such as umbel.Bloom, not "
            f"{type(filter).__name__}: for a list of values, use is_in() of polars"
        )

    def look_up(column: pl.Series) -> pl.Series:
        return pl.Series(column.name, filter.contains_many(column), dtype=pl.Boolean)

    return expr.map_batches(look_up, return_dtype=pl.Boolean, is_elementwise=True)


@pl.api.register_expr_namespace("umbel")
class UmbelExpr:
    """The namespace `umbel` of expressions."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def isin(self, filter: Filter | Foreign | Sharded) -> pl.Expr:
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
