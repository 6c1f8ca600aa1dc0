"""Exceptions: of a class that programs catch, with a sentence, and the filter is as documented."""

import pickle

import pytest
from conftest import LINES, N, P

import umbel
from umbel import Bloom

MAKERS = [Bloom, umbel.Cuckoo, umbel.Counting, umbel.Quotient, umbel.Scalable, umbel.Aging]


def broken(items, error):
    yield from items
    raise error


@pytest.mark.parametrize("make", MAKERS)
def test_an_exception_of_an_iterator_keeps_exactly_the_items_before(make):
    f, expected = make(N, P), make(N, P)
    with pytest.raises(RuntimeError, match="^of mine$"):
        f.update(LINES[:100], broken(LINES[100:10_000], RuntimeError("of mine")), LINES[10_000:])
    expected.update(LINES[:10_000])
    assert bytes(f) == bytes(expected)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 5000, 20_001])
@pytest.mark.parametrize("container", [list, tuple, iter], ids=lambda container: container.__name__)
def test_an_item_that_is_not_a_key_keeps_exactly_the_items_before(make, at, container):
    f, expected = make(N, P), make(N, P)
    with pytest.raises(umbel.KeyTypeError, match="key="):
        f.update(container([*LINES[:at], 1.5, *LINES[at:]]))
    expected.update(LINES[:at])
    assert bytes(f) == bytes(expected)


def test_wrong_parameters_are_named():
    """Each with the name that the message must have."""
    wrong = [
        ("expected_items", (0, 0.01)), ("expected_items", (-1, 0.01)), ("expected_items", (10**30, 0.01)),
        ("rate", (100, 0.0)), ("rate", (100, 1.0)), ("rate", (100, 1.5)), ("rate", (100, -0.5)),
        ("rate", (100, float("nan"))), ("rate", (100, float("inf"))), ("rate", (10**9, 1e-12)),
    ]  # fmt: skip
    for name, (n, p) in wrong:
        for make in (*MAKERS, umbel.plan):
            with pytest.raises(umbel.ParameterError) as caught:
                make(n, p)
            assert isinstance(caught.value, ValueError) and name in str(caught.value), (make, n, p)
    for n, p in (("100", 0.01), (1.5, 0.01), (None, 0.01), (100, "1 %"), (100, None)):
        with pytest.raises(TypeError):
            Bloom(n, p)


def test_numbers_without_bounds_are_refused_like_large_ones():
    huge = 10**5000  # Python converts it neither to a float nor to a text
    for make in (*MAKERS, umbel.plan):
        for n, p in ((huge, 0.01), (-huge, 0.01), (10, huge), (10, -huge)):
            with pytest.raises(umbel.ParameterError) as caught:
                make(n, p)
            assert len(str(caught.value)) < 200
    for make in (
        lambda: umbel.Fuse(["a"], huge), lambda: umbel.Map(["a"], [1], huge), lambda: umbel.CountMin(huge),
        lambda: umbel.CountMin(0.1, huge), lambda: umbel.Count(10, noise=huge), lambda: umbel.TopK(huge),
        lambda: umbel.Distinct(-huge), lambda: Bloom(10, 0.01, seed=huge), lambda: umbel.Aging(10, 0.01).advance(huge),
    ):  # fmt: skip
        with pytest.raises(umbel.ParameterError):
            make()


def test_a_filter_that_memory_cannot_hold_is_a_memory_error():
    with pytest.raises((umbel.OutOfMemoryError, umbel.ParameterError)) as caught:
        Bloom(2**47, 1e-4)
    assert len(str(caught.value)) > 20


def test_seeds_are_checked():
    assert Bloom(10, 0.01, seed=2**64 - 1).why("a") and Bloom(10, 0.01, seed=0) == Bloom(10, 0.01)
    for wrong in (-1, 2**64):
        with pytest.raises(umbel.ParameterError, match="seed"):
            Bloom(10, 0.01, seed=wrong)


def test_a_mismatch_names_the_difference():
    f = Bloom(1000, 0.01)
    f.add("a")
    before = bytes(f)
    others = {
        "kind": umbel.Cuckoo(1000, 0.01), "bits|memory|size|blocks": Bloom(100_000, 0.01, kind="standard"),
        "hash": Bloom(1000, 0.01, hash="keyed"), "seed": Bloom(1000, 0.01, seed=5),
    }  # fmt: skip
    for name, other in others.items():
        for combine in (lambda other=other: f | other, lambda other=other: f & other, lambda other=other: f.update(other)):
            with pytest.raises(umbel.MismatchError, match=name) as caught:
                combine()
            assert isinstance(caught.value, ValueError)
    assert bytes(f) == before


def test_every_exception_is_an_error_of_the_package_with_documentation():
    for name in umbel.__all__:
        value = getattr(umbel, name)
        if name.endswith("Error"):
            assert issubclass(value, umbel.Error) and value.__doc__ and value.__module__.startswith("umbel")
            assert str(pickle.loads(pickle.dumps(value("a message")))) == "a message"


def test_an_operation_that_a_kind_does_not_support_says_what_does():
    f = umbel.Fuse(["a"], 0.01)
    with pytest.raises(umbel.UnsupportedError) as caught:
        f.add("b")
    assert isinstance(caught.value, TypeError) and len(str(caught.value)) > 30
    with pytest.raises(umbel.UnsupportedError):
        f.update(["b"])
    assert "a" in f
