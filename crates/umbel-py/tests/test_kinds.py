"""The kinds of sets: removing, growing, aging, building at once, and the rate of each."""

import random
from collections import Counter
from datetime import timedelta
from math import sqrt

import pytest

import umbel
from umbel import Aging, Bloom, Counting, Cuckoo, Fuse, Quotient, Scalable

REMOVABLE = {
    "cuckoo": Cuckoo,
    "quotient": Quotient,
    "counting": Counting,
    "variable-increment": lambda n, p, **options: Counting(n, p, kind="variable-increment", **options),
}
SETS = {
    "blocked": Bloom,
    "standard": lambda n, p, **options: Bloom(n, p, kind="standard", **options),
    "partitioned": lambda n, p, **options: Bloom(n, p, kind="partitioned", **options),
    **REMOVABLE,
    "deletable": lambda n, p, **options: Counting(n, p, kind="deletable", **options),
    "scalable": Scalable,
    "aging": Aging,
}

removable = pytest.mark.parametrize("make", REMOVABLE.values(), ids=REMOVABLE.keys())


def filled(kind, n, p):
    """A set of `n` integers that was planned for them."""
    if kind == "fuse":
        return Fuse(range(n), p)
    f = SETS[kind](n, p)
    f.update(range(n))
    return f


@pytest.mark.parametrize("kind", [*SETS, "fuse"])
@pytest.mark.parametrize("p", [0.1, 0.01, 0.001])
def test_every_item_is_found_and_others_at_the_rate_at_most(kind, p):
    """The hits among other items are binomial. Five standard deviations above the promise would be
    seen once in three million choices of these items."""
    n, others = 20_000, range(1 << 40, (1 << 40) + 200_000)
    f = filled(kind, n, p)
    assert all(f.contains_many(range(n)))
    hits = sum(f.contains_many(others))
    promised = len(others) * p
    assert hits <= promised + 5 * sqrt(promised)
    # The rate that follows from the cells is the one that is measured.
    expected = len(others) * f.stats()["fpr_now"]
    assert abs(hits - expected) <= 0.03 * expected + 5 * sqrt(expected)


@pytest.mark.parametrize("kind", [*SETS, "fuse"])
def test_a_filter_is_of_its_class_and_kind(kind):
    f = filled(kind, 1000, 0.01)
    assert f.kind == kind or kind == "blocked" and f.kind == "standard", "few blocks would miss the rate"
    assert isinstance(f, umbel.Filter) and isinstance(f, umbel.Structure)
    assert type(f.copy()) is type(f) and type(umbel.Structure.from_bytes(bytes(f))) is type(f)
    assert (f.expected_items, f.false_positive_rate, f.inserted) == (1000, 0.01, 1000)
    assert f.hash == "fast" and f.read_only is False and f.meta == {}
    assert repr(f).startswith(f"<umbel.{type(f).__name__} kind={f.kind} expected_items=1000 ")


@pytest.mark.parametrize("kind", [*SETS, "fuse"])
def test_the_plan_is_what_is_built(kind):
    plan = umbel.plan(100_000, 0.01, kind=kind)
    f = filled(kind, 100_000, 0.01)
    stats = f.stats()
    assert plan["kind"] == stats["kind"] == kind
    assert plan["built_bits"] == stats["bits"] == f.size_in_bits and plan["hashes"] == stats["hashes"]
    # The exact rate of the best whole number of hash functions is at most 2 % above the formula's.
    assert plan["built_fpr"] <= plan["fpr"] <= 1.02 * plan["fpr_target"] == 1.02 * 0.01
    can = plan["can"]
    assert can["remove"] == (kind in REMOVABLE or kind == "deletable")
    assert (can["add"], can["grow"], can["forget"]) == (kind != "fuse", kind == "scalable", kind == "aging")


@pytest.mark.parametrize("kind", [*SETS])
@pytest.mark.parametrize("secret", [bytes(range(16)), bytes(range(32))], ids=["keyed", "sealed"])
def test_a_secret_changes_the_digests(kind, secret):
    f, g = SETS[kind](100, 0.01, secret=secret), SETS[kind](100, 0.01, secret=secret[::-1])
    assert f.hash == {16: "keyed", 32: "sealed"}[len(secret)]
    for h in (f, g):
        h.update(["a", "b"])
        assert "a" in h and h.contains_many(["b", "c"]) == [True, False]
    assert f.why("a")["digest"] != g.why("a")["digest"] != SETS[kind](100, 0.01).why("a")["digest"]


