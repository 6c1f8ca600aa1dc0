"""Filters of other libraries: golden files of the originals, keys of every type, and Parquet files."""

import copy
import gzip
import io
import pickle
from pathlib import Path

import pytest
from conftest import ROOT, library

import umbel
from umbel import Bloom, Foreign

GOLDEN = ROOT / "crates/umbel/tests/golden_foreign"
FORMATS = ["datasketches", "dcso", "guava", "redisbloom", "sbbf", "spark", "spark2"]
RECOGNISED = {"datasketches", "dcso", "spark", "spark2"}
SEED = 9001


def lines(name):
    return GOLDEN.joinpath(name).read_bytes().split(b"\n")[:-1]


def golden():
    """The golden files, with their format and funnel."""
    for path in sorted(GOLDEN.iterdir()):
        format = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
        if format in FORMATS:
            funnel = path.name.replace("-", ".").split(".")[0]
            yield pytest.param(path, format, funnel, id=path.name)


every_file = pytest.mark.parametrize("path, format, funnel", list(golden()))


def items(funnel, part):
    """The keys of a golden file as objects."""
    if funnel in ("int", "long"):
        return [int(line) for line in lines(f"{funnel}.{part}")]
    if funnel == "bytes":
        return lines(f"bytes.{part}")
    return [line.decode() for line in lines(f"{funnel}.{part}")]


def expected(path, funnel):
    accepted = set(lines(f"{path.name}.yes"))
    return [line in accepted for line in lines(f"{funnel}.questions")]


@every_file
def test_golden_files_answer_as_their_originals_do(path, format, funnel):
    known = "utf8" if funnel == "empty" else funnel
    f = umbel.load(path, format=format, funnel=known)
    questions, answers = items(funnel, "questions"), expected(path, funnel)
    assert f.contains_many(questions) == answers
    assert [item in f for item in questions] == answers
    assert f.contains_many(iter(questions)) == answers
    assert (f.format, f.funnel) == (f.format if format == "spark" else format, known)
    pa = library("pyarrow")
    types = {"int": pa.int32(), "long": pa.int64(), "bytes": pa.binary()}
    for chosen in {types.get(funnel, pa.string()), types.get(funnel, pa.string_view())}:
        column = pa.array([*questions, None], chosen)
        assert f.contains_many(column).to_list() == [*answers, None]
        assert f.contains_many(column.dictionary_encode()).to_list() == [*answers, None]
        assert f.contains_many(pa.array(questions, chosen)).to_list() == answers
    if funnel in ("int", "long"):
        np = library("numpy")
        assert f.contains_many(np.array(questions, f"int{32 if funnel == 'int' else 64}")).tolist() == answers


@every_file
def test_golden_files_are_written_byte_for_byte(path, format, funnel, tmp_path):
    known = "utf8" if funnel == "empty" else funnel
    plain = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    f = umbel.load(path, format=format, funnel=known)
    stream = io.BytesIO()
    f.save(tmp_path / "copy")
    f.save(stream)
    assert (tmp_path / "copy").read_bytes() == stream.getvalue() == bytes(f) == f.to_bytes() == plain
    copies = [
        umbel.load(io.BytesIO(plain), format=format, funnel=known), Foreign.from_bytes(plain, format=format, funnel=known),
        f.copy(), copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f)),
    ]  # fmt: skip
    if path.suffix != ".gz":
        copies.append(umbel.open(path, format=format, funnel=known).copy())
    questions = items(funnel, "questions")
    for other in copies:
        assert bytes(other) == plain and (other.format, other.funnel) == (f.format, f.funnel)
        assert other.contains_many(questions) == f.contains_many(questions)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_items_make_the_golden_file(format):
    funnel = {"guava": "unencoded"}.get(format, "utf8")
    seed = SEED if format == "datasketches" else None
    members = items(funnel, "members")
    # The chain of RedisBloom was reserved for a fifth of the items.
    n = 16 if format == "redisbloom" else 80
    f, g = (Foreign(format, n, 0.1, funnel=funnel, seed=seed) for _ in range(2))
    f.update(members[:7], iter(members[7:20]), library("pyarrow").array(members[20:]))
    new = [g.add(item) for item in members]
    assert new[1] and not g.add(members[1])
    names = {"sbbf": "utf8-pyarrow.sbbf", "redisbloom": "utf8-chain.redisbloom"}
    name = names.get(format, f"{funnel}.{format}")
    assert bytes(f) == bytes(g) == GOLDEN.joinpath(name).read_bytes()


