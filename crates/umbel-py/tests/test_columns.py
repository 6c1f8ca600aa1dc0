"""Columns of numpy, Arrow, polars, pandas and DuckDB: the same file as the shell makes of the lines."""

import array

import pytest
from conftest import LINES, N, P, library

import umbel
from umbel import Bloom

GAPS = [None, *LINES[:99], None, None, *LINES[99:], None]
INTEGERS = [*range(-5000, 5000, 3), 2**62, -(2**62)]
ARROW_TEXTS = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]
ARROW_TYPES = [*ARROW_TEXTS, "dictionary"]


def arrow(values, name):
    pa = library("pyarrow")
    column = pa.array(values, pa.string())
    if name == "dictionary":
        return column.dictionary_encode()
    return column.cast(getattr(pa, name)())


def polars_categorical():
    pl = library("polars")
    return pl.Series(GAPS, dtype=pl.Categorical)


# Each makes a column of LINES.
TEXTS = {
    "list": lambda: LINES,
    "tuple": lambda: tuple(LINES),
    "iterator": lambda: iter(LINES),
    "dict": lambda: dict.fromkeys(LINES),
    "bytes": lambda: [line.encode() for line in LINES],
    "numpy object": lambda: library("numpy").array(LINES, object),
    "numpy str": lambda: library("numpy").array(LINES),
    "numpy StringDType": lambda: library("numpy").array(
        LINES, library("numpy").dtypes.StringDType()
    ),
    "polars": lambda: library("polars").Series(LINES),
    "polars nulls": lambda: library("polars").Series(GAPS),
    "polars slice": lambda: library("polars").Series(["no", *GAPS])[1:],
    "polars chunks": lambda: library("polars").concat(
        [library("polars").Series(part) for part in (GAPS[:70], GAPS[70:])], rechunk=False
    ),
    "polars categorical": polars_categorical,
    "pandas": lambda: library("pandas").Series(LINES),
    "pandas object": lambda: library("pandas").Series(LINES, dtype=object),
    "pandas string": lambda: library("pandas").Series(GAPS, dtype="string"),
    "pandas category": lambda: library("pandas").Series(GAPS, dtype="category"),
    "pandas filtered": lambda: library("pandas").Series(["no", *LINES])[1:],
    "pandas index": lambda: library("pandas").Index(LINES),
}
for _name in ARROW_TYPES:
    TEXTS |= {
        f"arrow {_name}": lambda name=_name: arrow(LINES, name),
        f"arrow {_name} nulls": lambda name=_name: arrow(GAPS, name),
        f"arrow {_name} slice": lambda name=_name: arrow(["no", None, *GAPS, "never"], name)[2:-1],
        f"arrow {_name} chunks": lambda name=_name: library("pyarrow").chunked_array(
            [arrow(GAPS, name)[:70], arrow(GAPS, name)[:0], arrow(GAPS, name)[70:]]
        ),
    }


def bloom_of(column):
    f = Bloom(N, P)
    f.update(column)
    return bytes(f)


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS.keys())
def test_a_column_of_text_gives_the_file_of_the_shell(made, make):
    assert bloom_of(make()) == made.read_bytes()


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS.keys())
def test_contains_many_answers_in_the_form_of_the_column(make):
    f = Bloom(N, P)
    f.update(LINES[::2])
    column = make()
    got = f.contains_many(column)
    with_gaps = [None if line is None else line in f for line in GAPS]
    without = [line in f for line in LINES]
    if hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        assert type(got) is umbel.Mask
        pa = library("pyarrow")
        assert pa.array(got).type == pa.bool_()
        got = pa.array(got).to_pylist()
        assert got in (with_gaps, without)
    elif hasattr(column, "__array__"):
        np = library("numpy")
        assert type(got) is np.ndarray and got.dtype == np.bool_
        assert got.tolist() == without
    else:
        assert type(got) is list and got == without


def test_a_column_of_duckdb_gives_the_file_of_the_shell(made):
    duckdb = library("duckdb")
    library("pyarrow")
    with duckdb.connect() as connection:
        connection.execute("create table t (line varchar)")
        connection.executemany("insert into t values (?)", [["a"], ["é"], [None]])
        relation = connection.table("t")
        column = relation.to_arrow_table().column("line")
        f, g = Bloom(10, 0.01), Bloom(10, 0.01)
        f.update(column)
        g.update(["a", "é"])
        assert bytes(f) == bytes(g)


