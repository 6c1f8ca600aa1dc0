"""The set-like methods and operators of filters, as programs know them from `set` and from rbloom."""

import itertools
import random
import weakref

import pytest
from conftest import library

import umbel
from umbel import Bloom

KINDS = ["blocked", "standard", "partitioned"]


def bloom(*items, n=1000, p=1e-9, **options):
    f = Bloom(n, p, **options)
    f.update(items)
    return f


def test_the_parameters_have_the_names_that_rbloom_gives_them():
    f = Bloom(expected_items=1000, false_positive_rate=0.02)
    assert (f.expected_items, f.false_positive_rate) == (1000, 0.02)
    assert f == Bloom(1000, 0.02)


def test_every_public_name_of_rbloom_exists_except_its_hash():
    names = {name for name in dir(library("rbloom").Bloom) if not name.startswith("_")}
    assert names - set(dir(Bloom)) == {"hash_func"}


def scenario(make):
    """Does everything that a program may do with filters, and yields the observations."""
    a, b, empty = make(1000, 1e-9), make(1000, 1e-9), make(1000, 1e-9)
    a.add("first")  # returns nothing in rbloom
    yield a.update(["second"], iter(["third"])), a.update(), b.update(["second", "fourth"])
    union, common = a | b, a & b
    for item in ("first", "second", "third", "fourth", "fifth", 5):
        yield [item in f for f in (a, b, empty, union, common)]
    for f, g in itertools.product((a, b, empty, union, common), repeat=2):
        yield f <= g, f < g, f >= g, f > g, f == g, f != g, f.issubset(g), f.issuperset(g)
    yield a.union(b) == union, a.union(b, ["fourth"], ["fifth"]) > union, a.union() == a
    yield a.intersection(b) == common, a.intersection(b, ["second", "sixth"]) == common, a.intersection() == a
    yield [bool(f) for f in (a, b, empty, union, common)], [round(f.approx_items) for f in (a, empty, union)]
    c = a.copy()
    yield c == a, c is a, c.update(["new"]), "new" in a
    c |= b
    yield c > union
    c &= a
    yield c == a, c.intersection_update(b, union), c == common, c.clear(), c == empty, bool(c)
    yield c.issubset(a), a.issuperset(["first", "third"]), a.issubset(["first"])


def test_a_program_observes_the_same_as_with_rbloom():
    rbloom = library("rbloom")
    assert list(scenario(Bloom)) == list(scenario(rbloom.Bloom))


def test_add_returns_whether_the_item_was_certainly_new():
    f = Bloom(10, 0.4)
    answers = []
    for item in map(str, range(1000)):
        known = item in f
        answers.append(f.add(item))
        assert answers[-1] is (not known)
        assert item in f and f.add(item) is False
    assert set(answers) == {True, False}, "the filter became full on the way"


def test_add_and_in_take_one_item():
    f = Bloom(10, 0.01)
    for wrong in (lambda: f.add(), lambda: f.add("a", "b"), lambda: f.add(item="a"), lambda: Bloom.add()):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        Bloom.add(umbel.Cuckoo(10, 0.01), "a")
    with pytest.raises(TypeError):
        Bloom.__contains__({"a"}, "a")
    assert not f


def test_update_takes_any_number_of_iterables_and_filters():
    f = Bloom(100, 1e-9)
    assert f.update() is None and not f
    f.update(["a"], ("b",), {"c"}, {"d": 1}, iter("ef"), frozenset("g"), bloom("h", n=100), range(3))
    assert f.contains_many([*"abcdefgh", 0, 1, 2, "z"]) == [True] * 11 + [False]
    assert f == bloom(*"abcdefgh", 0, 1, 2, n=100)


def test_a_filter_may_be_combined_with_itself():
    f = bloom("a", "b")
    before = f.copy()
    f.update(f)
    f |= f
    f &= f
    assert f == before == f | f == f & f
    assert f <= f and f >= f and not f < f and not f > f


