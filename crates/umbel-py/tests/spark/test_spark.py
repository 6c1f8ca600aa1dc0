"""Filters over DataFrames of Spark, on a cluster of two executors."""

import decimal
import doctest
import warnings

import cluster
import pytest
from conftest import library
from test_docs import blocks, play
from test_typing import check

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


def message(exception, function, *args, **kwargs):
    """The message of the exception that a call raises: one line without frames of Java."""
    with pytest.raises(exception) as caught:
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


# Two keys in three rows, and a null in each seventh.
ROWS, KEYS_OF_ROWS = 60_000, 40_000
N, P, SHARDS = 50_000, 0.001, 8
USER = f"if(id % 7 = 0, null, concat('user-', cast(id % {KEYS_OF_ROWS} as string))) as user_id"


def user_ids():
    return [f"user-{i % KEYS_OF_ROWS}" for i in range(ROWS) if i % 7]


@pytest.fixture(scope="session")
def users(spark):
    return spark.range(0, ROWS, 1, 8).selectExpr(USER)


@pytest.fixture(scope="session")
def file(shell, tmp_path_factory):
    """The file that the shell makes of the same rows."""
    path = tmp_path_factory.mktemp("file") / "shell.umbel"
    shell("build", "-n", N, "-p", P, "-o", path, stdin="".join(f"{user}\n" for user in user_ids()).encode())
    return path.read_bytes()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The files of the same rows in shards."""
    path = tmp_path_factory.mktemp("folder") / "shards"
    umbel.Sharded.build(user_ids(), N, P, SHARDS, path)
    return contents(path)


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def build(df, **options):
    return umbel.spark.build(df, "user_id", n=N, p=P, **options)


def build_sharded(df, path, **options):
    return umbel.spark.build_sharded(df, "user_id", **{"n": N, "p": P, "shards": SHARDS, **options}, path=path)


def test_build_makes_the_file_of_the_shell_from_any_partitions(users, file):
    for df in (users, users.repartition(3), users.coalesce(1)):
        f = build(df)
        assert bytes(f) == file
        assert f.inserted == len(user_ids())


def test_the_executors_write_the_same_file(users, file, tmp_path):
    f = build(users, path=tmp_path / "users.umbel")
    assert (tmp_path / "users.umbel").read_bytes() == file
    assert [entry.name for entry in tmp_path.iterdir()] == ["users.umbel"]
    assert f.read_only and "user-1" in f
    # It replaces a file that is there.
    build(users.limit(0), path=str(tmp_path / "users.umbel"))
    assert (tmp_path / "users.umbel").read_bytes() == bytes(Bloom(N, P))


def test_the_executors_write_the_folder_of_a_filter_in_shards(users, folder, tmp_path):
    f = build_sharded(users, tmp_path / "shards")
    assert contents(tmp_path / "shards") == folder
    assert f.shards == SHARDS and "user-1" in f
    build_sharded(users.repartition(3), tmp_path / "again")
    assert contents(tmp_path / "again") == folder


@pytest.mark.parametrize("kind", ["standard", "partitioned"])
def test_other_kinds_and_hashes_have_the_bits_of_python(spark, users, kind, tmp_path):
    options = {"kind": kind, "secret": bytes(range(16))}
    f = Bloom(N, P, **options)
    f.update(user_ids())
    assert build(users, **options) == f
    written = build(users, path=tmp_path / "file", **options)
    assert written == f and umbel.load(tmp_path / "file", secret=options["secret"]) == f
    numbers = spark.range(0, 1000, 1, 4)
    g = Bloom(1000, P, seed=7)
    g.update(range(1000))
    assert umbel.spark.build(numbers, "id", n=1000, p=P, seed=7) == g
    assert umbel.spark.build(numbers, "id", n=1000, p=P, hash="keyed").hash == "keyed"


def test_without_n_the_keys_are_counted_first(users):
    f = umbel.spark.build(users, "user_id", p=P)
    distinct = len(set(user_ids()))
    assert distinct * 0.99 < f.expected_items < distinct * 1.13
    assert f.stats()["fpr_now"] < P * 1.1
    assert all(f.contains_many(user_ids()))


def test_columns_without_keys_make_empty_filters(spark, tmp_path):
    nulls = spark.range(5).selectExpr("cast(null as string) as user_id")
    for df in (nulls, nulls.limit(0)):
        f = umbel.spark.build(df, "user_id", p=P)
        assert f.inserted == 0 and f.expected_items == 1
    empty = build_sharded(nulls, tmp_path / "shards")
    assert empty.inserted == 0 and len(contents(tmp_path / "shards")) == SHARDS + 1


def fail_and_kill(folder, app):
    """Returns a function for `mapInArrow`: at first one task fails, and another kills its executor."""

    def trouble(batches):
        import os
        import signal

        from pyspark import TaskContext

        task = TaskContext.get()
        with open(f"{folder}/task-{task.partitionId()}-{task.attemptNumber()}", "w"):
            pass
        for i, batch in enumerate(batches):
            if i == 1 and task.partitionId() == 1 and task.attemptNumber() == 0:
                raise RuntimeError("fails on its first attempt")
            if i == 1 and task.partitionId() == 4 and not os.path.exists(f"{folder}/killed"):
                pid = os.getpid()
                # This process, the daemon that forked it, and the executor.
                for _ in range(4):
                    with open(f"/proc/{pid}/status") as status:
                        pid = int(status.read().split("PPid:")[1].split()[0])
                    with open(f"/proc/{pid}/cmdline", "rb") as line:
                        command = line.read()
                    if b"CoarseGrainedExecutorBackend" in command and app.encode() in command:
                        with open(f"{folder}/killed", "x"):
                            os.kill(pid, signal.SIGKILL)
                        break
            yield batch

    return trouble


def test_a_failed_task_and_a_killed_executor_change_no_byte(spark, users, file, folder, tmp_path):
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    # Several batches in each partition.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    try:
        trouble = fail_and_kill(str(tmp_path), spark.sparkContext.applicationId)
        f = build(users.mapInArrow(trouble, "user_id string"))
        assert bytes(f) == file
        assert (tmp_path / "killed").exists(), "no executor was killed"
        assert (tmp_path / "task-1-1").exists(), "the task that failed did not run again"
        for trace in tmp_path.glob("*"):
            trace.unlink()
        trouble = fail_and_kill(str(tmp_path), spark.sparkContext.applicationId)
        build_sharded(users.mapInArrow(trouble, "user_id string"), tmp_path / "shards")
        assert contents(tmp_path / "shards") == folder
        assert (tmp_path / "killed").exists() and (tmp_path / "task-1-1").exists()
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)


def failing(df):
    # Executors do not import this file, but they take a function without a name in it.
    def always_fails(batches):
        for _ in batches:
            raise RuntimeError("no disk")
        yield

    return df.mapInArrow(always_fails, "user_id string")


def test_a_build_that_fails_leaves_nothing(users, tmp_path):
    broken = failing(users)
    for run in (
        lambda: build(broken),
        lambda: build(broken, path=tmp_path / "file"),
        lambda: build_sharded(broken, tmp_path / "shards"),
    ):
        assert message(umbel.Error, run).endswith("RuntimeError: no disk")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_manifest_is_refused_and_leftovers_are_replaced(users, folder, tmp_path):
    (tmp_path / "shard-0000.umbel").write_bytes(b"what a run that was killed has left")
    with pytest.raises(umbel.Error):
        umbel.open(tmp_path)
    build_sharded(users, tmp_path)
    assert contents(tmp_path) == folder
    broken = failing(users)
    assert "has a filter already" in message(umbel.FileError, build_sharded, broken, tmp_path)
    assert contents(tmp_path) == folder


def test_a_path_that_cannot_be_written_is_one_exception(users, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    message(umbel.MissingFileError, build, users, path=tmp_path / "nowhere" / "f.umbel")
    message(umbel.DirectoryError, build, users, path=tmp_path)
    said = message(umbel.FileError, build_sharded, users, tmp_path / "file" / "shards")
    assert str(tmp_path / "file" / "shards") in said
    for path in ("s3://bucket/filter", "hdfs://host:9/filter", "file:/filter"):
        assert "mounted" in message(umbel.ParameterError, build, users, path=path)
    # An executor that does not see the folder of the driver.
    hidden = umbel._spark.SaveShards.__init__
    monkeypatch.setattr(
        umbel._spark.SaveShards, "__init__", lambda self, layout, staging: hidden(self, layout, "/nowhere/else")
    )
    said = message(umbel.MissingFileError, build_sharded, users, tmp_path / "shards")
    assert "/nowhere/else" in said and "all executors can write to" in said
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_too_small_an_n_is_warned_of_with_the_rate(users, tmp_path):
    for run in (
        lambda: umbel.spark.build(users, "user_id", n=20_000, p=P),
        lambda: umbel.spark.build(users, "user_id", n=10, p=P, path=tmp_path / "file"),
        lambda: build_sharded(users, tmp_path / "shards", n=20_000),
    ):
        with pytest.warns(RuntimeWarning, match=r"n is too small: .* rate of the filter is [\d.]+ instead of 0.001") as said:
            run()
        assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        umbel.spark.build(users, "user_id", n=40_000, p=P)


def test_parameters_are_refused_as_by_bloom(users, tmp_path):
    broken = failing(users)
    for n in (True, False, 1.5, float("nan"), "9", [1]):
        with pytest.raises(TypeError):
            umbel.spark.build(broken, "user_id", n=n)
    for n in (0, -1, 0.0, 1e300):
        assert "n = " in message(umbel.ParameterError, umbel.spark.build, broken, "user_id", n=n)
    assert "p = 2" in message(umbel.ParameterError, umbel.spark.build, broken, "user_id", n=1, p=2)
    assert "kind" in message(umbel.ParameterError, umbel.spark.build, broken, "user_id", kind="cuckoo")
    message(umbel.SecretError, umbel.spark.build, broken, "user_id", secret=b"short")
    for shards in (0, 1025):
        assert "shards" in message(umbel.ParameterError, build_sharded, broken, tmp_path / "s", shards=shards)
    # Nobody could read the file.
    for strength, length in (("keyed", 16), ("sealed", 32)):
        said = message(umbel.ParameterError, build, broken, path=tmp_path / "file", hash=strength)
        assert f"hash = {strength} needs a secret" in said and f"token_bytes({length})" in said


def test_an_executor_without_the_wheel_is_an_error_with_the_remedy(spark, users, tmp_path, monkeypatch):
    python = cluster.bare_python(tmp_path / "bare")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    said = message(umbel.Error, build, users)
    assert "cannot import umbel: install the wheel of umbel" in said and "spark.archives" in said


def test_any_size_of_batches_is_safe_and_left_as_it_was(spark, users, file):
    records = "spark.sql.execution.arrow.maxRecordsPerBatch"
    size = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = {name: spark.conf.get(name) for name in (records, size)}
    seen = []
    try:
        for n, limit in (("0", "2147483646"), ("-1", "2046m"), ("1000000", "1g"), ("1", "64m"), ("0", "1k")):
            spark.conf.set(records, n)
            spark.conf.set(size, limit)
            with umbel.spark._bounded_batches(spark):
                seen.append((spark.conf.get(records), spark.conf.get(size)))
            assert (spark.conf.get(records), spark.conf.get(size)) == (n, limit)
        spark.conf.unset(records)
        spark.conf.unset(size)
        assert bytes(build(users)) == file
        assert (spark.conf.get(records, None), spark.conf.get(size, None)) == (None, None)
        assert [size for _, size in seen] == ["268435456"] * 3 + ["64m", "1k"]
        assert bytes(build(users)) == file
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_column_that_cannot_be_one_is_named_before_a_job_runs(spark, visits, members):
    def apply(column, df=visits):
        return df.transform(umbel.spark.filter(members, column))

    said = message(umbel.ParameterError, apply, "nowhere")
    assert '"nowhere"' in said and "id, page no., price" in said
    with pytest.raises(umbel.KeyTypeError, match='"price" has the type double'):
        apply("price")
    assert '"nowhere"' in message(umbel.ParameterError, umbel.spark.build, visits, "nowhere")
    assert '"price"' in message(umbel.KeyTypeError, umbel.spark.build_sharded, visits, "price", shards=2, path="x")
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


def test_the_examples_of_the_page_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    played = 0
    for language, line, text in blocks("docs/guide/spark.md"):
        if language == "pycon":
            play(text, "docs/guide/spark.md", line)
        elif language == "python":
            exec(compile("\n" * line + text, "docs/guide/spark.md", "exec"), {"__name__": "__main__"})
        played += language in ("pycon", "python")
    assert played > 4


@pytest.mark.parametrize("module", ["umbel.spark", "umbel._spark"])
def test_the_types_describe_the_module(module, tmp_path):
    code, report = check("mypy.stubtest", module, cwd=tmp_path)
    assert code == 0, report
