# %% [markdown]
# # A tour of umbel with plots
#
# Measures the rate, the size and the speed of filters, and draws the two pictures of the guide:
#
#     pip install ./crates/umbel-py numpy matplotlib
#     python crates/umbel-py/examples/tour.py docs
#
# The argument is the folder for the pictures. The rates and sizes are the same on every machine,
# since the items are numbers and the hash has a fixed seed. Editors that know notebooks show each
# `# %%` as a cell.

# %%
import io
import math
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from umbel import Bloom, Cuckoo, Filter, Fuse, Quotient, Scalable

matplotlib.use("svg")
import matplotlib.pyplot as plt

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
COLORS = {
    "blocked": "#0072B2",
    "standard": "#D55E00",
    "scalable": "#009E73",
    "fuse": "#882E72",
    "cuckoo": "#B8860B",
    "quotient": "#5A5A5A",
}

# Text stays text, in a font of the reader, and ids do not depend on the run. The background is white,
# so that the pictures can be read on dark pages.
plt.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "umbel",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "figure.figsize": (7.6, 4.2),
        "figure.constrained_layout.use": True,
    }
)


def draw(name: str) -> None:
    """Writes the picture, with one decimal place in each coordinate."""
    svg = io.StringIO()
    plt.savefig(svg, metadata={"Date": None, "Creator": "crates/umbel-py/examples/tour.py"})
    plt.close()

    def shorten(attribute: re.Match[str]) -> str:
        return re.sub(r"(\d\.\d)\d+", r"\1", attribute[0])

    # Labels such as "0.01 %" are outside of these attributes.
    text = re.sub(r'\b(d|x|y|transform)="[^"]*"', shorten, svg.getvalue())
    text = "\n".join(line.rstrip() for line in text.splitlines())
    (FOLDER / name).write_text(text + "\n")


# %% [markdown]
# ## The rate
#
# The rate is the share of absent items that a filter takes for members. No number from 2^40 on is
# ever added, so every yes to one of them is false. If h of q queries are answered with yes, the rate
# lies in the Wilson interval around h/q with a confidence of 95 %.


# %%
def measure(f: Filter, queries: int) -> tuple[float, float, float]:
    """Returns the measured rate, and the lower and the upper end of its 95 % interval."""
    hits, step = 0, 1_000_000
    for start in range(0, queries, step):
        absent = np.arange(2**40 + start, 2**40 + start + step, dtype=np.uint64)
        hits += int(np.count_nonzero(f.contains_many(absent)))
    rate, z = hits / queries, 1.96
    middle = (rate + z * z / (2 * queries)) / (1 + z * z / queries)
    spread = math.sqrt(rate * (1 - rate) / queries + (z / (2 * queries)) ** 2)
    half = z / (1 + z * z / queries) * spread
    return rate, middle - half, middle + half


# %% [markdown]
# ## Rate against n
#
# Each filter is planned for a million items at a rate of 1 %, and gets two million. `stats()` returns
# the rate that follows from the bits; the measured rate agrees with it. Beyond the capacity, Bloom
# filters exceed the rate. A scalable filter never does, since it grows.

# %%
CAPACITY, RATE = 1_000_000, 0.01
filters = {
    "blocked": Bloom(CAPACITY, RATE),
    "standard": Bloom(CAPACITY, RATE, kind="standard"),
    "scalable": Scalable(CAPACITY, RATE),
}
# For each kind, how its points look: those of the two Bloom filters nearly coincide, so one kind has
# open circles around the dots of the other.
POINTS: dict[str, dict[str, Any]] = {
    "blocked": {"markersize": 8, "markerfacecolor": "none"},
    "standard": {"markersize": 3.5},
    "scalable": {"markersize": 3.5},
}
step = 100_000
sizes = range(step, 2 * CAPACITY + 1, step)
print("rate against n: measured [95 % interval], computed by stats()")
for kind, f in filters.items():
    rates, below, above, computed = [], [], [], []
    for n in sizes:
        f.update(np.arange(n - step, n, dtype=np.uint64))
        rate, low, high = measure(f, 5_000_000)
        rates.append(rate)
        below.append(rate - low)
        above.append(high - rate)
        computed.append(f.stats()["fpr_now"])
        if n in (CAPACITY // 2, CAPACITY, 2 * CAPACITY):
            print(f"  {kind:9} {n:9,} {rate:.4%} [{low:.4%}, {high:.4%}] {computed[-1]:.4%}")
    millions = [n / 1e6 for n in sizes]
    plt.plot(millions, computed, color=COLORS[kind], linewidth=1)
    style = {"fmt": "o", "color": COLORS[kind], "capsize": 2, **POINTS[kind]}
    plt.errorbar(millions, rates, [below, above], label=kind, **style)
plt.axhline(RATE, color="black", linewidth=1, linestyle="--")
plt.axvline(CAPACITY / 1e6, color="black", linewidth=1, linestyle=":")
plt.text(0.12, RATE * 1.2, "promised: 1 % at a million items")
plt.yscale("log")
plt.ylim(1e-5, 0.5)
plt.xlim(0.1, 2.1)
plt.yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1], ["0.001 %", "0.01 %", "0.1 %", "1 %", "10 %"])
plt.xticks([0.5, 1, 1.5, 2], ["0.5", "1", "1.5", "2"])
plt.xlabel("million items added")
plt.ylabel("false positive rate")
plt.title("Points: measured with 5 million absent items; lines: computed by stats()", fontsize=10)
plt.legend(loc="lower right")
draw("python-rate.svg")

