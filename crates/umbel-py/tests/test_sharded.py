"""Filters in shards: the same answers and files whichever way they are built, and never an answer
without a shard."""

import itertools
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import library

import umbel
from umbel import Bloom, Sharded

N, P, SHARDS = 20_000, 0.01, 5
ITEMS = [f"user-{i}" for i in range(N)]
STRANGERS = [f"stranger-{i}" for i in range(50_000)]
SECRET = bytes(range(16))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


@pytest.fixture
def seen(tmp_path):
    return Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "seen")


@pytest.mark.parametrize("kind", ["blocked", "standard", "partitioned"])
def test_every_item_is_found_and_the_rate_is_kept(kind, tmp_path):
    # As many as a blocked shard needs to have its rate.
    n = 400_000
    np = library("numpy")
    f = Sharded.build(np.arange(n), n, P, SHARDS, tmp_path / "f", kind=kind)
    assert f.contains_many(np.arange(n)).all()
    found, stats = f.contains_many(np.arange(n, 2 * n)), f.stats()
    # The standard deviation is less than 2 % of the rate.
    assert abs(found.mean() / stats["fpr_now"] - 1) < 0.1 and stats["fpr_now"] < P
    assert (f.kind, f.shards, f.hash, f.read_only) == (kind, SHARDS, "fast", True)
    assert (f.expected_items, f.false_positive_rate, f.inserted) == (n, P, n)
    assert (stats["kind"], stats["shards"], stats["capacity"], stats["count"]) == (kind, SHARDS, n, n)
    assert abs(stats["estimated_count"] - n) < 5 * stats["estimated_count_error"]
    assert f.approx_items == stats["estimated_count"]
    assert set(stats) - {"shards"} == set(Bloom(10, P).stats())


def test_every_way_to_look_up_has_the_same_answers(seen, tmp_path):
    questions = [*ITEMS[::7], *STRANGERS]
    answers = seen.contains_many(questions)
    assert answers == [item in seen for item in questions]
    assert all(answers[: len(ITEMS[::7])])
    f = umbel.open(str(tmp_path / "seen"))
    assert type(f) is Sharded and f.path == tmp_path / "seen"
    assert f.contains_many(iter(questions)) == answers
    assert f.contains_many([item.encode() for item in questions]) == answers
    np, pa, pl = library("numpy"), library("pyarrow"), library("polars")
    mask = f.contains_many(np.array(questions))
    assert mask.dtype == bool and mask.tolist() == answers
    column = pa.array([questions[0], None, *questions[1:]])
    for column in (column, column.dictionary_encode(), pa.chunked_array([column[:1000], column[1000:]])):
        assert f.contains_many(column).to_list() == [answers[0], None, *answers[1:]]
    isin = library("umbel.polars").isin
    frame = pl.DataFrame({"id": questions})
    assert frame.select(isin(pl.col("id"), f))["id"].to_list() == answers
    for nothing in ([], np.array([], dtype=np.int64), pa.array([], pa.string())):
        assert len(f.contains_many(nothing)) == 0


def test_the_files_do_not_depend_on_the_way_of_building(seen, tmp_path):
    pa, np = library("pyarrow"), library("numpy")
    expected = contents(tmp_path / "seen")
    assert list(expected) == ["manifest", *(f"shard-{i:04}.umbel" for i in range(SHARDS))]
    parts = {
        "iterator": iter(reversed(ITEMS)),
        "numpy": np.array(ITEMS),
        "arrow": pa.chunked_array([ITEMS[:3], [None], ITEMS[3:]]),
        "bytes": [item.encode() for item in ITEMS],
    }
    for name, items in parts.items():
        Sharded.build(items, N, P, SHARDS, tmp_path / name)
        assert contents(tmp_path / name) == expected, name
    # With the key function, an item is the text that it returns.
    f = Sharded.build(zip(ITEMS), N, P, SHARDS, tmp_path / "key", key=lambda item: item[0])
    assert contents(tmp_path / "key") == expected and (ITEMS[5],) in f
    g = umbel.open(tmp_path / "key", key=lambda item: item[0])
    assert g.contains_many([(ITEMS[5],), ITEMS[6]]) == [True, True]


def test_one_shard_is_the_file_that_bloom_writes(tmp_path):
    f = Bloom(N, P)
    f.update(ITEMS)
    f.save(tmp_path / "f.umbel")
    Sharded.build(ITEMS, N, P, 1, tmp_path / "one")
    assert (tmp_path / "one" / "shard-0000.umbel").read_bytes() == (tmp_path / "f.umbel").read_bytes()


def test_a_shard_that_is_missing_damaged_or_of_another_build_is_named(seen, tmp_path):
    folder, victim = tmp_path / "seen", tmp_path / "seen" / "shard-0003.umbel"
    intact = victim.read_bytes()
    damaged = bytearray(intact)
    damaged[len(intact) // 2] ^= 16
    Sharded.build(ITEMS[::2], N, P, SHARDS, tmp_path / "other")
    foreign = (tmp_path / "other" / "shard-0003.umbel").read_bytes()
    Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "seed", seed=1)
    seeded = (tmp_path / "seed" / "shard-0003.umbel").read_bytes()
    for spoiled in (damaged, intact[:-1], intact[:40], b"", b"text\n", foreign, seeded, None):
        victim.unlink()
        if spoiled is not None:
            victim.write_bytes(spoiled)
        with pytest.raises(umbel.Error, match="shard-0003.umbel") as caught:
            umbel.open(folder).contains_many(ITEMS)
        assert isinstance(caught.value, umbel.MissingFileError if spoiled is None else umbel.FormatError)
        with pytest.raises(umbel.Error, match="shard-0003.umbel"):
            umbel.open(folder).stats()
    victim.write_bytes(intact)
    assert all(umbel.open(folder).contains_many(ITEMS))


