"""Keys and their bytes."""

import array
import enum
import ipaddress
import uuid

import pytest
from conftest import library, resident

import umbel
from umbel import Bloom


def digest(item, **options):
    return Bloom(10, 0.01, **options).why(item)["digest"]


def same(*items):
    return len({digest(item) for item in items}) == 1


def test_a_text_is_its_utf8():
    assert same("čert", "čert".encode(), bytearray("čert".encode()))
    assert not same("a", "b")


def test_the_same_text_is_the_same_key_in_the_shell(shell, tmp_path):
    texts = ["", "a", "čert", "x" * 1000, "😀", "a\tb", "\0"]
    for text in texts:
        shell("build", "-f", "-n", 10, "-o", tmp_path / "one", stdin=f"{text}\n".encode())
        f = Bloom(10, 0.01)
        f.add(text)
        assert bytes(f) == (tmp_path / "one").read_bytes(), repr(text)


def test_a_subclass_of_str_is_its_text():
    class Name(str):
        def __str__(self):
            return "another"

        def encode(self, *_):
            return b"another"

    class Color(enum.StrEnum):
        RED = "red"

    assert same("red", Name("red"), Color.RED)
    f = Bloom(10, 0.01)
    f.update([Name("red")])
    assert "red" in f


def test_a_subclass_of_bytes_is_its_bytes():
    class Raw(bytes):
        def __bytes__(self):
            return b"another"

    assert same(b"red", Raw(b"red"))


def test_bytearray_and_memoryview_are_their_bytes():
    assert same(b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"xaxbxc")[1::2])


def test_a_memoryview_of_wider_items_is_not_a_key():
    with pytest.raises(umbel.KeyTypeError, match="key="):
        digest(memoryview(array.array("q", [1, 2])))


def test_an_integer_of_64_bits_is_eight_little_endian_bytes():
    for number in (0, 1, 255, 2**31, 2**63 - 1):
        assert same(number, number.to_bytes(8, "little"))
    for number in (-1, -7, -(2**63)):
        assert same(number, number.to_bytes(8, "little", signed=True))
    for number in (2**63, 2**64 - 1):
        assert same(number, number.to_bytes(8, "little"))


def test_minus_one_and_the_largest_unsigned_integer_are_one_key():
    assert same(-1, 2**64 - 1)
    assert same(-(2**63), 2**63)


def test_a_larger_integer_is_sixteen_bytes():
    for number in (2**64, 2**100, 2**128 - 1):
        assert same(number, number.to_bytes(16, "little"))
    for number in (-(2**63) - 1, -(2**127)):
        assert same(number, number.to_bytes(16, "little", signed=True))
    assert not same(2**64, 0)


@pytest.mark.parametrize("number", [2**128, -(2**127) - 1, 2**130, 10**1000, -(10**1000)])
def test_an_integer_of_more_than_128_bits_is_refused(number):
    f = Bloom(10, 0.01)
    with pytest.raises(ValueError, match="128 bits.*str"):
        f.add(number)
    assert not f


def test_a_boolean_is_an_integer():
    assert same(True, 1)
    assert same(False, 0)


def test_a_number_is_not_its_digits():
    assert not same(42, "42")
    assert not same(42, b"42")


def test_whatever_has_an_index_is_an_integer():
    class Seven:
        def __index__(self):
            return 7

    class Level(enum.IntEnum):
        HIGH = 7

    class Number(int):
        def __index__(self):
            return 8

    assert same(7, Seven(), Level.HIGH)
    assert digest(Number(7)) in (digest(7), digest(8))


def test_an_index_that_fails_raises_its_own_exception():
    class Bad:
        def __index__(self):
            raise ZeroDivisionError("of mine")

    class Worse:
        def __index__(self):
            return "x"

    f = Bloom(10, 0.01)
    with pytest.raises(ZeroDivisionError, match="of mine"):
        f.add(Bad())
    with pytest.raises(TypeError):
        f.add(Worse())
    assert not f


def test_a_uuid_is_its_sixteen_bytes():
    number = uuid.UUID("12345678-1234-5678-1234-567812345678")
    assert same(number, number.bytes)
    assert not same(number, str(number))


def test_an_address_is_its_bytes_in_network_order():
    four, six = ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("2001:db8::7")
    assert same(four, four.packed) and len(four.packed) == 4
    assert same(six, six.packed) and len(six.packed) == 16


