"""Arrow columns of producers that break the rules of the C data interface: an exception, or the keys."""

import struct

import pytest
from producers import RELEASE_ARRAY, RELEASE_SCHEMA, Column, array, schema

import umbel
from umbel import Bloom


def ints(*values):
    return struct.pack(f"{len(values)}i", *values)


def longs(*values):
    return struct.pack(f"{len(values)}q", *values)


def texts(length=2, **others):
    """The texts "a" and "bc"."""
    return array(length, [None, ints(0, 1, 3), b"abc"], **others)


def views(*parts):
    """A text of 20 bytes that lies in the first buffer."""
    return array(1, [None, ints(20, 0, 0, 0), *parts])


def nested(depth):
    it = schema(b"u"), texts()
    for _ in range(depth):
        it = schema(b"+s", [it[0]]), array(2, [None], [it[1]])
    return it


NOT_KEYS = {
    "unknown": lambda: (schema(b"_pli128"), texts()),
    "empty": lambda: (schema(b""), texts()),
    "not UTF-8": lambda: (schema(b"\xff\xfe"), texts()),
    "list without child": lambda: (schema(b"+l"), texts()),
    "map without child": lambda: (schema(b"+m"), texts()),
    "runs without children": lambda: (schema(b"+r"), texts()),
    "negative width": lambda: (schema(b"w:-1"), array(1, [None, b"abcd"])),
    "no width": lambda: (schema(b"w:"), array(1, [None, b"abcd"])),
    "large width": lambda: (schema(b"w:99999999999"), array(1, [None, b"abcd"])),
    "negative number of children": lambda: (schema(b"+s", n_children=-1), texts()),
}

DAMAGED = {
    "no format": lambda: (schema(None), texts()),
    "no children": lambda: (schema(b"+s", n_children=1), texts()),
    "no child": lambda: (schema(b"+s", [None]), array(2, [None], [texts()])),
    "released schema": lambda: (schema(b"u", release=RELEASE_SCHEMA()), texts()),
    "nested": lambda: nested(100),
    "nested as far as the stack": lambda: nested(50_000),
    "indexes": lambda: (schema(b"f", dictionary=schema(b"u")), array(1, [None, ints(0)], dictionary=texts())),
    "no dictionary": lambda: (schema(b"i", dictionary=schema(b"u")), array(1, [None, ints(0)])),
    "another dictionary": lambda: (schema(b"i"), array(1, [None, ints(0)], dictionary=texts())),
    "index": lambda: (schema(b"i", dictionary=schema(b"u")), array(1, [None, ints(2)], dictionary=texts())),
    "negative index": lambda: (schema(b"i", dictionary=schema(b"u")), array(1, [None, ints(-1)], dictionary=texts())),
    "released array": lambda: (schema(b"u"), texts(release=RELEASE_ARRAY())),
    "negative length": lambda: (schema(b"u"), texts(length=-2)),
    "negative offset": lambda: (schema(b"u"), texts(offset=-1)),
    "large length": lambda: (schema(b"u"), texts(length=2**62)),
    "large offset": lambda: (schema(b"u"), texts(length=2**63 - 1, offset=2**63 - 1)),
    "large length without memory": lambda: (schema(b"n"), array(2**47, [])),
    "large length of nothing": lambda: (schema(b"w:0"), array(2**47, [None, b""])),
    "negative buffers": lambda: (schema(b"u"), texts(n_buffers=-1)),
    "buffers": lambda: (schema(b"u"), array(2, [None, ints(0, 1, 3)])),
    "no offsets": lambda: (schema(b"u"), array(2, [None, None, b"abc"])),
    "no bytes": lambda: (schema(b"u"), array(2, [None, ints(0, 1, 3), None])),
    "no integers": lambda: (schema(b"l"), array(2, [None, None])),
    "negative end": lambda: (schema(b"u"), array(2, [None, ints(0, 1, -3), b"abc"])),
    "negative size of a buffer": lambda: (schema(b"vu"), views(b"x" * 20, longs(-5))),
    "no sizes of buffers": lambda: (schema(b"vu"), views(b"x" * 20, None)),
    "small buffer": lambda: (schema(b"vu"), views(b"x" * 20, longs(5))),
    "short child": lambda: (schema(b"+s", [schema(b"u")]), array(3, [None], [texts()])),
    "missing child": lambda: (schema(b"+s", [schema(b"u")]), array(2, [None], [None])),
    "fewer children": lambda: (schema(b"+s", [schema(b"u")]), array(2, [None])),
}