def test_a_folder_without_a_whole_manifest_is_refused(seen, tmp_path):
    manifest = tmp_path / "seen" / "manifest"
    text = manifest.read_bytes()
    for spoiled in (text[:-1], text.replace(b"shard 1", b"shard 2"), b"", b"hello\n"):
        manifest.write_bytes(spoiled)
        with pytest.raises(umbel.FormatError, match="manifest"):
            umbel.open(tmp_path / "seen")
    manifest.unlink()
    with pytest.raises(umbel.DirectoryError, match="manifest is written last") as caught:
        umbel.open(tmp_path / "seen")
    assert caught.value.filename == str(tmp_path / "seen")
    with pytest.raises(umbel.MissingFileError) as caught:
        umbel.open(tmp_path / "no such folder")
    assert caught.value.filename == str(tmp_path / "no such folder")


def test_a_file_is_not_a_folder_and_a_folder_not_a_file(seen, tmp_path):
    with pytest.raises(umbel.DirectoryError, match=r"umbel\.open"):
        umbel.load(tmp_path / "seen")
    with pytest.raises(umbel.DirectoryError) as caught:
        umbel.load(tmp_path)
    assert "umbel.open" not in str(caught.value)
    with pytest.raises(umbel.Error):
        umbel.open(tmp_path / "seen", format="guava", funnel="utf8")


def test_it_cannot_be_changed(seen, tmp_path):
    before = contents(tmp_path / "seen")
    for change in (lambda: seen.add("new"), lambda: seen.update(["new"])):
        with pytest.raises(umbel.UnsupportedError, match="reading only"):
            change()
    assert contents(tmp_path / "seen") == before
    with pytest.raises(TypeError):
        Sharded()


def test_a_secret_is_needed_unless_it_is_embedded(tmp_path):
    for secret, hash in ((SECRET, "keyed"), (bytes(range(32)), "sealed")):
        f = Sharded.build(ITEMS, N, P, SHARDS, tmp_path / hash, secret=secret)
        assert f.hash == hash and ITEMS[3] in f
        for wrong in (None, bytes(range(1, 17)), bytes(range(1, 33))):
            with pytest.raises(umbel.SecretError, match="shard-0000.umbel"):
                umbel.open(tmp_path / hash, secret=wrong)
        assert all(umbel.open(tmp_path / hash, secret=secret).contains_many(ITEMS))
        with pytest.raises(umbel.UnsupportedError, match="secret"):
            pickle.dumps(f)
        assert secret not in b"".join(contents(tmp_path / hash).values())
    f = Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "open", hash="keyed", embed_secret=True)
    assert all(umbel.open(tmp_path / "open").contains_many(ITEMS))
    assert ITEMS[3] in pickle.loads(pickle.dumps(f))
    with pytest.raises(umbel.Error):
        Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "never", embed_secret=True)
    assert not (tmp_path / "never" / "manifest").exists()


def test_a_pickle_opens_the_folder_from_any_other(seen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    f = umbel.open("seen")
    assert str(f.path) == "seen"
    (tmp_path / "pickle").write_bytes(pickle.dumps(f))
    (tmp_path / "elsewhere").mkdir()
    program = "import pickle; f = pickle.load(open('../pickle', 'rb')); print('user-5' in f, f.shards)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path / "elsewhere", capture_output=True, text=True, timeout=120
    )
    assert done.stdout == f"True {SHARDS}\n", done.stderr


def test_building_replaces_no_filter_and_completes_an_interrupted_build(seen, tmp_path):
    before = contents(tmp_path / "seen")
    asked = itertools.count()
    with pytest.raises(umbel.FileError, match="already") as caught:
        Sharded.build((next(asked) for _ in range(3)), N, P, SHARDS, tmp_path / "seen")
    assert isinstance(caught.value, OSError) and next(asked) == 0, "found out before the items are read"
    assert contents(tmp_path / "seen") == before
    (tmp_path / "seen" / "manifest").unlink()
    Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "seen")
    assert contents(tmp_path / "seen") == before
    with pytest.raises(umbel.KeyTypeError):
        Sharded.build(["a", None], N, P, SHARDS, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(umbel.FileError):
        Sharded.build(ITEMS, N, P, SHARDS, tmp_path / "file" / "below")


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"shards": 0}, "shards = 0"),
        ({"shards": 1025}, "shards = 1025"),
        ({"shards": -1}, "shards = -1"),
        ({"shards": 2**70}, "1 to 1024"),
        ({"expected_items": 0}, "expected_items"),
        ({"false_positive_rate": 2}, "false_positive_rate"),
        ({"kind": "cuckoo"}, "kind"),
        ({"hash": "md5"}, "md5"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, words, tmp_path):
    right = {"expected_items": N, "false_positive_rate": P, "shards": SHARDS}
    with pytest.raises(umbel.ParameterError, match=words):
        Sharded.build(ITEMS, path=tmp_path / "f", **(right | wrong))
    assert not (tmp_path / "f").exists()


def test_threads_ask_the_same_filter(seen):
    answers = seen.contains_many(STRANGERS)
    wrong = []

    def ask():
        for _ in range(5):
            if seen.contains_many(STRANGERS) != answers or not all(seen.contains_many(ITEMS)):
                wrong.append(True)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
