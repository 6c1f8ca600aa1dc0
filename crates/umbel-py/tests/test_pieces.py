"""One filter built by tasks that share no memory: the same bytes as `Bloom`, whatever the tasks have."""

import doctest
import io
import os
import pickle
import random

import pytest
from conftest import LINES, N, P, library, resident

import umbel
from umbel import Bloom, _umbel

PIECE_BYTES = (128 << 10) + 40
SECRET = bytes(range(16))
SEALED = bytes(range(32))
SHAPES = {
    "blocked": {},
    "small": {"n": 500},
    "many lines per key": {"p": 1e-6},
    "standard": {"kind": "standard"},
    "partitioned": {"kind": "partitioned"},
    "seed": {"seed": 7},
    "keyed": {"secret": SECRET},
    "sealed": {"secret": SEALED},
}
every = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def shaped(make, n=N, p=P, **options):
    return make(n, p, **options)


def collect(layout, *tasks, order=0):
    """The pieces of tasks, each of which has columns, in a random order."""
    pieces = []
    for columns in tasks:
        task = _umbel._Collector(pickle.loads(pickle.dumps(layout)))
        for column in columns:
            task.add(column)
            pieces += task.drain()
        pieces += task.drain(True)
        assert task.drain(last=True) == []
    assert all(range < layout.ranges and len(piece) <= PIECE_BYTES for range, piece in pieces)
    random.Random(order).shuffle(pieces)
    return pieces


def merge(layout, pieces):
    layout = pickle.loads(pickle.dumps(layout))
    merges = {}
    for part, piece in pieces:
        if part not in merges:
            merges[part] = _umbel._Merge(layout, part)
        merges[part].add(piece)
    return merges


def tasks():
    pa = library("pyarrow")
    text = pa.array([*LINES[::3], None, *LINES[::3]])
    return [text, text.cast(pa.large_string())], [], [LINES[1::3], iter(LINES[2::3])]


@every
def test_a_filter_in_pieces_has_the_bytes_of_one_built_at_once(shape, tmp_path):
    layout = shaped(_umbel._Layout, **shape)
    whole = shaped(Bloom, **shape)
    for columns in tasks():
        whole.update(*columns)
    pieces = collect(layout, *tasks(), order=1)
    merges = merge(layout, pieces)
    inserted = sum(merge.inserted for merge in merges.values())
    assert inserted == whole.stats()["count"]

    bits = [(range, merge.bits()) for range, merge in merges.items()]
    again = [piece for merge in merges.values() for piece in merge.pieces()]
    assert all(len(piece) <= PIECE_BYTES for piece in again)
    for made in (
        _umbel._assemble(layout, bits, inserted),
        _umbel._assemble_pieces(layout, again),
        _umbel._assemble_pieces(layout, (piece for _, piece in pieces)),
    ):
        assert type(made) is Bloom and bytes(made) == bytes(whole)

    for name, with_sums in ("read", False), ("sums", True):
        path = tmp_path / name
        partial = _umbel._create_file(layout, path)
        sums = [(range, merge.write(partial)) for range, merge in merges.items()]
        assert not path.exists()
        _umbel._finish_file(layout, path, partial, inserted, sums if with_sums else None)
        assert path.read_bytes() == bytes(whole) and layout.file_bytes == path.stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["read", "sums"]


def test_the_file_is_that_of_the_shell(made, tmp_path):
    layout = _umbel._Layout(N, P)
    merges = merge(layout, collect(layout, [LINES[::2]], [LINES[1::2]]))
    partial = _umbel._create_file(layout, str(tmp_path / "f.umbel"))
    sums = [(range, merge.write(partial)) for range, merge in merges.items()]
    _umbel._finish_file(layout, tmp_path / "f.umbel", partial, len(LINES), sums)
    assert (tmp_path / "f.umbel").read_bytes() == made.read_bytes()