@pytest.mark.parametrize("kind", KINDS)
def test_a_union_is_the_filter_of_the_items_of_both(kind):
    a, b = bloom(*range(500), kind=kind), bloom(*range(300, 900), kind=kind)
    both = bloom(*range(900), kind=kind)
    assert a | b == b | a == a.union(b) == both
    assert a == bloom(*range(500), kind=kind), "the operands do not change"
    same = a
    a |= b
    assert a is same and a == both


@pytest.mark.parametrize("kind", KINDS)
def test_an_intersection_has_the_items_of_both_and_few_others(kind):
    a, b = bloom(*range(500), kind=kind), bloom(*range(300, 900), kind=kind)
    common = a & b
    assert common == b & a == a.intersection(b)
    assert all(item in common for item in range(300, 500))
    assert not any(item in common for item in range(900, 2000))
    assert common <= a and common <= b and common >= bloom(*range(300, 500), kind=kind)
    same = a
    a &= b
    assert a is same and a == common


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_are_those_of_the_sets(kind):
    rng = random.Random(1)
    for _ in range(200):
        a, b = (set(rng.sample(range(6), rng.randrange(7))) for _ in range(2))
        f, g = bloom(*a, kind=kind), bloom(*b, kind=kind)
        assert [f <= g, f < g, f >= g, f > g] == [a <= b, a < b, a >= b, a > b], (a, b)
        assert [f == g, f != g] == [a == b, a != b], (a, b)
        assert (f.issubset(b), f.issuperset(b)) == (a <= b, a >= b), (a, b)


def test_equal_filters_have_the_same_shape_hash_and_bits():
    f = bloom("a")
    assert f == bloom("a", "a"), "the number of insertions is not compared"
    assert f == bloom("a", key=str), "nor is key="
    others = [
        bloom("b"), bloom("a", n=2000), bloom("a", p=1e-8), bloom("a", seed=1), bloom("a", kind="partitioned"),
        bloom("a", secret=bytes(16)), umbel.Cuckoo(1000, 1e-6),
    ]  # fmt: skip
    for other in others:
        assert f != other and not f == other, other
    empty = Bloom(1000, 1e-9)
    assert empty != Bloom(1000, 1e-9, seed=1), "without items, too"
    assert bloom("a", secret=bytes(16)) == bloom("a", secret=bytes(16))
    assert bloom("a", secret=bytes(16)) != bloom("a", secret=b"x" * 16)


def test_a_filter_does_not_equal_another_object():
    f = bloom("a")
    for other in (None, 1, "a", {"a"}, ["a"], object()):
        assert f != other and not f == other


class Anything:
    """An object that compares and combines with everything."""

    def __eq__(self, other):
        return "equal"

    def __ge__(self, other):
        return "greater"

    def __ror__(self, other):
        return "or"


def test_another_object_may_know_how_to_combine_itself_with_a_filter():
    f = bloom("a")
    assert (f == Anything(), f <= Anything(), f | Anything()) == ("equal", "greater", "or")


def test_operators_take_filters_only():
    f = bloom("a")
    before = f.copy()
    for other in ({"b"}, ["b"], "b", 5, None):
        for operate in (
            lambda: f | other, lambda: f & other, lambda: f <= other, lambda: f < other,
            lambda: f >= other, lambda: f > other, lambda: other | f, lambda: f.__ior__(other) + 0,
        ):  # fmt: skip
            with pytest.raises(TypeError):
                operate()
    assert f == before


MISMATCHES = {
    "number of items": lambda: Bloom(1001, 1e-9),
    "rate": lambda: Bloom(1000, 1e-8),
    "kind": lambda: Bloom(1000, 1e-9, kind="partitioned"),
    "class": lambda: umbel.Cuckoo(1000, 1e-6),
    "seed": lambda: Bloom(1000, 1e-9, seed=1),
    "secret": lambda: Bloom(1000, 1e-9, secret=bytes(16)),
}