def test_numpy_scalars_are_the_keys_of_their_values():
    np = library("numpy")
    for name in ("int8", "int16", "int32", "int64"):
        assert same(-5, getattr(np, name)(-5)), name
    for name in ("uint8", "uint16", "uint32", "uint64"):
        assert same(200, getattr(np, name)(200)), name
    assert same("čert", np.str_("čert"))
    assert same(b"raw", np.bytes_(b"raw"))
    assert same(2**64 - 1, np.uint64(2**64 - 1))


def test_a_numpy_float_is_not_a_key():
    np = library("numpy")
    for scalar in (np.float64(1), np.float32(1), np.datetime64("2020-01-01")):
        with pytest.raises(TypeError):
            digest(scalar)


@pytest.mark.parametrize(
    "item", [None, 1.5, 1j, [], (), {}, object(), int, "a".join, array.array("q"), umbel]
)
def test_other_objects_are_refused_with_a_remedy(item):
    f = Bloom(10, 0.01)
    for use in (f.add, f.__contains__, lambda item: f.update([item]), f.why):
        with pytest.raises(TypeError, match="key=") as caught:
            use(item)
        assert isinstance(caught.value, umbel.KeyTypeError)
        assert type(item).__name__.removesuffix("Type") in str(caught.value)
    assert not f


def test_a_lone_surrogate_is_refused_as_python_refuses_to_encode_it():
    f = Bloom(10, 0.01)
    for use in (f.add, f.__contains__, lambda text: f.update([text]), lambda text: f.update(iter([text]))):
        with pytest.raises(UnicodeEncodeError):
            use("\ud800")
    assert not f


def test_the_function_key_makes_keys_of_other_objects():
    class Person:
        def __init__(self, name):
            self.name = name

    f = Bloom(100, 0.01, key=lambda person: person.name)
    ada, bob = Person("ada"), Person("bob")
    assert f.add(ada)
    assert ada in f and bob not in f
    f.update([bob])
    assert f.contains_many([ada, bob, Person("eve")]) == [True, True, False]
    assert "ada" in f, "a key is its own key"


def test_the_function_key_is_not_called_for_keys():
    def never(item):
        raise AssertionError(item)

    f = Bloom(100, 0.01, key=never)
    f.update(["a", b"b", 3, uuid.uuid4()])
    assert "a" in f


def test_an_exception_of_the_function_key_reaches_the_caller():
    def fail(item):
        raise ZeroDivisionError("of mine")

    f = Bloom(100, 0.01, key=fail)
    with pytest.raises(ZeroDivisionError, match="of mine"):
        f.add(None)
    with pytest.raises(ZeroDivisionError, match="of mine"):
        f.update(["a", None, "b"])
    assert "a" in f and "b" not in f


def test_the_function_key_must_return_a_key():
    f = Bloom(100, 0.01, key=lambda item: [item])
    with pytest.raises(umbel.KeyTypeError, match="list"):
        f.add(None)


def test_the_function_key_may_use_the_filter():
    f = Bloom(100, 0.01, key=lambda item: (f.add("seen"), repr(item))[1])
    f.update([None, 1.5])
    assert "seen" in f and "None" in f and "1.5" in f


def test_a_key_in_a_list_may_change_the_list():
    items = []

    class Evil:
        def __index__(self):
            items.clear()
            return 7

    items.extend(["a", Evil(), *map(str, range(1000))])
    f = Bloom(10, 0.01)
    f.update(items)
    assert f.contains_many(["a", 7]) == [True, True]
    assert f.inserted == 2


@pytest.mark.parametrize("item", [2**100, -(2**64), 2**127, memoryview(b"a"), uuid.uuid4(), True])
def test_no_memory_is_lost_with_keys_of_rare_types(item):
    """PyO3 puts off dropping an object while it does not know that it may."""
    f = Bloom(10, 0.01)

    def use():
        f.add(item)
        assert item in f

    for _ in range(1000):
        use()
    before = resident()
    for _ in range(50_000):
        use()
    assert resident() - before < 4 << 20


def test_equal_keys_have_equal_digests_whatever_the_seed_of_python(python):
    program = "import umbel; print(umbel.Bloom(9, 0.1).why('čert')['digest'])"
    assert python(program, seed=1) == python(program, seed=2) == digest("čert") + "\n"


def test_a_seed_changes_the_digest():
    assert digest("a", seed=1) != digest("a") == digest("a", seed=0)