# %% [markdown]
# ## Size against rate
#
# Filters of a million items, for rates from 10 % to 0.001 %. Every structure needs at least
# log2(1/rate) bits per item.

# %%
MEMBERS = np.arange(CAPACITY, dtype=np.uint64)
PLANNED = [0.1, 0.03, 0.01, 0.003, 0.001, 0.0001, 0.00001]


def build(kind: str, rate: float) -> Filter:
    """Returns a filter of a million items."""
    f: Filter
    match kind:
        case "fuse":
            return Fuse(MEMBERS, rate)
        case "cuckoo":
            f = Cuckoo(CAPACITY, rate)
        case "quotient":
            f = Quotient(CAPACITY, rate)
        case "standard":
            f = Bloom(CAPACITY, rate, kind="standard")
        case _:
            f = Bloom(CAPACITY, rate)
    f.update(MEMBERS)
    return f


print("\nsize against rate: planned rate, bits per item, measured rate [95 % interval]")
for kind in ["blocked", "quotient", "standard", "cuckoo", "fuse"]:
    rates, below, above, bits = [], [], [], []
    for planned in PLANNED:
        f = build(kind, planned)
        rate, low, high = measure(f, 20_000_000 if planned < 0.001 else 5_000_000)
        rates.append(rate)
        below.append(rate - low)
        above.append(high - rate)
        bits.append(f.size_in_bits / CAPACITY)
        if planned in (0.01, 0.0001):
            print(f"  {kind:9} {planned:7} {bits[-1]:5.2f} {rate:.4%} [{low:.4%}, {high:.4%}]")
    style = {"fmt": "o-", "markersize": 4, "color": COLORS[kind], "capsize": 2}
    plt.errorbar(rates, bits, xerr=[below, above], label=kind, **style)
bound = [0.15, 0.000004]
bits = [-math.log2(rate) for rate in bound]
plt.plot(bound, bits, "--", color="black", linewidth=1, label="log2(1/rate), the least")
plt.xscale("log")
plt.xlim(0.2, 0.000003)
plt.ylim(0, 30)
plt.xticks([1e-1, 1e-2, 1e-3, 1e-4, 1e-5], ["10 %", "1 %", "0.1 %", "0.01 %", "0.001 %"])
plt.xlabel("measured false positive rate")
plt.ylabel("bits per item")
plt.title("A million items", fontsize=10)
# matplotlib lists the bound first; here the order is that of the lines at the right, from the top.
handles, labels = plt.gca().get_legend_handles_labels()
plt.legend(handles[1:] + handles[:1], labels[1:] + labels[:1], loc="upper left")
draw("python-size.svg")

# %% [markdown]
# ## Speed
#
# A million new items, one by one, as a list and as a column, in a filter of 12 MiB. The times are the
# best of three, in nanoseconds of CPU time per item, and differ from machine to machine.

# %%
TEN_MILLION, ITEMS = 10_000_000, 1_000_000


def add_one_by_one(f: Bloom, items: list[str]) -> None:
    add = f.add
    for item in items:
        add(item)


def texts(items: int) -> list[str]:
    start = random.randrange(2**60)
    return [f"item-{start + i}" for i in range(items)]


def numbers(items: int) -> Any:
    return np.random.default_rng().integers(0, 2**63, items)


def nanoseconds(work: Callable[[Any], Any], make: Callable[[int], Any]) -> float:
    """Returns the time for each item, the best of three runs."""
    best = math.inf
    for _ in range(3):
        items = make(ITEMS)
        start = time.process_time()
        work(items)
        best = min(best, time.process_time() - start)
    return best * 1e9 / ITEMS


bloom = Bloom(TEN_MILLION, 0.01)
rows: list[tuple[str, Callable[[Any], Any], Callable[[int], Any], Callable[[Any], Any]]] = [
    (
        "texts, one by one",
        lambda items: add_one_by_one(bloom, items),
        texts,
        lambda items: [item in bloom for item in items],
    ),
    ("a list of texts", bloom.update, texts, bloom.contains_many),
    ("a numpy array of int64", bloom.update, numbers, bloom.contains_many),
]
try:
    import pyarrow as pa  # type: ignore[import-untyped]

    rows.append(
        (
            "an Arrow column of texts",
            bloom.update,
            lambda items: pa.array(texts(items)),
            bloom.contains_many,
        )
    )
except ImportError:
    pass
print("\nspeed in nanoseconds per item: add, look up")
for name, add, make, look_up in rows:
    print(f"  {name:25} {nanoseconds(add, make):6.1f} {nanoseconds(look_up, make):6.1f}")
