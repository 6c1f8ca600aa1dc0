"""Threads: a filter may be shared, the interpreter goes on during batches, and Ctrl-C ends them."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LINES, N, P, library

import umbel
from umbel import Bloom


def run_all(*jobs):
    """Runs each job in a thread of its own, and raises the first exception."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result(timeout=120)


def test_threads_that_fill_a_filter_lose_nothing():
    f, expected = Bloom(N, P), Bloom(N, P)
    expected.update(LINES)

    def add(part):
        for i, line in enumerate(part):
            if i % 3:
                f.add(line)
            else:
                f.update([line])

    def ask():
        for _ in range(20):
            f.contains_many(LINES)
            bytes(f)
            f.stats()

    run_all(*(lambda part=LINES[i::4]: add(part) for i in range(4)), ask)
    assert bytes(f) == bytes(expected)


@pytest.mark.parametrize("make", [umbel.Cuckoo, umbel.Counting, umbel.Quotient, umbel.Scalable])
def test_threads_that_share_other_kinds_lose_nothing(make):
    np, f = library("numpy"), make(40_000, 0.001)
    parts = np.split(np.arange(40_000), 40)
    run_all(*(lambda mine=parts[i::4]: [f.update(part) for part in mine] for i in range(4)))
    assert f.contains_many(np.arange(40_000)).all() and f.inserted == 40_000


def test_filters_that_are_united_crosswise_do_not_deadlock():
    f, g = Bloom(N, P), Bloom(N, P)
    f.update(LINES[::2])
    g.update(LINES[1::2])

    def unite(one, two):
        for _ in range(200):
            one.update(two)
            _ = one | two
            _ = one <= two, one == two, one.overlap(two)

    run_all(lambda: unite(f, g), lambda: unite(g, f), lambda: unite(f, f))
    assert f == g and all(f.contains_many(LINES))


def test_an_iterator_may_use_the_filter_that_it_is_fed_into():
    f = Bloom(1000, 1e-9)

    def items():
        for i in range(100):
            # An item is in the filter when the next one is asked for, or soon after.
            assert i in f or f.add(i)
            f.update([f"inner {i}"])
            yield f"outer {i}"

    f.update(items())
    assert all(f.contains_many([*range(100), *(f"{w} {i}" for i in range(100) for w in ("inner", "outer"))]))


def ticks_during(work):
    """The number of times that another thread ran Python code during some work."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    work()
    end = time.perf_counter()
    done.set()
    thread.join()
    return sum(start < tick < end for tick in ticks)


def test_python_runs_on_while_a_batch_is_worked_on(tmp_path):
    np = library("numpy")
    column = np.arange(20_000_000, dtype="u8")
    f = Bloom(20_000_000, 0.01)
    assert ticks_during(lambda: f.update(column)) >= 5
    shards = umbel.Sharded.build(np.arange(1000), 5_000_000, 0.01, 16, tmp_path / "f")
    assert ticks_during(lambda: shards.contains_many(column)) >= 5


def test_lookups_in_a_filter_run_at_the_same_time():
    """A long batch of lookups does not make another one wait. On a busy machine, the short one may be
    late, but not each time."""
    np = library("numpy")
    f, column = Bloom(20_000_000, 0.01), np.arange(20_000_000, dtype="u8")

    def short_is_first():
        finished = []

        def ask(name, column):
            f.contains_many(column)
            finished.append(name)

        long = threading.Thread(target=ask, args=("long", column))
        long.start()
        time.sleep(0.005)
        ask("short", column[:1000])
        long.join()
        return finished == ["short", "long"]

    assert any(short_is_first() for _ in range(20))


ENDLESS = {
    "iterator": "f.update(itertools.repeat('x'))",
    "lookups": "f.contains_many(itertools.repeat('x'))",
    "sketch": "umbel.TopK(3).update(itertools.repeat('x'))",
    "values": "umbel.Map(['x'], itertools.repeat(1))",
    "stream": "f.update(pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch)))",
}


@pytest.mark.parametrize("work", ENDLESS.values(), ids=ENDLESS.keys())
def test_ctrl_c_ends_a_long_update(work, tmp_path):
    """Iterators without an end, which Python code does not see: they are written in C."""
    library("pyarrow")
    program = (
        "import itertools, umbel, pyarrow as pa\n"
        "f, batch = umbel.Bloom(1000, 0.01), pa.record_batch({'id': ['x']})\n"
        "print('ready', flush=True)\n"
        "try:\n"
        f"    {work}\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            assert child.communicate(timeout=60)[0] == "ended\n"
        finally:
            child.kill()


def test_the_garbage_collector_may_use_the_filter_of_an_operation_that_fails(python):
    """It runs when an exception is made, on some versions of Python, and finalizers are Python code."""
    program = (
        "import gc, umbel\n"
        "f = umbel.Bloom(1000, 1e-9)\n"
        "class Garbage:\n"
        "    def __init__(self, i):\n"
        "        self.itself, self.i = self, i\n"
        "    def __del__(self):\n"
        "        f.add(self.i)\n"
        "for i in range(1, 100):\n"
        "    gc.disable()\n"
        "    gc.collect()\n"
        "    Garbage(i)\n"
        "    gc.set_threshold(i)\n"
        "    gc.enable()\n"
        "    try:\n"
        "        f.save('/no/such/folder/f.umbel')\n"
        "    except umbel.MissingFileError:\n"
        "        pass\n"
        "gc.collect()\n"
        "print(all(f.contains_many(range(1, 100))))\n"
    )
    assert python(program) == "True\n"
