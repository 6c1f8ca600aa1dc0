"""Maps, counts and sketches: values of keys, and how often or how many items were added."""

import random
from collections import Counter
from math import sqrt

import pytest

import umbel
from umbel import Count, CountMin, Distinct, Frequent, Map, TopK

KEYS = [f"key {i}" for i in range(2000)]
MAPS = pytest.mark.parametrize("kind", ["bloomier", "bloomier-mutable"])


def zipf(items, rng):
    """Items in an order of which the first are by far the most frequent."""
    weights = [1 / (i + 1) for i in range(items)]
    return rng.choices([f"item {i}" for i in range(items)], weights, k=100_000)


@MAPS
def test_a_map_returns_the_value_of_each_key(kind):
    values = [i * i % 1000 for i in range(2000)]
    m = Map(KEYS, values, kind=kind)
    assert m.get_many(KEYS) == values == [m[key] for key in KEYS] == [m.get(key) for key in KEYS]
    assert all(key in m for key in KEYS)
    assert m.largest_value >= max(values) and m.names is None
    assert m.kind == kind and isinstance(m, umbel.Structure) and not isinstance(m, umbel.Filter)


@MAPS
def test_another_key_has_a_value_at_the_rate_at_most(kind):
    m = Map(KEYS, [0] * 2000, 0.01, kind=kind)
    others = [f"other {i}" for i in range(50_000)]
    found = sum(value is not None for value in m.get_many(others))
    assert found <= 500 + 5 * sqrt(500)
    assert [key in m for key in others[:500]] == [value is not None for value in m.get_many(others[:500])]


def test_a_key_without_a_value_is_a_key_error_or_has_the_default():
    m = Map(["a"], [1], 1e-9)
    with pytest.raises(KeyError) as caught:
        m["b"]
    assert caught.value.args == ("b",)
    assert (m.get("b"), m.get("b", 5), m.get("b", default="none"), "b" in m) == (None, 5, "none", False)


@MAPS
def test_the_values_may_be_texts(kind):
    sections = ["shells", "éditeurs", "", "shells"]
    m = Map(["bash", "vim", "true", "zsh"], sections, 1e-9, kind=kind)
    assert m.get_many(["bash", "vim", "true", "zsh", "cat"]) == [*sections, None]
    assert sorted(m.names.values()) == sorted(set(sections))
    assert umbel.load is not None and Map.from_bytes(bytes(m))["vim"] == "éditeurs"


@pytest.mark.parametrize("kind", ["bloomier", "bloomier-mutable"])
def test_a_value_may_be_any_integer_of_64_bits(kind):
    m = umbel.Map(["a", "b"], [2**64 - 1, 0], kind=kind)
    assert (m["a"], m["b"], m.largest_value) == (2**64 - 1, 0, 2**64 - 1)
    with pytest.raises(umbel.ParameterError):
        umbel.Map(["a"], [2**64])


def test_the_values_of_a_mutable_map_can_be_changed():
    m = Map(["a", "b"], [1, 6], 1e-9, kind="bloomier-mutable")
    m["a"] = 5
    assert m.get_many(["a", "b"]) == [5, 6] and m.largest_value == 6
    with pytest.raises(KeyError):
        m["c"] = 1
    with pytest.raises(umbel.ParameterError, match="value"):
        m["a"] = m.largest_value + 1
    for wrong in (-1, 1.5, None, "x"):
        with pytest.raises(umbel.ParameterError):
            m["a"] = wrong
    assert m.get_many(["a", "b"]) == [5, 6]


def test_the_keys_of_a_map_are_fixed():
    m = Map(["a"], [1])
    with pytest.raises(umbel.UnsupportedError, match="bloomier-mutable"):
        m["a"] = 2
    with pytest.raises(umbel.UnsupportedError, match="fixed"):
        del m["a"]
    assert m["a"] == 1
    for impossible in (len, iter):
        with pytest.raises(TypeError):
            impossible(m)


def test_a_map_needs_one_value_for_each_key():
    for keys, values in ((["a"], []), (["a"], [1, 2]), ([], [1])):
        with pytest.raises(umbel.ParameterError, match="one value for each key"):
            Map(keys, values)
    with pytest.raises(umbel.ParameterError, match="two values"):
        Map(["a", "a"], [1, 2])
    assert Map(["a", "a"], [1, 1])["a"] == 1
    assert Map([], []).get("a") is None