READABLE = {
    "text": (lambda: (schema(b"u"), texts()), ["a", "bc"]),
    "no name": (lambda: (schema(b"u", name=None), texts()), ["a", "bc"]),
    "name": (lambda: (schema(b"u", name=b"\xff"), texts()), ["a", "bc"]),
    "name of a child": (
        lambda: (schema(b"+s", [schema(b"u", name=b"\xff")]), array(2, [None], [texts()])), ["a", "bc"]
    ),
    "metadata of a child": (
        lambda: (schema(b"+s", [schema(b"u", metadata=struct.pack("i", -5))]), array(2, [None], [texts()])),
        ["a", "bc"],
    ),
    "tables in tables": (lambda: nested(3), ["a", "bc"]),
    "view": (lambda: (schema(b"vu"), views(b"x" * 20, longs(20))), ["x" * 20]),
    "no bytes of empty texts": (lambda: (schema(b"u"), array(2, [None, ints(0, 0, 0), None])), ["", ""]),
    "number of nulls without nulls": (lambda: (schema(b"u"), texts(null_count=2**62)), ["a", "bc"]),
    "number of nulls": (
        lambda: (schema(b"u"), array(2, [b"\1", ints(0, 1, 3), b"abc"], null_count=2**62)), ["a", None]
    ),
    "no rows and no buffers": (lambda: (schema(b"u"), array(0, [])), []),
    "no rows and no offsets": (lambda: (schema(b"U"), array(0, [None, None, None])), []),
    "no rows and no views": (lambda: (schema(b"vu"), array(0, [None, None])), []),
    "nulls": (lambda: (schema(b"n"), array(3, [])), [None] * 3),
    "nulls with a buffer": (lambda: (schema(b"n"), array(3, [None])), [None] * 3),
    "table of nulls with a buffer": (
        lambda: (schema(b"+s", [schema(b"n")]), array(3, [None], [array(3, [None])])), [None] * 3
    ),
    "dictionary of nulls with a buffer": (
        lambda: (schema(b"i", dictionary=schema(b"n")), array(1, [None, ints(0)], dictionary=array(1, [None]))),
        [None],
    ),
}  # fmt: skip

every_use = pytest.mark.parametrize(
    "use",
    [
        Bloom(10, 0.01).update, Bloom(10, 0.01).contains_many, lambda column: umbel.Fuse(column, 0.01),
        umbel.TopK(3).update, umbel.Distinct().update,
    ],
    ids=["update", "contains_many", "Fuse", "TopK", "Distinct"],
)  # fmt: skip


@every_use
@pytest.mark.parametrize("make", NOT_KEYS.values(), ids=NOT_KEYS.keys())
def test_a_type_that_is_not_that_of_keys_is_refused(make, use):
    with pytest.raises(umbel.KeyTypeError, match="key"):
        use(Column(*make()))


@every_use
@pytest.mark.parametrize("make", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_broken_promise_is_an_exception(make, use):
    with pytest.raises(umbel.ParameterError, match="Arrow column"):
        use(Column(*make()))


@pytest.mark.parametrize(("make", "keys"), READABLE.values(), ids=READABLE.keys())
def test_a_producer_may_leave_out_parts_without_keys(make, keys):
    f, expected = Bloom(100, 1e-9), Bloom(100, 1e-9)
    expected.update(key for key in keys if key is not None)
    f.update(Column(*make()))
    assert f == expected and f.inserted == expected.inserted
    assert f.contains_many(Column(*make())).to_list() == [None if key is None else True for key in keys]


def test_a_column_that_was_taken_cannot_be_taken_again():
    column = Column(schema(b"u"), texts())
    f = Bloom(100, 0.01)
    f.update(column)
    with pytest.raises(umbel.ParameterError, match="released"):
        f.update(column)
    assert f.inserted == 2