def test_a_table_of_one_column_is_that_column():
    """Some libraries, such as DuckDB, have nothing smaller than a table."""
    pa, pl, duckdb = map(library, ("pyarrow", "polars", "duckdb"))
    table = pa.table({"id": ["a", None, "b"]})
    frames = [table, table.to_batches()[0], pl.DataFrame({"id": ["a", None, "b"]})]
    frames += [duckdb.sql("select * from (values ('a'), (null), ('b')) as rows(id)")]
    for frame in frames:
        assert bloom_of(frame) == bloom_of(["a", "b"])
        assert Bloom(10, 0.01).contains_many(frame).to_list() == [False, None, False]


def test_a_table_of_several_columns_is_refused_with_a_remedy():
    pa, pl, duckdb = map(library, ("pyarrow", "polars", "duckdb"))
    both = {"id": ["a"], "name": ["b"]}
    frames = [pa.table(both), pl.DataFrame(both), duckdb.sql("select 'a' as id, 'b' as name")]
    for frame in frames:
        f = Bloom(10, 0.01)
        with pytest.raises(umbel.KeyTypeError, match="one of its columns"):
            f.update(frame)
        assert not f


INTEGER_COLUMNS = {
    "list": list,
    "array": lambda ints: array.array("q", ints),
    "memoryview": lambda ints: memoryview(array.array("q", ints)),
    "numpy": lambda ints: library("numpy").array(ints),
    "numpy object": lambda ints: library("numpy").array(ints, object),
    "numpy big-endian": lambda ints: library("numpy").array(ints, ">i8"),
    "numpy unsigned": lambda ints: library("numpy").array(ints).view("u8"),
    "numpy strided": lambda ints: library("numpy").repeat(ints, 3)[::3],
    "numpy big-endian strided": lambda ints: library("numpy").repeat(ints, 3).astype(">i8")[1::3],
    "numpy reversed": lambda ints: library("numpy").array(ints[::-1])[::-1],
    "numpy column of a matrix": lambda ints: library("numpy").array([ints, ints]).T[:, 1],
    "numpy field of records": lambda ints: library("numpy").array(
        [(1, i) for i in ints], "u1,<i8"
    )["f1"],
    "numpy read-only": lambda ints: library("numpy").frombuffer(
        b"".join(i.to_bytes(8, "little", signed=True) for i in ints), "<i8"
    ),
    "arrow": lambda ints: library("pyarrow").array(ints),
    "arrow nulls": lambda ints: library("pyarrow").array([None, *ints, None]),
    "arrow slice": lambda ints: library("pyarrow").array([5, *ints, 7])[1:-1],
    "arrow dictionary": lambda ints: library("pyarrow").array(ints).dictionary_encode(),
    "polars": lambda ints: library("polars").Series(ints),
    "pandas": lambda ints: library("pandas").Series(ints),
    "pandas Int64": lambda ints: library("pandas").Series([None, *ints], dtype="Int64"),
}


@pytest.mark.parametrize("make", INTEGER_COLUMNS.values(), ids=INTEGER_COLUMNS.keys())
def test_a_column_of_integers_gives_the_file_of_a_list(make):
    assert bloom_of(make(INTEGERS)) == bloom_of(INTEGERS)


def test_integers_are_eight_bytes_in_the_shell(shell, tmp_path):
    lines = "".join(i.to_bytes(8, "little", signed=True).hex() + "\n" for i in INTEGERS)
    shell("build", "--hex", "-n", N, "-p", P, "-o", tmp_path / "ints", stdin=lines.encode())
    assert bloom_of(INTEGERS) == (tmp_path / "ints").read_bytes()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_integers_of_every_width_sign_and_byte_order(order, kind):
    np = library("numpy")
    info = None if kind == "?" else np.iinfo(kind)
    values = [0, 1] if info is None else [info.min, 0, 1, 77, info.max]
    column = np.array(values, kind if kind == "?" else order + kind)
    assert bloom_of(column) == bloom_of(values)
    unaligned = np.frombuffer(b"x" + column.tobytes(), column.dtype, offset=1)
    assert bloom_of(unaligned) == bloom_of(values)
    assert bloom_of(np.concatenate([column] * 9000)[::9000]) == bloom_of(
        np.concatenate([column] * 9000)[::9000].tolist()
    )


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_arrays_of_the_standard_library(code):
    values = [0, 1, 100]
    assert bloom_of(array.array(code, values)) == bloom_of(values)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["int", "uint"])
def test_arrow_integers_of_every_width_and_sign(width, sign):
    pa = library("pyarrow")
    values = [0, 1, 100, -3 if sign == "int" else 3]
    assert bloom_of(pa.array([*values, None], getattr(pa, f"{sign}{width}")())) == bloom_of(values)