@pytest.mark.parametrize("make", MISMATCHES.values(), ids=MISMATCHES.keys())
def test_filters_that_differ_in_shape_or_hash_cannot_be_combined(make):
    f, g = bloom("a"), make()
    before = f.copy()
    for combine in (
        lambda: f | g, lambda: f & g, lambda: f.__ior__(g), lambda: f.__iand__(g), lambda: f.update(g),
        lambda: f.union(["b"], g), lambda: f.intersection(g), lambda: f.intersection_update(g),
        lambda: f <= g, lambda: f < g, lambda: f >= g, lambda: f > g, lambda: f.issubset(g),
        lambda: f.issuperset(g), lambda: f.overlap(g),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="cannot be combined.*same options") as caught:
            combine()
        assert type(caught.value) is umbel.MismatchError
    assert f == before and f.inserted == 1


def test_a_copy_is_another_filter():
    f = bloom("a", key=repr)
    g = f.copy()
    assert g == f and g is not f and type(g) is Bloom and g.inserted == 1
    g.add("b")
    f.add(1.5)
    assert "b" not in f and 1.5 not in g and 1.5 in f
    assert g.add(2.5), "a copy has the function key="


def test_clear_makes_a_filter_as_new():
    f = bloom(*range(100))
    assert f.clear() is None
    assert not f and f == Bloom(1000, 1e-9) and bytes(f) == bytes(Bloom(1000, 1e-9))
    assert f.inserted == 0 and f.approx_items == 0 and f.add(5)


@pytest.mark.parametrize("n", [0, 1, 10, 1000, 10_000])
def test_approx_items_estimates_the_number_of_distinct_items(n):
    f = Bloom(10_000, 0.01)
    f.update(range(n), range(n))
    # Four standard errors.
    assert abs(f.approx_items - n) <= max(0.5, 4 * f.stats()["estimated_count_error"])
    assert abs(f.approx_items - n) <= 0.5 + 0.03 * n


def test_the_number_of_items_of_a_full_filter_is_infinite():
    f = Bloom(1, 0.5)
    f.update(range(10_000))
    assert f.approx_items == float("inf")
    assert f.overlap(f) is None


def test_inserted_counts_each_insertion():
    f = Bloom(1000, 0.01)
    assert f.inserted == 0
    f.add("a")
    f.add("a")
    f.update(["a", "b"], iter("cd"), range(5))
    assert f.inserted == 11 == f.copy().inserted
    assert Bloom.from_bytes(bytes(f)).inserted == 11


def test_inserted_is_unknown_after_filters_were_combined():
    f, g = bloom("a"), bloom("a", "b")
    assert (f | g).inserted is None and (f & g).inserted is None
    f |= g
    assert f.inserted is None
    f.add("c")
    assert f.inserted is None and f
    f.clear()
    assert f.inserted == 0


def test_overlap_estimates_the_number_of_common_items():
    f, g = (bloom(*items, n=20_000, p=0.01) for items in (range(10_000), range(7000, 15_000)))
    common, error = f.overlap(g)
    assert abs(common - 3000) < 4 * error < 1000
    assert f.overlap(bloom(n=20_000, p=0.01))[0] == pytest.approx(0, abs=1)


def test_a_filter_has_no_length_no_items_and_no_hash():
    f = bloom("a")
    for impossible in (len, iter, hash, list, lambda f: f[0], lambda f: {f}):
        with pytest.raises(TypeError):
            impossible(f)


def test_a_filter_is_true_if_anything_was_added():
    assert not Bloom(10, 0.01)
    assert bloom("a") and bloom("")
    assert not (bloom() | bloom()) and bloom("a") | bloom()
    cuckoo = umbel.Cuckoo(10, 0.01)
    cuckoo.add("a")
    assert cuckoo
    cuckoo.remove("a")
    assert not cuckoo