def test_without_a_secret_each_filter_gets_a_random_one():
    for strength in ("keyed", "sealed"):
        digests = {Bloom(10, 0.01, hash=strength).why("a")["digest"] for _ in range(5)}
        assert len(digests) == 5


@removable
def test_an_item_can_be_removed(make):
    f = make(1000, 1e-4)
    f.update(range(500))
    assert f.remove(7) is None
    assert 7 not in f and all(f.contains_many([*range(7), *range(8, 500)]))
    assert f.discard(8) is True and 8 not in f and f.discard(8) is False
    assert f.add(7) is True and 7 in f


@removable
def test_removing_an_item_that_is_not_there_is_a_key_error(make):
    f = make(1000, 1e-4)
    f.add("a")
    with pytest.raises(KeyError) as caught:
        f.remove("b")
    assert caught.value.args == ("b",)
    assert "a" in f and f.discard("b") is False


@removable
def test_an_item_must_be_removed_as_often_as_it_was_added(make):
    f = make(1000, 1e-4)
    f.update(["a", "a", "a"])
    f.remove("a")
    f.remove("a")
    assert "a" in f
    f.remove("a")
    assert "a" not in f and not f


@removable
@pytest.mark.parametrize("seed", range(3))
def test_random_removals_never_lose_another_item(make, seed):
    rng = random.Random(seed)
    f, items = make(400, 1e-4), Counter()
    for _ in range(4000):
        item = rng.randrange(200)
        if items[item] and rng.random() < 0.5:
            f.remove(item)
            items[item] -= 1
        elif items[item] < 2:
            f.add(item)
            items[item] += 1
        assert items[item] == 0 or item in f
    present = [item for item in items if items[item]]
    assert all(f.contains_many(present))
    for item in items.elements():
        f.remove(item)
    assert not f and not any(f.contains_many(range(200)))


def test_a_deletable_filter_removes_what_has_a_cell_of_its_own():
    f = Counting(1000, 0.01, kind="deletable")
    f.update(range(1000))
    removed = kept = 0
    for item in range(1000):
        try:
            f.remove(item)
            removed += 1
        except umbel.UnsupportedError as error:
            assert "cuckoo" in str(error)
            assert item in f, "nothing has changed"
            kept += 1
    assert removed > 500 and kept > 0


def test_sets_of_bits_have_no_method_that_removes():
    for make in (Bloom, Scalable, Aging):
        assert not hasattr(make(10, 0.01), "remove") and not hasattr(make(10, 0.01), "discard")
    assert not hasattr(Fuse([], 0.01), "remove")


@pytest.mark.parametrize("make", [Cuckoo, Quotient])
def test_a_full_filter_refuses_an_item_and_keeps_all_others(make):
    f, added = make(100, 0.001), 0
    with pytest.raises(umbel.FullError, match="takes no more: at most 121 of its 128|takes no more: 144 of 144") as caught:
        for added in range(10_000):  # noqa: B007
            f.add(added)
    assert added >= 100 and f.inserted == added and len(str(caught.value)) > 20
    assert all(f.contains_many(range(added)))
    before = bytes(f)
    with pytest.raises(umbel.FullError):
        f.add(added)
    assert bytes(f) == before


def test_a_full_filter_keeps_the_items_before_the_one_that_did_not_fit():
    for items in (list(range(10_000)), iter(range(10_000))):
        f, one_by_one = Cuckoo(100, 0.001), Cuckoo(100, 0.001)
        with pytest.raises(umbel.FullError):
            f.update(items)
        with pytest.raises(umbel.FullError):
            for item in range(10_000):
                one_by_one.add(item)
        assert bytes(f) == bytes(one_by_one)


def test_a_quotient_filter_can_be_resized():
    f = Quotient(1000, 0.01)
    f.update(range(1000))
    larger = f.resized(60_000)
    assert type(larger) is Quotient and larger.expected_items == 60_000 and f.expected_items == 1000
    larger.update(range(1000, 50_000))
    assert all(larger.contains_many(range(50_000))) and larger.inserted == 50_000
    assert all(f.resized(2000).resized(1000).contains_many(range(1000)))
    for wrong, why in ((100, "at least the 50000 keys"), (100_000, "it can grow to 77824 keys")):
        with pytest.raises(umbel.ParameterError, match=why):
            (larger if wrong == 100 else f).resized(wrong)