def test_booleans_are_the_integers_zero_and_one():
    pa, np = library("pyarrow"), library("numpy")
    for column in (pa.array([True, None, False]), np.array([True, False]), [True, False]):
        assert bloom_of(column) == bloom_of([1, 0])


def test_fixed_size_binary_is_its_bytes():
    pa = library("pyarrow")
    column = pa.array([b"abcd", None, b"\0\0\0\0"], pa.binary(4))
    assert bloom_of(column) == bloom_of([b"abcd", bytes(4)])
    assert bloom_of(column[1:]) == bloom_of([bytes(4)])


def test_a_dictionary_may_have_null_values_and_unused_ones():
    pa = library("pyarrow")
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 0], pa.int8()), pa.array(["a", None, "b", "unused"])
    )
    assert bloom_of(column) == bloom_of(["a", "b", "a"])
    f = Bloom(10, 0.01)
    f.update(column)
    assert f.inserted == 3
    assert "unused" not in f
    assert f.contains_many(column).to_list() == [True, None, None, True, True]


@pytest.mark.parametrize("index", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_a_dictionary_may_have_indexes_of_every_width(index):
    pa = library("pyarrow")
    column = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], getattr(pa, index)()), pa.array(["a", "b"], pa.string_view())
    )
    assert bloom_of(column) == bloom_of(["b", "a"])


def test_a_dictionary_with_an_index_out_of_range_is_refused():
    pa = library("pyarrow")
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, 7]), pa.array(["a", "b"]), safe=False
    )
    with pytest.raises(umbel.Error, match="dictionary"):
        Bloom(10, 0.01).update(column)


def from_buffers(kind, rows, *buffers):
    """An array of pyarrow with these buffers, which it does not check: numbers or bytes."""
    pa = library("pyarrow")
    raw = [None, *(pa.py_buffer(b if isinstance(b, bytes) else array.array(*b).tobytes()) for b in buffers)]
    return pa.Array.from_buffers(getattr(pa, kind)(), rows, raw)


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "large_binary"])
@pytest.mark.parametrize("offsets", [[0, 5, 2, 6], [0, -1, 3, 6], [0, 9, 9, 6], [5, 1, 2, 6]])
def test_damaged_offsets_are_refused(kind, offsets):
    column = from_buffers(kind, 3, ("q" if "large" in kind else "i", offsets), b"abcdef")
    for make in (lambda: Bloom(10, 0.01), lambda: umbel.TopK(2)):
        f = make()
        with pytest.raises(umbel.ParameterError, match="offsets|Arrow"):
            f.update(column)
    with pytest.raises(umbel.ParameterError):
        Bloom(10, 0.01).contains_many(column)


def test_views_that_leave_their_buffers_are_refused():
    def view(length, buffer, offset):
        return array.array("I", [length, 0x64636261, buffer, offset]).tobytes()

    good = view(20, 0, 6)
    assert bloom_of(from_buffers("string_view", 1, good, b"x" * 26)) == bloom_of(["x" * 20])
    for damaged in (view(20, 0, 7), view(20, 1, 0), view(2**32 - 1, 0, 0), view(20, 0, 2**32 - 1)):
        column = from_buffers("string_view", 2, good + damaged, b"x" * 26)
        for f in (Bloom(10, 0.01), umbel.TopK(2)):
            with pytest.raises(umbel.ParameterError, match="offsets|Arrow"):
                f.update(column)


def test_a_stream_that_fails_keeps_the_chunks_before():
    pa = library("pyarrow")

    def batches():
        yield pa.record_batch({"id": ["a", "b"]})
        yield pa.record_batch({"id": ["c", None]})
        raise OSError("the disk is gone")

    f = Bloom(1000, 1e-9)
    stream = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.string()}), batches())
    with pytest.raises(umbel.Error, match="the disk is gone"):
        f.update(stream)
    assert f.contains_many(["a", "b", "c", "d"]) == [True, True, True, False] and f.inserted == 3


def test_a_column_of_nulls_has_no_keys():
    pa = library("pyarrow")
    f = Bloom(10, 0.01)
    f.update(pa.nulls(5), pa.array([None, None], pa.string()))
    assert not f and f.inserted == 0
    assert f.contains_many(pa.nulls(2)).to_list() == [None, None]


