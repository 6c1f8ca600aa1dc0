"""The measurements of `bench/python`, which starts this in an environment with all contestants.

Contestants take turns, and the best of the turns counts. Times are CPU time, unless the table says
otherwise, so that other work on the machine changes little. Texts are new objects in each turn, as
they come from a file: Python has not hashed them before.
"""

import importlib
import os
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pyarrow as pa
import umbel
from umbel import Bloom

work, quick = sys.argv[1], "--quick" in sys.argv[2:]
scale = 10 if quick else 1
TURNS = 3 if quick else 5
RATE = 0.01
# Items one at a time, and rows of a column.
n, m = 1_000_000 // scale, 10_000_000 // scale
file_items = 850_000_000 // (100 if quick else 1)


def installed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Contestant:
    """A filter of one library, with the fastest loop that the library offers for each job."""

    def __init__(self, make, size_in_bits, save=None, open=None):
        self.make, self.size_in_bits, self.save, self.open = make, size_in_bits, save, open

    def add(self, f, keys):
        add = f.add
        for key in keys:
            add(key)

    def ask(self, f, keys):
        for key in keys:
            key in f

    def update(self, f, keys):
        f.update(keys)

    def ask_many(self, f, keys):
        return [key in f for key in keys]


class Umbel(Contestant):
    def ask_many(self, f, keys):
        return f.contains_many(keys)


class FastbloomRs(Contestant):
    """Has one method for each type of item."""

    def add(self, f, keys):
        add = f.add_str if isinstance(keys[0], str) else f.add_int
        for key in keys:
            add(key)

    def ask(self, f, keys):
        contains = f.contains_str if isinstance(keys[0], str) else f.contains_int
        for key in keys:
            contains(key)

    def update(self, f, keys):
        (f.add_str_batch if isinstance(keys[0], str) else f.add_int_batch)(keys)

    def ask_many(self, f, keys):
        return (f.contains_str_batch if isinstance(keys[0], str) else f.contains_int_batch)(keys)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


STABLE = "abloom stable"  # serializable=True: the same hash in every process
contestants = {"umbel": Umbel(lambda n: Bloom(n, RATE), lambda f: f.size_in_bits, None, umbel.open)}
if abloom := installed("abloom"):
    for name, serializable in (("abloom", False), (STABLE, True)):
        contestants[name] = Contestant(
            lambda n, serializable=serializable: abloom.BloomFilter(n, RATE, serializable=serializable),
            lambda f: f.bit_count,
        )
    contestants[STABLE].save = lambda f, path: write(path, f.to_bytes())
    contestants[STABLE].open = lambda path: abloom.BloomFilter.from_bytes(read(path))
if rbloom := installed("rbloom"):
    contestants["rbloom"] = Contestant(
        lambda n: rbloom.Bloom(n, RATE),
        lambda f: f.size_in_bits,
        # Refuses to save a filter with Python's hash, so `f` is not what is saved.
        lambda f, path: rbloom.Bloom(file_items, RATE, len).save(path),
        lambda path: rbloom.Bloom.load(path, len),
    )
if pybloomfilter := installed("pybloomfilter"):
    contestants["pybloomfilter"] = Contestant(
        lambda n: pybloomfilter.BloomFilter(n, RATE),
        lambda f: f.num_bits,
        lambda f, path: pybloomfilter.BloomFilter(file_items, RATE, path).close(),
        pybloomfilter.BloomFilter.open,
    )
if fastbloom_rs := installed("fastbloom_rs"):
    contestants["fastbloom-rs"] = FastbloomRs(
        lambda n: fastbloom_rs.FilterBuilder(n, RATE).build_bloom_filter(),
        lambda f: 8 * len(f.get_bytes()),
        lambda f, path: f.save_to_file_with_hashes(path),
        fastbloom_rs.BloomFilter.from_file_with_hashes,
    )
if (datasketches := installed("datasketches")) and not hasattr(datasketches, "bloom_filter"):
    print("datasketches has no Bloom filter in its Python package\n")
peers = [name for name in contestants if name != "umbel"]


def cpu(job, *args):
    start = time.process_time()
    job(*args)
    return time.process_time() - start


def wall(job, *args):
    start = time.perf_counter()
    job(*args)
    return time.perf_counter() - start


def fresh(keys):
    """Makes new objects of texts, of which Python has not stored the hash."""
    return [key[:1] + key[1:] for key in keys] if isinstance(keys[0], str) else keys


def in_turns(job, keys, filled=(), room=n, names=contestants):
    """Returns the nanoseconds per key of each contestant; no entry for one that cannot do the job."""
    best = {}
    for _ in range(TURNS):
        for name in names:
            contestant, mine = contestants[name], fresh(keys)
            f = contestant.make(room)
            try:
                if filled:
                    contestant.update(f, filled)
                took = cpu(getattr(contestant, job), f, mine) * 1e9 / len(keys)
            except (TypeError, OverflowError, AttributeError):
                continue
            best[name] = min(best.get(name, took), took)
    return best


def row(name, values, end="", width=13):
    print(f"{name:<34}" + "".join(f"{value:>{width}}" for value in values) + end, flush=True)


