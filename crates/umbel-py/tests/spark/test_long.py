"""The long form: tasks that run twice at once, Spark Connect, and filters of many ranges and pieces.

Not among the tests of every change: `fuzz/soak HOURS tests` runs it, or
`cargo test -p umbel-cli --test it -- --ignored soak_spark`.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import cluster
import pytest
from conftest import library

ROWS, N, P, SHARDS = 2_000_000, 1_000_000, 0.001, 8
USER = "if(id % 49 = 0, null, concat('user-', cast(id % 700000 as string))) as user_id"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """A folder with the filter of all rows as a file and in shards."""
    library("pyspark")
    import umbel

    folder = tmp_path_factory.mktemp("expected")
    keys = [f"user-{i % 700_000}" for i in range(ROWS) if i % 49]
    f = umbel.Bloom(N, P)
    f.update(keys)
    f.save(folder / "file.umbel")
    umbel.Sharded.build(keys, N, P, SHARDS, folder / "shards")
    return folder


def run(program, folder, *args, **variables):
    """Runs a program with a session of its own in a process of its own."""
    names = f"ROWS, N, P, SHARDS, USER = {(ROWS, N, P, SHARDS, USER)!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", names + PRELUDE + program, folder, *map(str, args)],
        env=os.environ | cluster.environment(folder) | {"PYTHONPATH": str(Path(__file__).parent)} | variables,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    return done.stdout


PRELUDE = """
import os, sys, time
from pathlib import Path
import cluster, umbel, umbel.spark
folder, expected = Path(sys.argv[1]), Path(sys.argv[2])

def contents(path):
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}
"""

SPECULATION = """
spark = cluster.start(folder, sys.argv[3], **{
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s", "spark.speculation": "true",
    "spark.speculation.interval": "20ms", "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.efficiency.enabled": "false",
})

def slow(batches):
    # The first copy of a task waits for the second; then both go on.
    import os, time
    from pyspark import TaskContext
    task = TaskContext.get()
    open(f"{folder}/copy-{task.partitionId()}-{task.attemptNumber()}", "w").close()
    for i, batch in enumerate(batches):
        end = time.time() + 120
        while i == 3 and task.partitionId() == 6 and not os.path.exists(f"{folder}/copy-6-1") and time.time() < end:
            time.sleep(0.05)
        yield batch

df = spark.range(0, ROWS, 1, 8).selectExpr(USER).mapInArrow(slow, "user_id string")
f = umbel.spark.build(df, "user_id", n=N, p=P)
assert bytes(f) == (expected / "file.umbel").read_bytes()
assert (folder / "copy-6-1").exists(), "no task ran twice"
for copy in folder.glob("copy-*"):
    copy.unlink()
umbel.spark.build(df, "user_id", n=N, p=P, path=folder / "file.umbel")
assert (folder / "file.umbel").read_bytes() == (expected / "file.umbel").read_bytes()
assert (folder / "copy-6-1").exists(), "no task ran twice"
for copy in folder.glob("copy-*"):
    copy.unlink()