def test_a_polars_column_of_nulls_without_a_type_has_no_keys():
    pl = library("polars")
    for column in (pl.Series([None, None]), pl.DataFrame({"id": [None, None]})):
        f = Bloom(10, 0.01)
        f.update(column)
        assert not f and f.inserted == 0
        assert f.contains_many(column).to_list() == [None, None]


def test_a_polars_column_of_objects_is_refused_with_a_remedy():
    """Its Arrow form is the addresses of the objects."""
    pl = library("polars")
    column = pl.Series("id", ["a", 1], dtype=pl.Object)
    f = Bloom(10, 0.01)
    for wrong in (column, pl.DataFrame([column])):
        for use in (f.update, f.contains_many):
            with pytest.raises(umbel.KeyTypeError, match="to_list"):
                use(wrong)
    assert not f
    f.update(column.to_list())
    assert "a" in f and 1 in f


def test_an_empty_column_has_no_keys():
    pa, np, pl, pd = map(library, ("pyarrow", "numpy", "polars", "pandas"))
    empty = [
        [], (), {}, iter([]), array.array("q"), np.array([], "u8"), np.array([], object),
        pa.array([], pa.string()), pa.chunked_array([], pa.string()), pl.Series([], dtype=pl.String),
        pd.Series([], dtype="str"), pa.array([], pa.string()).dictionary_encode(),
    ]  # fmt: skip
    for column in empty:
        f = Bloom(10, 0.01)
        assert len(f.contains_many(column)) == 0
        f.update(column)
        assert not f and f.inserted == 0


def test_nulls_are_not_counted_as_insertions():
    f = Bloom(N, P)
    f.update(library("pyarrow").array(GAPS))
    assert f.inserted == len(LINES)


def test_columns_that_are_not_keys_are_refused():
    np, pa, pl, pd = map(library, ("numpy", "pyarrow", "polars", "pandas"))
    columns = [
        np.ones(3), np.ones(3, "f4"), np.ones(3, "c16"), np.array(["2020-01-01"], "M8[D]"),
        np.array([1], "m8[s]"), np.zeros(3, "i4,i4"), np.zeros(3, "V5"), array.array("d", [1.0]),
        pa.array([1.5]), pa.array([{"a": 1, "b": 2}]), pa.array([[1]]), pa.array([1], pa.timestamp("s")),
        pa.array([1], pa.date32()), pa.array([1.5]).dictionary_encode(),
        pl.Series([1.5]), pl.Series([[1]]), pl.Series([1], dtype=pl.Int128), pd.Series([1.5]),
        pd.Series(["2020-01-01"], dtype="datetime64[ns]"),
    ]  # fmt: skip
    for column in columns:
        f = Bloom(10, 0.01)
        for use in (f.update, f.contains_many):
            with pytest.raises(TypeError) as caught:
                use(column)
            assert isinstance(caught.value, umbel.KeyTypeError), column
            assert len(str(caught.value)) > 20
        assert not f


def test_a_matrix_and_a_scalar_array_are_refused():
    np = library("numpy")
    for column in (np.ones((3, 2), int), np.array(5), np.ones((1, 1, 1), int)):
        with pytest.raises(ValueError, match="dimension"):
            Bloom(10, 0.01).update(column)
    with pytest.raises(ValueError, match="dimension"):
        Bloom(10, 0.01).update(memoryview(b"abcd").cast("B", (2, 2)))


def test_a_masked_array_is_refused_with_a_remedy():
    np = library("numpy")
    with pytest.raises(umbel.KeyTypeError, match="compressed"):
        Bloom(10, 0.01).update(np.ma.array([1, 2], mask=[0, 1]))


def test_bytes_are_refused_as_an_iterable_of_keys_or_are_integers():
    """`bytes` is a sequence of integers, as for `set`."""
    assert bloom_of(b"ab") == bloom_of([97, 98])
    assert bloom_of(bytearray(b"ab")) == bloom_of([97, 98])


def test_a_text_is_an_iterable_of_characters():
    """As for `set.update`."""
    assert bloom_of("abc") == bloom_of(["a", "b", "c"])
    assert bloom_of(library("numpy").str_("abc")) == bloom_of(["a", "b", "c"])


def test_a_buffer_of_characters_is_not_a_column_of_integers():
    with pytest.raises(umbel.KeyTypeError, match="format"):
        Bloom(10, 0.01).update(memoryview(b"ab").cast("c"))


def test_every_byte_but_zero_is_true():
    np = library("numpy")
    column = np.array([0, 1, 2, 255], "u1").view("?")
    assert bloom_of(column) == bloom_of([False, True, True, True])