def test_a_scalable_filter_keeps_its_rate_as_it_grows():
    f = Scalable(1000, 0.01)
    small = f.size_in_bits
    f.update(range(100_000))
    assert all(f.contains_many(range(100_000)))
    hits = sum(f.contains_many(range(1 << 40, (1 << 40) + 200_000)))
    assert hits <= 2000 + 5 * sqrt(2000)
    assert f.size_in_bits > 50 * small and f.stats()["stages"] > 1


def test_an_aging_filter_has_the_last_items_of_its_window_and_no_old_ones():
    f = Aging(1000, 0.0001, window=500)
    found = set()
    for item in range(5000):
        f.add(item)
        recent = f.contains_many(range(max(0, item - 499), item + 1))
        # With eight generations, an eighth of the window is forgotten at once.
        assert all(recent[-437:])
        found.add(sum(recent))
    assert max(found) == 500, "an item is found for the whole window, if it was the first of a generation"
    # Of 4500 items, 0.45 are found by mistake on average, and more than 7 once in ten million choices.
    assert sum(f.contains_many(range(4500))) <= 7


def test_an_aging_filter_forgets_by_the_clock():
    start = 1_800_000_000
    f = Aging(1000, 0.0001, window=timedelta(minutes=10))
    f.advance(start)
    f.update(["a", "b"])
    # Of ten minutes, an eighth may be missing.
    f.advance(start + 525)
    assert f.contains_many(["a", "b"]) == [True, True]
    f.add("c")
    f.advance(start + 525 + 525)
    assert f.contains_many(["a", "b", "c"]) == [False, False, True]
    with pytest.raises(umbel.ParameterError, match="backwards"):
        f.advance(start)
    assert "c" in f
    f.advance(start + 10_000)
    assert "c" not in f and not f


def test_an_aging_filter_takes_the_time_of_the_system():
    f = Aging(1000, 0.0001, window=timedelta(days=1))
    f.advance()
    f.add("a")
    f.advance()
    assert "a" in f


def test_a_fuse_filter_is_made_of_all_items_at_once():
    for items in (["a", "b"], ("a", "b"), iter("ab"), {"a", "b"}, "ab", ["a", "b", "a"]):
        f = Fuse(items, 1e-6)
        assert f.contains_many(["a", "b", "c"]) == [True, True, False]
    assert Fuse(range(10), 0.01) == Fuse(list(range(10)), 0.01) != Fuse(range(9), 0.01)
    for change in (lambda: f.add("c"), lambda: f.update(["c"]), f.clear):
        with pytest.raises(umbel.UnsupportedError, match="build a new one"):
            change()
    assert f.contains_many(["a", "b", "c"]) == [True, True, False]


def test_a_fuse_filter_may_be_empty():
    f = Fuse([], 0.01)
    assert not f and f.inserted == 0
    # It has no item to be right about, and its rate.
    assert sum(f.contains_many(range(100_000))) <= 1000 + 5 * sqrt(1000)


def test_a_fuse_filter_is_smaller_than_a_bloom_filter():
    assert Fuse(range(100_000), 0.01).size_in_bits < 0.9 * Bloom(100_000, 0.01, kind="standard").size_in_bits


def test_the_constructors_take_no_items_but_those_of_fuse():
    for make in SETS.values():
        with pytest.raises(TypeError):
            make(["a"], 0.01)
        assert not make(10, 0.01)


def test_kinds_of_other_classes_are_refused():
    for make, kind in ((Bloom, "cuckoo"), (Counting, "standard"), (umbel.Map, "fuse"), (umbel.Count, "map")):
        with pytest.raises(umbel.ParameterError, match="kind") as caught:
            make(*(["a"], [1]) if make is umbel.Map else (10, 0.01)[: 1 if make is umbel.Count else 2], kind=kind)
        assert "it needs one of" in str(caught.value)


@pytest.mark.parametrize("make", [Cuckoo, Counting, Quotient, Scalable], ids=lambda make: make.__name__)
def test_a_union_of_another_kind_has_the_items_of_both(make):
    f, g = make(1000, 0.001), make(1000, 0.001)
    f.update(range(300))
    g.update(range(200, 600))
    both = f | g
    assert type(both) is make and all(both.contains_many(range(600)))
    assert sum(both.contains_many(range(1000, 11_000))) < 50
    assert 550 not in f and all(f.union(g, range(600, 700)).contains_many(range(700)))


def test_comparisons_that_a_kind_cannot_make_are_refused():
    f = Cuckoo(100, 0.01)
    for compare in (lambda: f <= f.copy(), lambda: f > f.copy(), lambda: f.issubset(["a"])):
        with pytest.raises(umbel.UnsupportedError, match="standard"):
            compare()
    assert f == f.copy()