@every_file
def test_files_are_recognised_without_their_format(path, format, funnel):
    if funnel not in ("utf8", "bytes") or format not in RECOGNISED:
        return
    f = umbel.load(path)
    assert isinstance(f, Foreign) and f.funnel is None
    # Without a funnel, the empty key is the empty text, which DataSketches does not insert.
    questions, answers = items(funnel, "questions"), expected(path, funnel)
    start = 1 if questions[0] == b"" and format == "datasketches" else 0
    assert f.contains_many(questions[start:]) == answers[start:]
    assert isinstance(umbel.load(io.BytesIO(path.read_bytes())), Foreign)


def test_items_of_each_type_need_no_funnel_where_it_is_clear():
    for format in ["spark", "spark2", "datasketches"]:
        f, g = Foreign(format, 100, 0.01), Foreign(format, 100, 0.01, funnel="long")
        f.update([5, -1, 2**63 - 1])
        g.update([5, -1, 2**63 - 1])
        assert bytes(f) == bytes(g) and bytes(f) == bytes(Foreign.from_bytes(bytes(g)))
    for format in ["guava", "sbbf"]:
        f = Foreign(format, 100, 0.01)
        with pytest.raises(umbel.ParameterError, match='"long" or "int"'):
            f.add(5)
        with pytest.raises(umbel.ParameterError, match='"long" or "int"'):
            f.contains_many(library("numpy").arange(3))
    for format in ["dcso", "redisbloom"]:
        with pytest.raises(umbel.KeyTypeError, match=r"pass str\(item\)"):
            Foreign(format, 100, 0.01).add(5)
    for format in FORMATS:
        f, g = Foreign(format, 100, 0.01), Foreign(format, 100, 0.01, funnel="bytes")
        f.update(["äpfel", "pear", b"plum", bytearray(b"fig")])
        g.update(["äpfel".encode(), b"pear", "plum", memoryview(b"fig")])
        assert bytes(f) == bytes(g)


@pytest.mark.parametrize(
    "funnel, item, error, words",
    [
        ("long", "5", umbel.KeyTypeError, "its keys are integers"),
        ("utf8", 5, umbel.KeyTypeError, "its keys are str or bytes"),
        ("utf8", 1.5, umbel.KeyTypeError, "str, bytes and int"),
        ("utf8", None, umbel.KeyTypeError, "str, bytes and int"),
        ("long", 2**64, umbel.ParameterError, "64 bits"),
        ("long", -(2**63) - 1, umbel.ParameterError, "64 bits"),
        ("int", 2**32, umbel.ParameterError, "32 bits"),
        ("int", 2**300, umbel.ParameterError, "64 bits"),
        ("unencoded", b"\xff", umbel.ParameterError, "UTF-8"),
    ],
)
def test_other_items_are_refused_and_those_before_are_added(funnel, item, error, words):
    good = 7 if funnel in ("long", "int") else "seven"
    f, g = (Foreign("guava", 100, 0.01, funnel=funnel) for _ in range(2))
    g.add(good)
    for attempt in (lambda: f.add(item), lambda: item in f, lambda: f.why(item), lambda: f.update([good, item, good])):
        with pytest.raises(error, match=words):
            attempt()
    assert bytes(f) == bytes(g)


def test_columns_of_another_type_or_out_of_range_are_refused():
    pa, np = library("pyarrow"), library("numpy")
    f = Foreign("guava", 100, 0.01, funnel="int")
    for column in (pa.array(["a"]), pa.array([2**40]), np.array([-(2**31) - 1]), pa.array([1.5])):
        with pytest.raises(umbel.Error):
            f.update(column)
    f.update(pa.array([3, None], pa.int64()), np.array([4], np.int8))
    assert f.contains_many([3, 4]) == [True, True]
    g = Foreign("spark", 100, 0.01, funnel="int")
    with pytest.raises(umbel.ParameterError, match="32 bits"):
        g.add(2**31)