def compare(name, job, keys, filled=(), goal="", against=STABLE):
    took = in_turns(job, keys, filled)
    against = against if against in took else min(peers, key=lambda peer: took.get(peer, 9e9))
    times = f"{took[against] / took['umbel']:6.2f}x {against}" + f"   (goal: {goal}x)" * bool(goal)
    row(name, [f"{took[peer]:.1f}" if peer in took else "-" for peer in contestants], f"   {times}")


column = np.arange(m, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(1)
strings = pa.array(column).cast(pa.string())
numbers, other_numbers = column[:n].tolist(), column[n : 2 * n].tolist()
words, other_words = strings[:n].to_pylist(), strings[n : 2 * n].to_pylist()

print(f"{n} items, rate 1 %: nanoseconds per item")
row("", contestants)
compare("add(str)", "add", words, goal=1)
compare("in, str that is present", "ask", words, words, goal=1)
compare("in, str that is absent", "ask", other_words, words, goal=1)
compare("add(int)", "add", numbers)
compare("in, int that is present", "ask", numbers, numbers)
compare("in, int that is absent", "ask", other_numbers, numbers)
compare("update(list of str)", "update", words, goal=2)
compare("update(list of int)", "update", numbers)
compare("contains_many(list of str)", "ask_many", words, words)
compare("contains_many(list of int)", "ask_many", numbers, numbers)

print(f"\ncolumns of {m} in a filter of {m}, nanoseconds per row; beside the fastest loop of a peer over a list")
loops = {}
for kind, keys in (("int", numbers), ("str", words)):
    for job, filled in (("add", ()), ("ask", keys)):
        took = in_turns(job, keys, filled, room=m, names=peers)
        fastest = min(took, key=took.get)
        loops[kind, job] = took[fastest], fastest
columns = {
    "numpy uint64": ("int", column),
    "Arrow string": ("str", strings),
    "polars String": ("str", pl.Series(strings)),
}
# In turns with the Rust program, all by the clock: both use one thread.
ours, rust = {}, {}


def keep_best(of, key, seconds):
    of[key] = min(of.get(key, 9e9), seconds * 1e9 / m)


for _ in range(TURNS):
    for name, (_, keys) in columns.items():
        f = Bloom(m, RATE)
        keep_best(ours, (name, "add"), wall(f.update, keys))
        keep_best(ours, (name, "ask"), wall(f.contains_many, keys))
    lines = subprocess.run(["batch", str(m)], check=True, capture_output=True, text=True).stdout.splitlines()
    for kind, line in zip(("int", "str"), lines):
        for job, seconds in zip(("add", "ask"), line.split()):
            keep_best(rust, (kind, job), float(seconds))
row("", ["umbel", "loop", "", "goal", "Rust", "", "goal"], width=10)
for name, (kind, _) in columns.items():
    for job, verb in (("add", "update"), ("ask", "contains_many")):
        took, (loop, peer), batch = ours[name, job], loops[kind, job], rust[kind, job]
        figures = [f"{took:.1f}", f"{loop:.1f}", f"{loop / took:.1f}x", "10x", f"{batch:.1f}", f"{batch / took:.2f}x", "0.8x"]
        row(f"{verb}, {name}", figures, f"   ({peer})", width=10)

print("\nmemory while a column is added: MiB above that of the filter, and MiB of the column (goal: less than a quarter)")
peak = f"""
import numpy as np, pyarrow as pa, umbel
def high():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
for name, column in (
    ("numpy uint64", np.arange({2 * m}, dtype=np.uint64)),
    ("Arrow string", pa.array(np.arange({m})).cast(pa.string())),
):
    f = umbel.Bloom({m}, {RATE})
    f.update(column[:{m // 10}])
    open("/proc/self/clear_refs", "w").write("5")
    before = high()
    f.update(column)
    print(f"update, {{name:<26}}{{high() - before:>13.1f}}{{column.nbytes / 2**20:>13.1f}}")
"""
subprocess.run([sys.executable, "-c", peak], check=True)

print(f"\nmeasured rate in % with {n} items, promised 1 %, and bits per item")
row("", contestants)
absent = [f"absent {i}" for i in range(n)]
tests = {
    "texts": (words, absent),
    "integers at random": (numbers, other_numbers),
    "integers in order": (list(range(n)), list(range(n, 2 * n))),
}
for name, (keys, others) in tests.items():
    rates = []
    for contestant in contestants.values():
        f = contestant.make(n)
        contestant.update(f, keys)
        rates.append(f"{sum(contestant.ask_many(f, others)) * 100 / n:.3f}")
    row(name, rates)
row("bits per item", [f"{c.size_in_bits(c.make(n)) / n:.2f}" for c in contestants.values()])

print(f"\nopening a file of a filter for {file_items} items, milliseconds by the clock, best of {TURNS} (goal: 10 ms)")
subprocess.run(
    ["umbel", "build", "-n", str(file_items), "-p", str(RATE), "-o", f"{work}/umbel"], input=b"member\n", check=True
)
for name, contestant in contestants.items():
    if not contestant.open:
        continue
    path = f"{work}/{name}"
    if contestant.save:
        f = contestant.make(file_items)
        contestant.save(f, path)
        del f
    took = min(wall(contestant.open, path) for _ in range(TURNS))
    row(name, [f"{took * 1e3:.2f}", f"{os.path.getsize(path) / 1e9:.2f} GB"])
    os.remove(path)
