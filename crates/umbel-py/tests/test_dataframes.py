"""The recipes for polars, pandas and DuckDB, and the example that removes repeated lines."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT, library

import umbel
from umbel import Bloom

MEMBERS = ["ann", "bob", "čert", ""]


@pytest.fixture(scope="module")
def members():
    f = Bloom(1000, 1e-9)
    f.update(MEMBERS, range(100))
    return f


@pytest.fixture(scope="module")
def pl():
    module = library("polars")
    import umbel.polars  # noqa: F401

    return module


def expected(values):
    return [None if value is None else value in [*MEMBERS, *range(100)] for value in values]


# Values and the name of a polars type.
VALUES = ["ann", None, "eve", "", "čert", "longer than an Arrow view can hold", "ann"]
COLUMNS = {
    "text": (VALUES, "String"),
    "bytes": ([None if value is None else value.encode() for value in VALUES], "Binary"),
    "categories": (VALUES, "Categorical"),
    "integers": ([5, None, 1000, -1, 99], "Int64"),
    "small integers": ([5, None, 100, 99], "UInt8"),
    "Booleans": ([True, None, False], "Boolean"),
    "nothing but nulls": ([None, None], "String"),
    "nulls without a type": ([None, None], "Null"),
    "empty": ([], "String"),
    "empty without a type": ([], "Null"),
}


def texts(values):
    return [value.decode() if isinstance(value, bytes) else value for value in values]


@pytest.mark.parametrize("values, dtype", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("engine", ["eager", "lazy", "streaming"])
def test_isin_answers_each_value_and_keeps_nulls(pl, members, values, dtype, engine):
    frame = pl.DataFrame({"id": pl.Series(values, dtype=getattr(pl, dtype))})
    is_member = pl.col("id").umbel.isin(members).alias("member")
    if engine == "eager":
        got = frame.select(is_member)
    else:
        query = frame.lazy().select(is_member)
        assert query.collect_schema() == {"member": pl.Boolean}
        got = query.collect(engine="streaming" if engine == "streaming" else "in-memory")
    assert got.schema == {"member": pl.Boolean}
    assert got["member"].to_list() == expected(texts(values))


def test_isin_of_an_enumeration_and_of_chunks(pl, members):
    enum = pl.Series(["ann", "eve", None], dtype=pl.Enum(["eve", "ann"]))
    chunks = pl.concat([enum, enum[:0], enum[1:]], rechunk=False)
    assert chunks.n_chunks() > 1
    frame = pl.DataFrame({"id": chunks})
    got = frame.select(pl.col("id").umbel.isin(members))["id"].to_list()
    assert got == [True, False, None, False, None]
    sliced = frame[1:4].select(pl.col("id").umbel.isin(members))["id"].to_list()
    assert sliced == [False, None, False]


def test_isin_of_a_large_frame_in_the_streaming_engine(pl, members):
    ids = pl.DataFrame({"id": range(300_000)}).lazy()
    query = ids.filter(pl.col("id").umbel.isin(members))
    for engine in ("in-memory", "streaming"):
        assert query.collect(engine=engine)["id"].to_list() == list(range(100))


def test_isin_in_groups_windows_and_conditions(pl, members):
    frame = pl.DataFrame({"day": [1, 1, 2, 2, 2], "id": ["ann", "eve", "bob", None, "ann"]})
    is_member = pl.col("id").umbel.isin(members)
    counts = frame.group_by("day").agg(is_member.sum()).sort("day")
    assert counts["id"].to_list() == [1, 2]
    windows = frame.select(is_member.sum().over("day"))
    assert windows["id"].to_list() == [1, 1, 2, 2, 2]
    chosen = frame.select(pl.when(is_member).then(pl.col("id")).otherwise(pl.lit("?")))
    assert chosen["id"].to_list() == ["ann", "?", "bob", "?", "ann"]
    empty = frame.filter(pl.col("day") > 2).group_by("day").agg(is_member.sum())
    assert empty.is_empty()


def test_isin_looks_up_when_the_query_runs(pl):
    f = Bloom(10, 1e-9)
    query = pl.LazyFrame({"id": ["ann"]}).select(pl.col("id").umbel.isin(f))
    assert query.collect().item() is False
    f.add("ann")
    assert query.collect().item() is True


def test_isin_takes_every_kind_and_mapped_files(pl, tmp_path):
    column = pl.DataFrame({"id": ["ann", "eve"]})
    f = Bloom(10, 1e-9)
    f.update(["ann"])
    f.save(tmp_path / "f.umbel")
    for f in (umbel.Fuse(["ann"], 1e-9), umbel.open(tmp_path / "f.umbel")):
        assert column.select(pl.col("id").umbel.isin(f))["id"].to_list() == [True, False]


def test_isin_refuses_what_it_cannot_look_up(pl, members):
    with pytest.raises(TypeError, match="is_in"):
        pl.col("id").umbel.isin(["ann"])
    with pytest.raises(TypeError, match="Distinct"):
        pl.col("id").umbel.isin(umbel.Distinct())
    for values in ([1.5], [[1]], [{"a": 1, "b": 2}]):
        with pytest.raises(umbel.KeyTypeError):
            pl.DataFrame({"id": values}).select(pl.col("id").umbel.isin(members))
    objects = pl.DataFrame({"id": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(umbel.KeyTypeError, match="to_list"):
        objects.select(pl.col("id").umbel.isin(members))


def test_the_function_is_the_namespace(pl, members):
    frame = pl.DataFrame({"id": ["ann", None]})
    by_function = frame.select(umbel.polars.isin(pl.col("id"), members))
    assert by_function.equals(frame.select(pl.col("id").umbel.isin(members)))


PANDAS = {
    "str": lambda pd: pd.Series(VALUES, dtype="str"),
    "string": lambda pd: pd.Series(VALUES, dtype="string"),
    "category": lambda pd: pd.Series(VALUES, dtype="category"),
    "arrow": lambda pd: pd.Series(VALUES, dtype=pd.ArrowDtype(library("pyarrow").string())),
    "Int64": lambda pd: pd.Series([5, None, 1000], dtype="Int64"),
    "int8": lambda pd: pd.Series([5, -1, 100], dtype="int8"),
    "bool": lambda pd: pd.Series([True, False]),
    "empty": lambda pd: pd.Series([], dtype="str"),
    "chunks": lambda pd: pd.concat([pd.Series(VALUES, dtype="string[pyarrow]")] * 3),
    "labels": lambda pd: pd.Series(VALUES, index=list("zyxwvut")),
    "slice": lambda pd: pd.Series(["no", *VALUES])[1:],
    "object": lambda pd: pd.Series([value for value in VALUES if value is not None], dtype=object),
}


@pytest.mark.parametrize("make", PANDAS.values(), ids=PANDAS)
def test_pandas_selects_the_rows_of_members(members, make):
    pd, np = library("pandas"), library("numpy")
    library("pyarrow")
    column = make(pd)
    frame = pd.DataFrame({"id": column, "row": range(len(column))})
    got = frame[np.asarray(members.contains_many(frame["id"]))]
    values = [None if pd.isna(value) else value for value in column]
    rows = [row for row, answer in enumerate(expected(values)) if answer]
    assert got["row"].to_list() == rows
    f, g = Bloom(100, 0.01), Bloom(100, 0.01)
    f.update(column)
    g.update(value for value in values if value is not None)
    assert f == g and f.inserted == g.inserted


def test_pandas_has_a_column_of_the_answers_with_nulls(members):
    pd, pa = library("pandas"), library("pyarrow")
    mask = members.contains_many(pd.Series(["ann", None, "eve"]))
    column = pd.Series(pa.array(mask), dtype=pd.ArrowDtype(pa.bool_()))
    assert [None if pd.isna(value) else value for value in column] == [True, None, False]


@pytest.fixture
def db(members):
    duckdb, pa = library("duckdb"), library("pyarrow")
    with duckdb.connect() as connection:
        connection.create_function(
            "is_member",
            lambda ids: pa.array(members.contains_many(ids)),
            ["VARCHAR"],
            "BOOLEAN",
            type="arrow",
        )
        yield connection


def test_duckdb_filters_by_a_scalar_function(db):
    db.execute("create table visits as from (values ('ann', 1), ('eve', 2), (null, 3), ('', 4)) t(id, page)")
    assert db.sql("select page from visits where is_member(id) order by page").fetchall() == [(1,), (4,)]
    assert db.sql("select is_member(id) from visits order by page").fetchall() == [
        (True,), (False,), (None,), (True,)
    ]  # fmt: skip
    assert db.sql("select page from visits where is_member(id) and page > 9").fetchall() == []
    assert db.sql("select is_member(null)").fetchall() == [(None,)]
    assert db.sql("select is_member('ann'), is_member('eve')").fetchall() == [(True, False)]


def test_duckdb_calls_the_function_with_every_row(db):
    """A table of many vectors, with nulls in between and from several threads."""
    db.execute(
        "create table many as select case when i % 7 = 0 then null when i % 5 = 0 then 'ann' "
        "else 'eve' || i end as id from range(200_000) t(i)"
    )
    [(count,)] = db.sql("select count(*) from many where is_member(id)").fetchall()
    assert count == sum(1 for i in range(200_000) if i % 7 and i % 5 == 0)


def test_duckdb_functions_of_integers(members):
    duckdb, pa = library("duckdb"), library("pyarrow")
    with duckdb.connect() as db:
        db.create_function(
            "is_member", lambda ids: pa.array(members.contains_many(ids)), ["BIGINT"], "BOOLEAN", type="arrow"
        )
        got = db.sql("select i from range(-5, 200) t(i) where is_member(i) order by i").fetchall()
        assert got == [(i,) for i in range(100)]


def test_a_query_of_duckdb_with_one_column_is_a_column():
    duckdb = library("duckdb")
    f, g = Bloom(100_000, 0.01), Bloom(100_000, 0.01)
    with duckdb.connect() as db:
        f.update(db.sql("select case when i % 3 = 0 then null else 'id-' || i end from range(50_000) t(i)"))
        assert f.contains_many(db.sql("select 'id-1' union all select null")).to_list() == [True, None]
        f.update(db.sql("select 'x' where false"))
    g.update(f"id-{i}" for i in range(50_000) if i % 3)
    assert f == g


def test_the_example_removes_repeated_lines(tmp_path):
    example = ROOT / "crates/umbel-py/examples/dedup.py"
    done = subprocess.run(
        [sys.executable, example, ROOT / "docs", "*.md"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert " lines, " in first and first.endswith(" distinct")
    assert len(rows) == 4
    # At a rate of one in a million, a line of a small corpus is lost in one run of hundreds.
    assert ", 0 lines lost," in rows[-1], done.stdout


def test_the_example_keeps_the_first_of_each_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "crates/umbel-py/examples")
    import dedup

    corpus, output = tmp_path / "corpus.jsonl", tmp_path / "deduplicated.jsonl"
    paths = sorted((ROOT / "docs").rglob("*.md"))
    rows = [{"name": path.name, "text": path.read_text(encoding="utf-8")} for path in paths]
    rows += [{"name": "again", "text": rows[0]["text"]}, {"name": "empty", "text": ""}]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    dedup.deduplicate(corpus, output, 1e-9)
    seen = set()
    for before, after in zip(rows, dedup.documents(output), strict=True):
        first = []
        for line in before["text"].splitlines():
            if not line or line not in seen:
                first.append(line)
            seen.add(line)
        assert after == before | {"text": "\n".join(first)}
