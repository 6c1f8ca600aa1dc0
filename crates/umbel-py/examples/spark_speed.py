"""Measures how fast `umbel.spark.build` is, once Spark's reading of the rows is subtracted.

    pip install ./crates/umbel-py 'pyspark[sql]'
    python crates/umbel-py/examples/spark_speed.py [MILLION ROWS [RUNS]]

Measurements of the same rows on one core, the fastest of some runs each:

- *task*: what the tasks do with the Arrow batches of the column, and the merge of what they return, in this
  process and without Spark.
- *count*: a job whose tasks receive the Arrow batches of the column and count their rows. This is what
  Spark takes to read the rows and to pass them to Python.
- *collect*: the same, but the tasks turn their keys into pieces, which are counted.
- *build*: `umbel.spark.build` of the column: the pieces are shuffled, merged and sent to the driver.
- *insert*: `Bloom.update` with the same rows in Arrow batches of 10 000 in this process.

The speed of *task* is comparable with *insert* as it is. That of *collect* and *build* is the number of
rows by the time that they take longer than *count*. The stages of a build have fixed costs of a second or
so: measure many rows. Times on the clock include waiting; those on processors are of all processes of the
session, so that other programs on the machine matter little.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import umbel
import umbel._spark
import umbel.spark

ROWS = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 50_000_000
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
# Each key comes several times, as in a log.
KEYS = max(1, ROWS // 5)
RATE = 0.01


def count(batches):
    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch([pa.array([rows])], names=["rows"])


def descendants(process):
    """Yields a process and all that it has started."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from descendants(int(child))


def processor_seconds():
    """The time on processors of this process and of all that it has started: Java and Python."""
    ticks = 0
    for process in descendants(os.getpid()):
        # After the name: fields 14 to 17 are the times of the process and of its children that ended.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def fastest(run):
    """Returns the least seconds on the clock and on processors of the runs."""
    times = []
    for _ in range(RUNS):
        clock, processor = time.perf_counter(), processor_seconds()
        run()
        times.append((time.perf_counter() - clock, processor_seconds() - processor))
    return tuple(map(min, zip(*times)))


COLUMNS = {"integers": f"id % {KEYS}", "text": f"concat('user-', id % {KEYS})"}


def chunks(column, start, end):
    """Yields the rows of a column as lists of batches of 10 000 rows."""
    for at in range(start, end, 1_000_000):
        keys = pa.array(np.arange(at, min(at + 1_000_000, end)) % KEYS)
        if column == "text":
            keys = pc.binary_join_element_wise("user-", keys.cast("string"), "")
        yield [keys[row : row + 10_000] for row in range(0, len(keys), 10_000)]


def insert(column):
    """Measures `Bloom.update` in this process, without the making of the batches."""
    seconds = [0.0, 0.0]
    f = umbel.Bloom(KEYS, RATE)
    for batches in chunks(column, 0, ROWS):
        clock, processor = time.perf_counter(), time.process_time()
        for batch in batches:
            f.update(batch)
        seconds[0] += time.perf_counter() - clock
        seconds[1] += time.process_time() - processor
    return seconds


def task(column):
    """Measures what four tasks do, and the merge of their pieces, in this process."""
    seconds = [0.0, 0.0]
    layout = umbel._umbel._Layout(KEYS, RATE)
    pieces = {}

    def timed(step):
        clock, processor = time.perf_counter(), time.process_time()
        result = step()
        seconds[0] += time.perf_counter() - clock
        seconds[1] += time.process_time() - processor
        return result

    def add(collector, batches):
        for batch in batches:
            collector.add(batch)
            keep(collector.drain())

    def keep(drained):
        for part, piece in drained:
            pieces.setdefault(part, []).append(piece)

    def merge():
        merged = []
        for part, found in pieces.items():
            merging = umbel._umbel._Merge(layout, part)
            merging.update(found)
            merged += merging.pieces()
        return umbel._umbel._assemble_pieces(layout, merged)

    for start in range(0, ROWS, (ROWS + 3) // 4):
        collector = umbel._umbel._Collector(layout)
        for batches in chunks(column, start, min(start + (ROWS + 3) // 4, ROWS)):
            timed(lambda: add(collector, batches))
        timed(lambda: keep(collector.drain(True)))
    timed(merge)
    return seconds


def main():
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    print(f"{ROWS:,} rows, {KEYS:,} keys, a filter at a rate of {RATE}, one core, Spark {spark.version}")
    for name, column in COLUMNS.items():
        rows = spark.range(0, ROWS, 1, 4).selectExpr(f"{column} as key")
        layout = umbel._umbel._Layout(KEYS, RATE)

        def read():
            total = sum(row.rows for row in rows.mapInArrow(count, "rows bigint").collect())
            assert total == ROWS

        def collect():
            pieces = rows.mapInArrow(umbel._spark.Collect(layout), "range int, piece binary")
            assert pieces.selectExpr("sum(length(piece))").first()[0] > 0

        def build():
            umbel.spark.build(rows, "key", n=KEYS, p=RATE)

        read()  # starts the processes of Python, and warms up Java
        inserted, done = insert(name), task(name)
        counted, collected, built = fastest(read), fastest(collect), fastest(build)
        for wall, kind in enumerate(("clock", "processor")):
            direct = ROWS / inserted[wall] / 1e6
            print(f"{name}, {kind}: count {counted[wall]:.2f} s; insert {inserted[wall]:.2f} s, {direct:.1f} M/s")
            alone = ROWS / done[wall] / 1e6
            print(f"    task {done[wall]:.2f} s: {alone:.1f} M/s, {alone / direct:.2f} of insert")
            for what, times in {"collect": collected, "build": built}.items():
                longer = times[wall] - counted[wall]
                if longer <= 0:
                    print(f"    {what} {times[wall]:.2f} s: no longer than count, so measure more rows")
                    continue
                alone = ROWS / longer / 1e6
                print(f"    {what} {times[wall]:.2f} s: {alone:.1f} M/s, {alone / direct:.2f} of insert")
    spark.stop()


if __name__ == "__main__":
    main()