def test_a_column_without_memory_of_its_own_may_be_too_long():
    """Its rows are one integer."""
    np = library("numpy")
    column = np.broadcast_to(np.int64(5), 2**50)
    for use in (Bloom(10, 0.01).contains_many, lambda column: umbel.Fuse(column, 0.01)):
        with pytest.raises(umbel.OutOfMemoryError, match="parts"):
            use(column)


def test_a_numpy_array_of_objects_skips_nothing():
    np = library("numpy")
    f = Bloom(10, 0.01)
    with pytest.raises(umbel.KeyTypeError, match="None"):
        f.update(np.array(["a", None, "b"], object))
    assert "a" in f and "b" not in f


def test_the_mask_is_an_arrow_array_that_every_library_reads():
    pa, pl, np = map(library, ("pyarrow", "polars", "numpy"))
    f = Bloom(1000, 1e-9)
    f.update(["a", "c"])
    mask = f.contains_many(pa.array(["a", None, "b", "c"]))
    assert pa.array(mask).to_pylist() == [True, None, False, True]
    assert pl.Series(mask).to_list() == [True, None, False, True]
    assert np.asarray(mask).tolist() == [True, False, False, True]
    assert np.asarray(mask, dtype="u1").tolist() == [1, 0, 0, 1]
    with pytest.raises(ValueError, match="copied"):
        np.asarray(mask, copy=False)
    assert mask.to_list() == list(mask) == [True, None, False, True]
    assert (len(mask), mask[0], mask[1], mask[-1], mask[1:3]) == (4, True, None, True, [None, False])
    assert repr(mask) == "<umbel.Mask of 4 answers, 2 true>"
    for index in (4, -5, 2**70):
        with pytest.raises(IndexError):
            mask[index]
    assert pa.array(["a", "x", "b", "c"]).filter(pa.array(mask)).to_pylist() == ["a", "c"]


def test_the_mask_outlives_the_filter():
    pa = library("pyarrow")
    f = Bloom(1000, 1e-9)
    f.update(["a"])
    mask = pa.array(f.contains_many(pa.array(["a", "b"] * 1000)))
    del f
    assert mask.to_pylist() == [True, False] * 1000


def test_the_chunks_of_a_column_give_one_mask():
    pa = library("pyarrow")
    f = Bloom(1000, 1e-9)
    f.update(["a"])
    chunks = pa.chunked_array([["a", "b"], [], [None], ["a"]], pa.string())
    assert f.contains_many(chunks).to_list() == [True, False, None, True]
    chunks = pa.chunked_array([[None], ["a", "b"]], pa.string())
    assert f.contains_many(chunks).to_list() == [None, True, False]


def test_an_exception_of_the_producer_reaches_the_caller():
    class Column:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ZeroDivisionError("of mine")

    with pytest.raises(ZeroDivisionError, match="of mine"):
        Bloom(10, 0.01).update(Column())


def test_every_class_takes_columns():
    pa, np = library("pyarrow"), library("numpy")
    text, ints = pa.array(["a", None, "b", "a"]), np.array([1, 2, 1], "u2")
    for make in (
        lambda: umbel.Cuckoo(10, 0.01), lambda: umbel.Counting(10, 0.01),
        lambda: umbel.Quotient(10, 0.01), lambda: umbel.Scalable(10, 0.01),
        lambda: umbel.Aging(10, 0.01), lambda: umbel.Count(10), lambda: umbel.Distinct(),
        lambda: umbel.CountMin(), lambda: umbel.TopK(3), lambda: umbel.Frequent(3),
    ):  # fmt: skip
        ours, plain = make(), make()
        ours.update(text, ints)
        plain.update(["a", "b", "a"], [1, 2, 1])
        assert bytes(ours) == bytes(plain), ours
    assert bytes(umbel.Fuse(text, 0.01)) == bytes(umbel.Fuse(["a", "b", "a"], 0.01))
    assert umbel.Map(pa.array(["a", "b"]), [1, 2])["b"] == 2
    assert umbel.Map(ints[:2], [1, 2])[2] == 2


def test_a_large_column_takes_every_chunk():
    """More than one of the chunks that are hashed at a time, and a part of one."""
    np = library("numpy")
    ints = np.arange(100_000, dtype="u4")
    f = Bloom(100_000, 0.01)
    f.update(ints)
    assert f.inserted == 100_000 and f.contains_many(ints).all()
    assert bytes(f) == bytes(_filled(range(100_000)))


def _filled(keys):
    f = Bloom(100_000, 0.01)
    f.update(keys)
    return f
