"""Filters over DataFrames of Spark, on a cluster of two executors."""

import decimal
import doctest

import cluster
import pytest
from conftest import library

import umbel
import umbel.spark
from umbel import Bloom


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    library("pyspark")
    session = cluster.start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def members():
    f = Bloom(1000, 1e-9)
    f.update(["ann", "bob", "čert", ""], range(100))
    return f


@pytest.fixture(scope="session")
def visits(spark):
    rows = [("ann", 1, 1.5), ("eve", 2, None), (None, 3, 2.5), ("", 4, 3.5), ("čert", None, 4.5)]
    return spark.createDataFrame(rows, "id string, `page no.` int, price double")


def column(df, name):
    return [row[name] for row in df.orderBy("price").collect()]


def message(kind, function, *args, **kwargs):
    """The message of the exception that a call raises: one line without frames of Java."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text and "\tat " not in text, text
    # Nor does the traceback show the exception of Spark.
    assert caught.value.__cause__ is None, text
    assert caught.value.__context__ is None or caught.value.__suppress_context__, text
    return text


def test_filter_keeps_members_or_the_rest_and_no_null_is_a_member(visits, members):
    kept = visits.transform(umbel.spark.filter(members, "id"))
    rest = visits.transform(umbel.spark.filter(members, "id", keep=False))
    assert column(kept, "id") == ["ann", "", "čert"]
    assert column(rest, "id") == ["eve", None] or column(rest, "id") == [None, "eve"]
    assert kept.schema == rest.schema == visits.schema
    assert kept.collect()[0] in visits.collect()


def test_filter_takes_awkward_names_duplicates_and_nested_columns(spark, visits, members):
    pages = visits.transform(umbel.spark.filter(members, "page no."))
    assert sorted(row["page no."] for row in pages.collect()) == [1, 2, 3, 4]
    assert visits.transform(umbel.spark.filter(members, "ID")).count() == 3
    twice = visits.selectExpr("price x", "price x", "array(id, 'b') list", "id", "timestamp'2026-01-01' at")
    got = twice.transform(umbel.spark.filter(members, "id"))
    assert got.schema == twice.schema
    assert sorted(got.collect()) == sorted(row for row in twice.collect() if row.id in ("ann", "", "čert"))
    documented = visits.withMetadata("id", {"comment": "the user"})
    assert documented.transform(umbel.spark.filter(members, "id")).schema["id"].metadata == {"comment": "the user"}


KEYS = {
    "text": ("cast(id as string)", str),
    "varchar": ("cast(id as varchar(9))", str),
    "bytes": ("encode(cast(id as string), 'UTF-8')", lambda i: str(i).encode()),
    "tinyint": ("cast(id as tinyint)", int),
    "smallint": ("cast(id as smallint)", int),
    "int": ("cast(id - 50 as int)", lambda i: i - 50),
    "bigint": ("id - 50", lambda i: i - 50),
    "Booleans": ("id % 2 = 0", lambda i: i % 2 == 0),
    "nulls": ("null", lambda i: None),
}


@pytest.mark.parametrize("expression, key", KEYS.values(), ids=KEYS)
def test_the_keys_of_a_column_are_those_of_python(spark, expression, key):
    f = Bloom(1000, 1e-9)
    keys = [key(i) for i in range(0, 100, 3)]
    f.update(k for k in keys if k is not None)
    df = spark.range(0, 100, 1, 2).selectExpr("id", f"{expression} as k")
    got = sorted(row.id for row in df.transform(umbel.spark.filter(f, "k")).collect())
    assert got == [i for i in range(100) if key(i) is not None and key(i) in keys]


def test_filter_takes_other_kinds_and_foreign_filters(spark, tmp_path):
    ids = spark.range(10).selectExpr("cast(id as string) as id")
    Bloom(10, 1e-9).save(tmp_path / "empty.umbel")
    foreign = umbel.Foreign("guava", 100, 1e-9)
    foreign.update(["3", "4"])
    kinds = {
        "fuse": umbel.Fuse(["3", "4"], 1e-9),
        "guava": foreign,
        "keyed": Bloom(100, 1e-9, secret=bytes(16)),
    }
    kinds["keyed"].update(["3", "4"])
    for name, f in kinds.items():
        got = sorted(row.id for row in ids.transform(umbel.spark.filter(f, "id")).collect())
        assert got == ["3", "4"], name
    mapped = umbel.open(tmp_path / "empty.umbel")
    assert ids.transform(umbel.spark.filter(mapped, "id")).count() == 0


def test_filter_sends_the_items_of_the_moment(spark):
    f = Bloom(100, 1e-9)
    f.update([1, 2])
    kept = spark.range(10).transform(umbel.spark.filter(f, "id"))
    f.update([3])
    assert [row.id for row in kept.collect()] == [1, 2]
    assert spark.range(10).transform(umbel.spark.filter(f, "id")).count() == 3


def test_a_column_that_cannot_be_one_is_named_before_a_job_runs(spark, visits, members):
    def apply(column, df=visits):
        return df.transform(umbel.spark.filter(members, column))

    said = message(umbel.ParameterError, apply, "nowhere")
    assert '"nowhere"' in said and "id, page no., price" in said
    with pytest.raises(umbel.KeyTypeError, match='"price" has the type double'):
        apply("price")
    for kind in ("array(id)", "current_date()", "current_timestamp()", "cast(id as decimal(9, 0))", "struct(id)"):
        with pytest.raises(umbel.KeyTypeError, match='column "k" has the type .* cast'):
            apply("k", spark.range(3).selectExpr(f"{kind} as k"))
    with pytest.raises(umbel.ParameterError, match='2 columns named "id"'):
        apply("id", spark.range(3).selectExpr("id", "id"))
    with pytest.raises(TypeError, match="by its name"):
        apply(visits.id)


def test_arguments_of_other_types_are_refused(visits, members):
    with pytest.raises(TypeError, match=r"isin\(\) of Spark"):
        umbel.spark.filter(["ann"], "id")
    with pytest.raises(TypeError, match="a DataFrame of Spark, not"):
        umbel.spark.filter(members, "id")(decimal.Decimal(1))


def test_the_examples_of_the_docstrings_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(umbel.spark)
    assert result.failed == 0 and result.attempted > 8
    assert all(getattr(umbel.spark, name).__doc__.count(">>>") > 2 for name in umbel.spark.__all__)