@pytest.mark.parametrize("secret", [None, SECRET])
def test_shards_are_filters_of_their_own_with_a_manifest(secret, tmp_path):
    layout = _umbel._Layout(N, P, shards=5, secret=secret)
    assert (layout.ranges, layout.shards) == (5, 5)
    folders = []
    for order in range(2):
        folder = tmp_path / str(order)
        folder.mkdir()
        pieces = collect(layout, *tasks(), order=order)
        for part, of_part in merge(layout, pieces).items():
            of_part.save_shard(folder)
            with pytest.raises(umbel.ParameterError, match="shards"):
                of_part.bits()
        _umbel._seal(layout, folder)
        folders.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert folders[0] == folders[1] and len(folders[0]) == 6
    shards = [folders[0][f"shard-{shard:04}.umbel"] for shard in range(5)]
    assert sum(map(len, shards)) == layout.file_bytes
    shards = [Bloom.from_bytes(shard, secret=secret) for shard in shards]
    assert sum(shard.stats()["count"] for shard in shards) == len(LINES) + len(LINES[::3]) * 3
    assert all(any(line in shard for shard in shards) for line in LINES[::97])


def test_a_column_of_pieces_is_merged_without_python_objects():
    pa = library("pyarrow")
    layout = _umbel._Layout(10_000, 0.01)
    pieces = collect(layout, [LINES[:5000]], [LINES[5000:9000]])
    expected = merge(layout, pieces)[0].bits()
    column = [piece for _, piece in pieces]
    for column in (column, pa.array(column), pa.chunked_array([column, []]), pa.array(column, "large_binary")):
        merged = _umbel._Merge(layout, 0)
        merged.update(column)
        assert (merged.bits(), merged.inserted) == (expected, 9000)


def test_a_task_holds_a_bounded_number_of_entries():
    np = library("numpy")
    # The filter takes 120 MB, and the entries of all keys 160 MB.
    layout = _umbel._Layout(100_000_000, 0.01)
    task, sent, before = _umbel._Collector(layout), 0, resident()
    for start in range(0, 20_000_000, 100_000):
        task.add(np.arange(start, start + 100_000))
        sent += sum(len(piece) for _, piece in task.drain())
        assert resident() - before < 100 << 20
    sent += sum(len(piece) for _, piece in task.drain(True))
    assert 160_000_000 <= sent < 170_000_000


def test_layouts_are_small_and_pickled_with_their_secret():
    for options in SHAPES.values():
        layout = shaped(_umbel._Layout, **options)
        pickled = pickle.dumps(layout)
        again = pickle.loads(pickled)
        assert len(pickled) < 200 and pickle.dumps(again) == pickled
        assert (again.ranges, again.shards, again.file_bytes) == (layout.ranges, None, layout.file_bytes)
    # Tasks need the random secret of the layout.
    layout = _umbel._Layout(N, P, hash="keyed")
    [one, other] = (merge(layout, collect(layout, [LINES[:9]], order=i)) for i in range(2))
    assert {part: merge.bits() for part, merge in one.items()} == {
        part: merge.bits() for part, merge in other.items()
    }
    with pytest.raises(umbel.ParameterError):
        _umbel._restore_layout(b"layout")


def test_bad_parameters_have_the_errors_of_bloom():
    for arguments, options in [
        ((0, 0.01), {}),
        ((2**60, 0.01), {}),
        ((-1, 0.01), {}),
        ((1000, 0.0), {}),
        ((1000, 2), {}),
        ((1000, 0.01), {"kind": "cuckoo"}),
        ((1000, 0.01), {"hash": "md5"}),
        ((1000, 0.01), {"secret": b"short"}),
        ((1000, 0.01), {"secret": SECRET, "seed": 3}),
    ]:
        with pytest.raises(umbel.Error) as expected:
            Bloom(*arguments, **options)
        with pytest.raises(type(expected.value)) as found:
            _umbel._Layout(*arguments, **options)
        assert str(found.value) == str(expected.value)
    for shards in (0, 1025, -1, 2**70):
        with pytest.raises(umbel.ParameterError, match="shards"):
            _umbel._Layout(1000, 0.01, shards=shards)
    with pytest.raises(umbel.ParameterError, match="embed_secret"):
        _umbel._Layout(1000, 0.01, embed_secret=True)


