"""A program that type checkers must accept, with the types that they must infer."""

import io
import ipaddress
import uuid
from array import array
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import polars as pl
from numpy.typing import NDArray

import umbel

f: umbel.Bloom = umbel.Bloom(10, 0.01)
f.update(["a"])
f.update("abc", [1, 2], {b"x"}, (str(i) for i in range(3)), f, np.arange(3), array("q", [1]))
f.update([uuid.uuid4()], [ipaddress.ip_address("::1")])
assert_type(f.add("a"), bool)
assert_type("a" in f, bool)
assert_type(f | f.copy(), umbel.Bloom)
assert_type(f & f, umbel.Bloom)
assert_type(f <= f, bool)
assert_type(f == f, bool)
assert_type(f.union(f, ["b"]), umbel.Bloom)
assert_type(f.approx_items, float)
assert_type(f.inserted, int | None)
assert_type(bytes(f), bytes)
assert_type(umbel.Bloom.from_bytes(bytes(f)), umbel.Bloom)
assert_type(umbel.Bloom.load(Path("f.umbel"), secret=bytes(16)), umbel.Bloom)
assert_type(umbel.Bloom.load(io.BytesIO()), umbel.Bloom)
assert_type(umbel.load("f.umbel"), Any)
assert_type(umbel.open("f.umbel"), Any)
f.save("f.umbel", embed_secret=True, meta={"source": "words"})
f.save(io.BytesIO())
f |= umbel.Bloom(10, 0.01)
f &= f
assert_type(f, umbel.Bloom)

assert_type(f.contains_many(["a", 1, b"x"]), list[bool])
assert_type(f.contains_many(iter(["a"])), list[bool])
assert_type(f.contains_many(array("q", [1])), list[bool])
assert_type(f.contains_many(np.arange(3)), NDArray[np.bool_])


class Column:
    """A column of another library."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        raise NotImplementedError


mask = f.contains_many(Column())
assert_type(mask, umbel.Mask)
assert_type(mask.to_list(), list[bool | None])
assert_type(mask[0], bool | None)
assert_type(mask[1:], list[bool | None])
assert_type(f.contains_many(pl.Series(["a"])), umbel.Mask)
assert_type(f.contains_many(pl.DataFrame({"id": ["a"]})), umbel.Mask)
assert_type(len(mask), int)

assert_type(f.stats()["bits"], int)
assert_type(f.stats()["fpr_now"], float)
assert_type(f.why("a")["probes"][0]["bit"], int)
assert_type(umbel.plan(10, 0.01, kind="cuckoo")["bytes"], int)
assert_type(umbel.plan(10, 0.01)["can"]["remove"], bool)

people = umbel.Bloom(10, 0.01, key=lambda person: person.name)
people.add(object())

cuckoo = umbel.Cuckoo(10, 0.01, hash="keyed", secret=bytes(16))
cuckoo.remove("a")
assert_type(cuckoo.discard("a"), bool)
assert_type(umbel.Counting(10, 0.01, kind="deletable").discard("a"), bool)
assert_type(umbel.Quotient(10, 0.01).resized(20), umbel.Quotient)
assert_type("a" in umbel.Scalable(10, 0.01), bool)
assert_type("a" in umbel.Fuse(["a"], 0.01), bool)
umbel.Aging(10, 0.01, window=timedelta(hours=1)).advance(0.0)

names = umbel.Map(["a"], ["x"])
assert_type(names.get("a"), int | str | bytes | None)
assert_type(names["a"], int | str | bytes)
numbers = umbel.Map([1, 2], [3, 4], 0.01, kind="bloomier-mutable")
numbers[1] = 5
assert_type(numbers.get_many([1]), list[int | str | bytes | None])

count = umbel.Count(10)
count.update(["a"], np.arange(2))
assert_type(count.count("a"), float)
assert_type(count.interval("a"), tuple[float, float, float])
assert_type(umbel.Distinct(0.01).estimate(), tuple[float, float])
assert_type(umbel.CountMin(0.01, 0.01).count("a"), int)
assert_type(umbel.TopK(2).items(), list[tuple[str, int]])
assert_type(umbel.TopK(2).items(bytes), list[tuple[bytes, int]])
assert_type(umbel.Frequent(2).items(int), list[tuple[int, int]])

try:
    f.add(object())
except umbel.Error as error:
    print(error)

foreign = umbel.Foreign("guava", 10, 0.01, funnel="long")
foreign.update([1, 2], np.arange(3))
assert_type(foreign.add(1), bool)
assert_type(1 in foreign, bool)
assert_type(foreign.contains_many([1, 2]), list[bool])
assert_type(foreign.contains_many(np.arange(3)), NDArray[np.bool_])
assert_type(foreign.stats()["bits"], int)
assert_type(foreign.why(1)["probes"][0]["value"], int)
foreign.save("f.guava", format="guava")
assert_type(umbel.load("f.guava", format="guava", funnel="long"), umbel.Foreign)
assert_type(umbel.open("f.guava", format="guava", funnel="long"), umbel.Foreign)
assert_type(umbel.Foreign.from_bytes(bytes(foreign), format="guava"), umbel.Foreign)

sharded = umbel.Sharded.build(["a"], 10, 0.01, 2, "f", kind="standard")
assert_type(sharded, umbel.Sharded)
assert_type("a" in sharded, bool)
assert_type(sharded.contains_many(["a"]), list[bool])
assert_type(sharded.contains_many(np.arange(3)), NDArray[np.bool_])
assert_type(sharded.contains_many(Column()), umbel.Mask)
assert_type(sharded.path, Path)
assert_type(sharded.inserted, int | None)
assert_type(sharded.stats()["shards"], int)
assert_type(sharded.stats()["bits"], int)