def test_the_values_of_a_map_are_integers_or_texts():
    for values in ([-1], [1.5], [None], [b"x"], ["x", 1], [1, "x"], [2**64]):
        with pytest.raises(umbel.ParameterError, match="integers from 0 on, or all of them are texts"):
            Map(KEYS[: len(values)], values)
    assert Map(["a", "b"], [2**40, True])["a"] == 2**40


def test_a_count_is_in_its_interval_as_often_as_promised():
    """A 95 % interval misses one in twenty; with 300 items, more than 28 misses would be seen once in
    a thousand choices of them."""
    rng = random.Random(5)
    times = {key: rng.choice([1, 3, 10, 50, 200, 1000]) for key in KEYS[:300]}
    counts = Count(sum(times.values()))
    counts.update(rng.sample(list(Counter(times).elements()), sum(times.values())))
    misses = 0
    for key, count in times.items():
        estimate, low, high = counts.interval(key)
        assert low <= estimate <= high and key in counts
        misses += not low <= count <= high
    assert misses <= 28
    assert counts.count_many(list(times)) == [counts.count(key) for key in times]
    errors = [counts.count(key) / count - 1 for key, count in times.items()]
    assert abs(sum(errors) / len(errors)) < 0.05


@pytest.mark.parametrize("kind", ["multi-resolution", "space-code"])
def test_a_count_knows_items_that_were_never_added(kind):
    counts = Count(1000, noise=0.001, kind=kind)
    counts.update(KEYS[:100])
    counts.add("once")
    others = KEYS[1000:]
    assert "once" in counts and round(counts.count("once")) == 1
    assert sum(key in counts for key in others) <= 10
    assert sum(count == 0 for count in counts.count_many(others)) >= 990
    counts.clear()
    assert "once" not in counts and counts.count("once") == 0


def test_counts_with_different_random_numbers_add_up():
    one, two = Count(1000, random_seed=1), Count(1000, random_seed=2)
    one.update(["a"] * 100)
    two.update(["a"] * 300 + ["b"])
    both = one | two
    low, high = both.interval("a")[1:]
    assert type(both) is Count and low <= 400 <= high and round(both.count("b")) == 1
    one |= two
    assert one.count("a") == both.count("a")
    assert two.count("a") < both.count("a"), "the operands of | do not change"


def test_counts_with_the_same_random_numbers_are_not_united():
    counts = Count(1000)
    counts.add("a")
    for other in (Count(1000), counts, counts.copy()):
        with pytest.raises(umbel.ParameterError, match="random_seed = 0.*differ"):
            counts | other
        with pytest.raises(umbel.ParameterError, match="random_seed"):
            counts |= other
    assert round(counts.count("a")) == 1


def test_the_message_about_the_noise_names_it():
    with pytest.raises(umbel.ParameterError, match="^noise = 2 cannot be used"):
        Count(10, noise=2)


@pytest.mark.parametrize("n", [0, 1, 100, 10_000, 300_000])
def test_distinct_estimates_within_its_error(n):
    """Four standard errors would be missed once in 16 000 choices of the items."""
    sketch = Distinct(0.01)
    sketch.update(range(n), range(n))
    count, error = sketch.estimate()
    assert sketch.count() == count
    assert abs(count - n) <= 4 * 0.01 * n + 0.5 and error <= 0.0115 * n + 0.5


def test_distinct_sketches_unite():
    one, two, both = Distinct(), Distinct(), Distinct()
    one.update(range(5000))
    two.update(range(3000, 9000))
    two.add("one more")
    both.update(range(5000), range(3000, 9000), ["one more"])
    assert bytes(one | two) == bytes(both) and abs((one | two).count() - 9001) < 400
    one |= two
    assert bytes(one) == bytes(both)
    one |= one
    assert one.count() == both.count()
    one.clear()
    assert one.count() == 0


def test_a_count_min_is_never_too_low_and_seldom_much_too_high():
    items = zipf(5000, random.Random(7))
    counts, truth = CountMin(0.001, 0.01), Counter(items)
    counts.update(items)
    excess = [counts.count(item) - truth[item] for item in (*truth, *KEYS)]
    assert min(excess) >= 0
    # Exceeded with a probability of 1 %: five standard deviations above that.
    limit = 0.01 * len(excess)
    assert sum(more > 0.001 * len(items) for more in excess) <= limit + 5 * sqrt(limit)