def test_columns_that_are_not_keys_have_the_errors_of_update():
    pa = library("pyarrow")
    np = library("numpy")
    for column in ([1.5], pa.array([1.5]), np.zeros(3), pa.table({"a": [1], "b": [2]}), 7):
        with pytest.raises(Exception) as expected:
            Bloom(1000, 0.01).update(column)
        with pytest.raises(type(expected.value)) as found:
            _umbel._Collector(_umbel._Layout(1000, 0.01)).add(column)
        assert str(found.value) == str(expected.value)
    with pytest.raises(umbel.KeyTypeError):
        _umbel._Collector(_umbel._Layout(1000, 0.01)).add(Bloom(1000, 0.01))


def test_damaged_and_foreign_pieces_are_refused():
    layout = _umbel._Layout(N, P)
    [(part, piece)] = collect(layout, [["apple"]])
    merge = _umbel._Merge(layout, part)
    rng = random.Random(5)
    for _ in range(200):
        damaged = bytearray(piece)
        damaged[rng.randrange(len(piece))] ^= 1 << rng.randrange(8)
        with pytest.raises(umbel.ParameterError):
            merge.add(damaged)
    [(_, foreign)] = collect(_umbel._Layout(N, P, seed=1), [["apple"]])
    for wrong in (b"", piece[:-1], piece + b"12345678", foreign):
        with pytest.raises(umbel.ParameterError):
            merge.add(wrong)
    with pytest.raises(TypeError):
        merge.add("piece")
    with pytest.raises(umbel.ParameterError, match="range"):
        _umbel._Merge(layout, layout.ranges)
    assert merge.inserted == 0 and merge.bits() == bytes(len(merge.bits()))
    merge.add(piece)
    assert merge.inserted == 1


def test_files_are_written_only_where_they_belong(tmp_path):
    layout, shards = _umbel._Layout(N, P), _umbel._Layout(N, P, shards=2)
    merge = _umbel._Merge(layout, 0)
    with pytest.raises(umbel.MissingFileError):
        merge.write(tmp_path / "missing")
    with pytest.raises(umbel.MissingFileError):
        _umbel._create_file(layout, tmp_path / "missing" / "f.umbel")
    with pytest.raises(umbel.MissingFileError):
        _umbel._Merge(shards, 0).save_shard(tmp_path / "missing")
    with pytest.raises(umbel.DirectoryError):
        _umbel._create_file(layout, tmp_path)
    with pytest.raises(umbel.ParameterError, match="shards"):
        merge.save_shard(tmp_path)
    with pytest.raises(umbel.ParameterError, match="shards"):
        _umbel._create_file(shards, tmp_path / "f.umbel")
    with pytest.raises(umbel.ParameterError, match="shards"):
        _umbel._seal(layout, tmp_path)
    with pytest.raises(umbel.MissingFileError, match="shard-0000"):
        _umbel._seal(shards, tmp_path)
    assert os.listdir(tmp_path) == []
    other = _umbel._create_file(_umbel._Layout(2 * N, P), tmp_path / "other.umbel")
    with pytest.raises(umbel.FormatError):
        merge.write(other)


def test_the_examples_of_the_docstrings_run():
    for value in (_umbel._Layout, _umbel._Collector, _umbel._Merge):
        test = doctest.DocTestParser().get_doctest(value.__doc__, {"umbel": umbel}, value.__name__, None, 0)
        report = io.StringIO()
        result = doctest.DocTestRunner().run(test, out=report.write)
        assert result.attempted > 1 and result.failed == 0, report.getvalue()