def test_stats_and_why_have_the_bits_of_the_format():
    f = umbel.load(GOLDEN / "utf8.dcso")
    stats = f.stats()
    assert (stats["format"], stats["bits"], stats["hashes"], stats["capacity"]) == ("dcso", 383, 4, 80)
    assert stats["fill"] == sum(bin(byte).count("1") for byte in bytes(f)[48:]) / 383
    member, stranger = f.why("abc"), f.why("certainly not there")
    assert member["member"] and member["first_zero"] is None
    assert [probe["value"] for probe in member["probes"]] == [1] * 4
    for probe in stranger["probes"]:
        assert probe["value"] == bytes(f)[48 + probe["bit"] // 8] >> probe["bit"] % 8 & 1
    assert stranger["member"] == ("certainly not there" in f)


def test_polars_looks_up_a_column():
    pl, isin = library("polars"), library("umbel.polars").isin
    path = GOLDEN / "long.guava"
    f = umbel.load(path, format="guava", funnel="long")
    questions, answers = items("long", "questions"), expected(path, "long")
    frame = pl.DataFrame({"id": [*questions, None]})
    assert frame.select(isin(pl.col("id"), f))["id"].to_list() == [*answers, None]


def test_a_mapped_file_is_read_only(tmp_path):
    f = Foreign("spark", 100, 0.01)
    f.add("apple")
    f.save(tmp_path / "f.spark")
    g = umbel.open(tmp_path / "f.spark")
    assert g.read_only and not f.read_only and "apple" in g
    for change in (lambda: g.add("pear"), lambda: g.update(["pear"])):
        with pytest.raises(umbel.UnsupportedError, match="umbel.load"):
            change()
    assert g.copy().add("pear")


def test_a_filter_is_written_as_another_format_only_if_its_bits_allow_it(tmp_path):
    path = tmp_path / "f"
    for f in (Bloom(100, 0.01), Foreign("guava", 100, 0.01), Foreign("spark2", 100, 0.01)):
        with pytest.raises(umbel.Error, match="hash"):
            f.save(path, format="spark")
        with pytest.raises(umbel.ParameterError, match="one of"):
            f.save(path, format="csv")
        assert not path.exists()
    f = Foreign("spark", 100, 0.01)
    f.add("apple")
    f.save(path, format="spark")
    assert path.read_bytes() == bytes(f)


def test_damaged_and_hostile_files_are_refused(tmp_path):
    path = tmp_path / "f"
    for format in FORMATS:
        f = Foreign(format, 1000, 0.01)
        f.update(map(str, range(1000)))
        whole = bytes(f)
        for length in (0, 1, 5, 11, len(whole) - 1):
            path.write_bytes(whole[:length])
            for attempt in (umbel.load, umbel.open):
                with pytest.raises(umbel.Error):
                    attempt(path, format=format, funnel="utf8")
    path.write_bytes(b"\x01\x05\x7f\xff\xff\xff")
    with pytest.raises(umbel.FormatError):
        umbel.load(path, format="guava", funnel="utf8")
    with pytest.raises(umbel.ParameterError, match="one of"):
        umbel.load(path, format="bitmap")
    with pytest.raises(umbel.MissingFileError):
        umbel.load(tmp_path / "none", format="guava", funnel="utf8")
    Foreign("guava", 10, 0.01).save(path)
    with pytest.raises(umbel.ParameterError, match="secret"):
        umbel.load(path, format="guava", funnel="utf8", secret=bytes(16))
    f = Bloom(10, 0.01)
    f.save(path)
    with pytest.raises(umbel.ParameterError, match="funnel"):
        umbel.load(path, funnel="utf8")


def filter_of(path, column):
    """The header and the bit set of a column's filter in the first row group of a Parquet file."""
    pq = library("pyarrow.parquet")
    chunk = pq.read_metadata(path).row_group(0).column(column).to_dict()
    start = chunk["bloom_filter_offset"]
    return Path(path).read_bytes()[start : start + chunk["bloom_filter_length"]]


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_filters_in_parquet_files_are_those_of_pyarrow_and_duckdb(writer, tmp_path):
    pa, pq, duckdb = library("pyarrow"), library("pyarrow.parquet"), library("duckdb")
    path, n = tmp_path / "f.parquet", 3000
    columns = {
        "utf8": pa.array([f"käse {i}" for i in range(n)]),
        "bytes": pa.array([b"\xff" * (i % 9) + str(i).encode() for i in range(n)]),
        "long": pa.array([i**3 * (-1) ** i for i in range(n)], pa.int64()),
        "int": pa.array([i * 7919 - 10**7 for i in range(n)], pa.int32()),
    }
    if writer == "pyarrow":
        options = {name: {"ndv": n, "fpp": 0.1} for name in columns}
        pq.write_table(pa.table(columns), path, bloom_filter_options=options)
    else:
        # DuckDB adds filters to columns that it writes with a dictionary: of values that repeat.
        db = duckdb.connect(config={"threads": 1})
        db.register("columns", pa.concat_tables([pa.table(columns)] * 10))
        db.sql(f"copy columns to '{path}' (format parquet, bloom_filter_false_positive_ratio 0.1)")
    for index, (funnel, column) in enumerate(columns.items()):
        raw = filter_of(path, index)
        f = Foreign.from_bytes(raw, format="sbbf", funnel=funnel)
        assert bytes(f) == raw
        assert all(f.contains_many(column).to_list())
        g = Foreign.from_bytes(raw[:-f.stats()["bits"] // 8] + bytes(f.stats()["bits"] // 8), format="sbbf", funnel=funnel)
        assert not any(g.contains_many(column).to_list())
        g.update(column)
        assert bytes(g) == raw