def test_the_representation_names_the_kind_and_the_plan():
    f = Bloom(1_000_000, 0.01)
    f.add("secret item")
    expected = "<umbel.Bloom kind=blocked expected_items=1000000 false_positive_rate=0.01 inserted=1>"
    assert repr(f) == str(f) == expected
    f |= Bloom(1_000_000, 0.01)
    assert repr(f) == "<umbel.Bloom kind=blocked expected_items=1000000 false_positive_rate=0.01>"


def test_the_size_is_about_that_of_the_plan():
    f = Bloom(1_000_000, 0.01)
    plan = umbel.plan(1_000_000, 0.01)
    assert f.size_in_bits == plan["bits"] == f.stats()["bits"]
    assert 9.5e6 < f.size_in_bits < 10.5e6
    assert f.size_in_bits / 8 < f.__sizeof__() < f.size_in_bits / 8 + 2000


def test_why_explains_the_answer():
    f = bloom("a", n=10, p=0.01)
    why = f.why("a")
    assert why["member"] is True and why["key"] == "a" and why["first_zero"] is None
    assert [probe["value"] for probe in why["probes"]] == [1] * f.stats()["hashes"]
    assert all(0 <= probe["bit"] < f.size_in_bits for probe in why["probes"])
    absent = f.why("b")
    zero = absent["first_zero"] - 1
    assert absent["member"] is False
    assert [probe["value"] for probe in absent["probes"]][: zero + 1] == [1] * zero + [0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_random_operations_never_lose_an_item(kind, seed):
    """Each filter has an oracle: the set of its items. It is exact until an intersection, whose bits
    may be more than those of the items in both."""
    rng = random.Random(seed)
    filters = [[Bloom(300, 0.01, kind=kind), set(), True] for _ in range(4)]

    def fresh(items):
        return bloom(*items, n=300, p=0.01, kind=kind)

    for _ in range(600):
        at, other = rng.randrange(4), rng.randrange(4)
        f, items, exact = filters[at]
        g, others, other_exact = filters[other]
        some = [rng.randrange(500) for _ in range(rng.randrange(20))]
        match rng.randrange(8):
            case 0:
                item = rng.randrange(500)
                new = f.add(item)
                assert not (new and item in items)
                items.add(item)
            case 1:
                f.update(some, iter(some))
                items.update(some)
            case 2:
                f |= g
                filters[at] = [f, items | others, exact and other_exact]
            case 3:
                filters[at] = [f | g, items | others, exact and other_exact]
            case 4:
                f &= g
                filters[at] = [f, items & others, at == other and exact]
            case 5:
                filters[at] = [g.copy(), set(others), other_exact]
            case 6:
                filters[at] = [f.union(some, g), items | others | set(some), exact and other_exact]
            case 7 if rng.random() < 0.2:
                f.clear()
                filters[at] = [f, set(), True]
        for f, items, exact in filters:
            assert all(f.contains_many(list(items)))
            assert fresh(items) <= f
            assert not exact or fresh(items) == f


@pytest.mark.parametrize(
    "make",
    [
        umbel.Cuckoo, umbel.Counting, umbel.Quotient, umbel.Scalable, umbel.Aging,
        lambda n, p: umbel.Fuse(range(100), p),
    ],
)  # fmt: skip
def test_a_filter_of_every_kind_knows_whether_it_has_all_items_of_an_iterable(make):
    np, pa = library("numpy"), library("pyarrow")
    f = make(1000, 1e-6)
    if not isinstance(f, umbel.Fuse):
        f.update(range(100))
    for items in ([], range(100), iter(range(100)), np.arange(100), pa.array([None, 5, 7])):
        assert f.issuperset(items) is True
    more = np.arange(5000)
    for items in (more, more.tolist(), iter(more), pa.array(more), pa.chunked_array([[1], [1000]])):
        assert f.issuperset(items) is False


def test_a_small_rate_is_shown_with_an_exponent():
    assert "false_positive_rate=1e-9 " in repr(bloom("a"))


def test_filters_may_be_referred_to_weakly():
    f = bloom("a")
    reference = weakref.ref(f)
    assert reference() is f
    del f
    assert reference() is None