def test_count_min_sketches_unite():
    one, two = CountMin(), CountMin()
    one.update(["a", "b"])
    two.update(["a"])
    assert ((one | two).count("a"), one.count("a")) == (2, 1)
    one |= two
    one |= one
    assert (one.count("a"), one.count("b"), one.count("c")) == (4, 2, 0)
    one.clear()
    assert one.count("a") == 0


def test_top_k_has_the_most_frequent_items_in_order():
    items = zipf(5000, random.Random(8))
    top, truth = TopK(50), Counter(items)
    top.update(items)
    found = top.items()
    assert len(found) == 50
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
    assert {item for item, _ in truth.most_common(30)} <= {item for item, _ in found}
    for item, count in found[:30]:
        assert 0.9 * truth[item] <= count <= truth[item]
        assert top.count(item) == count
    top.clear()
    assert top.items() == [] and top.count("item 0") == 0


def test_frequent_has_every_item_above_its_share_with_a_lower_bound():
    items = zipf(5000, random.Random(9))
    frequent, truth = Frequent(99), Counter(items)
    frequent.update(items)
    found = dict(frequent.items())
    error = len(items) / 100
    assert {item for item, count in truth.items() if count > error} <= set(found)
    for item, count in found.items():
        assert truth[item] - error <= count <= truth[item]
        assert frequent.count(item) == count
    assert frequent.count("never") == 0


def test_frequent_sketches_unite():
    one, two = Frequent(5), Frequent(5)
    one.update(["a"] * 5 + ["b"])
    two.update(["a"] * 3 + ["c"])
    assert dict((one | two).items()) == {"a": 8, "b": 1, "c": 1}
    one |= two
    assert one.count("a") == 8


@pytest.mark.parametrize("make", [TopK, Frequent])
def test_items_are_returned_as_text_bytes_or_integers(make):
    for type_, items in (
        (str, ["", "a", "čert", "\0", "x" * 1000]),
        (bytes, [b"", b"\xff\x00", b"abc"]),
        (int, [0, 1, -1, 255, -(2**63), 2**63 - 1, 2**100, -(2**100)]),
    ):
        sketch = make(10)
        sketch.update(items)
        assert sorted(sketch.items(type_)) == sorted((item, 1) for item in items)
        assert all(sketch.count(item) == 1 for item in items)
    sketch = make(10)
    sketch.add(b"\xff")
    assert sketch.items() == sketch.items(str) == sketch.items(None) == [("\udcff", 1)]
    for wrong in (float, list, bool):
        with pytest.raises(umbel.ParameterError, match="str, bytes or int"):
            sketch.items(wrong)
    with pytest.raises(TypeError):
        sketch.items("str")


def test_sketches_that_cannot_be_united_say_why():
    for one, two, error in (
        (TopK(2), TopK(2), umbel.UnsupportedError),
        (Distinct(0.01), Distinct(0.1), umbel.MismatchError),
        (Distinct(), Distinct(seed=1), umbel.MismatchError),
        (CountMin(0.1), CountMin(0.01), umbel.MismatchError),
        (Frequent(2), Frequent(3), umbel.MismatchError),
        (Count(10), Count(1000, random_seed=1), umbel.MismatchError),
    ):
        before = bytes(one)
        with pytest.raises(error):
            one | two
        with pytest.raises(error):
            one |= two
        assert bytes(one) == before
    for other in (Distinct(), {"a"}, 5):
        with pytest.raises(TypeError):
            CountMin() | other


@pytest.mark.parametrize("make", [Count, Distinct, CountMin, TopK, Frequent])
def test_sketches_take_any_keys_and_the_function_key(make):
    args = {Count: (100,), TopK: (5,), Frequent: (5,)}.get(make, ())
    sketch, plain = make(*args, key=lambda item: item["id"]), make(*args)
    sketch.add({"id": "a"})
    sketch.update([{"id": "b"}, 5], iter([b"c"]), "de")
    plain.update(["a", "b", 5, b"c", "d", "e"])
    assert bytes(sketch) == bytes(plain)
    with pytest.raises(umbel.KeyTypeError, match="key="):
        plain.add({"id": "a"})
    with pytest.raises(umbel.KeyTypeError):
        plain.update(["f", 1.5, "g"])
    with pytest.raises(TypeError):
        plain.update(5)