umbel.spark.build_sharded(df, "user_id", n=N, p=P, shards=SHARDS, path=folder / "shards")
assert contents(folder / "shards") == contents(expected / "shards")
assert (folder / "copy-6-1").exists(), "no task ran twice"
spark.stop()
"""


@pytest.fixture
def standalone(tmp_path):
    """A master with workers on two addresses: Spark starts no second copy of a task on the same host."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    servers = []

    def serve(host, role, *args):
        folder = tmp_path / host
        folder.mkdir(exist_ok=True)
        command = [home / "bin/spark-class", f"org.apache.spark.deploy.{role.lower()}.{role}"]
        variables = {"SPARK_LOCAL_IP": host, "SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(folder)}
        servers.append(
            subprocess.Popen(
                [*command, "--host", host, "--webui-port", "0", *args],
                env=os.environ | cluster.environment(tmp_path) | variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    try:
        serve("127.0.0.1", "Master", "--port", str(port))
        for host in ("127.0.0.1", "127.0.0.2"):
            serve(host, "Worker", "-c", "1", "-m", "1g", "-d", str(tmp_path / host), master)
        yield master
    finally:
        for server in reversed(servers):
            server.send_signal(signal.SIGTERM)
        for server in servers:
            server.wait(60)


def test_tasks_that_run_twice_at_once_change_no_byte(standalone, expected, tmp_path):
    run(SPECULATION, tmp_path, expected, standalone)


CONNECT = """
import warnings
from pyspark.sql import SparkSession
warnings.simplefilter("ignore")
settings = cluster.settings(folder) | {"spark.connect.grpc.binding.address": "127.0.0.1"}
spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
warnings.simplefilter("error")
df = spark.range(0, ROWS, 1, 4).selectExpr(USER)
f = umbel.spark.build(df, "user_id", n=N, p=P)
assert bytes(f) == (expected / "file.umbel").read_bytes()
assert abs(umbel.spark.build(df, "user_id", p=P).approx_items / 700_000 - 1) < 0.02
umbel.spark.build(df, "user_id", n=N, p=P, path=folder / "file.umbel")
assert (folder / "file.umbel").read_bytes() == (expected / "file.umbel").read_bytes()
umbel.spark.build_sharded(df, "user_id", n=N, p=P, shards=SHARDS, path=folder / "shards")
assert contents(folder / "shards") == contents(expected / "shards")

asked = spark.range(690_000, 710_000).selectExpr("id", "concat('user-', id) as user_id")
for g in (f, umbel.open(folder / "shards")):
    kept = asked.transform(umbel.spark.filter(g, "user_id"))
    rest = asked.transform(umbel.spark.filter(g, "user_id", keep=False))
    assert kept.schema == asked.schema
    assert kept.where("id < 700000").count() == 10_000 and kept.count() + rest.count() == 20_000

for broken, kind in (("price", umbel.KeyTypeError), ("nowhere", umbel.ParameterError)):
    try:
        umbel.spark.build(spark.range(9).selectExpr("id * 1.5D as price"), broken, n=9)
    except kind as error:
        assert broken in str(error)
    else:
        raise AssertionError(broken)

def always_fails(batches):
    for _ in batches:
        raise RuntimeError("no disk")
    yield

try:
    umbel.spark.build(df.mapInArrow(always_fails, "user_id string"), "user_id", n=N)
except umbel.Error as error:
    assert str(error) == "Spark could not run the query: RuntimeError: no disk", error
else:
    raise AssertionError("a query that fails was built")
spark.stop()
"""


def test_everything_works_through_spark_connect(expected, tmp_path):
    # A free port for the server.
    run(CONNECT, tmp_path, expected, SPARK_TESTING="1")


LARGE = """
# A filter of 120 MB in executors of 1 GiB, with many pieces of each range and batches without a limit.
spark = cluster.start(folder, **{
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483646",
    "spark.driver.maxResultSize": "200m",
})
large = spark.range(0, 20_000_000, 1, 8)
f = umbel.spark.build(large, "id", n=1e8, p=0.01)
import numpy as np
g = umbel.Bloom(100_000_000, 0.01)
g.update(np.arange(20_000_000))
assert f == g and f.inserted == g.inserted
h = umbel.spark.build(large, "id", n=1e8, p=0.01, path=folder / "large.umbel")
assert h == g and h.inserted == g.inserted
shards = umbel.spark.build_sharded(large, "id", n=1e8, p=0.01, shards=64, path=folder / "shards")
assert shards.inserted == 20_000_000 and shards.contains_many(np.arange(0, 20_000_000, 999)).all()
spark.stop()
"""


def test_large_filters_stay_within_small_executors(tmp_path):
    library("pyspark")
    run(LARGE, tmp_path, tmp_path)
