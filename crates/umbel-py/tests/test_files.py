"""Files, bytes and pickles: the same in every process, complete or refused."""

import copy
import errno
import io
import os
import pickle
import stat
from pathlib import Path

import pytest
from conftest import LINES, N, P, resident

import umbel
from umbel import Bloom

SECRET = bytes(range(16))
SEALED = bytes(range(32))
MAKERS = {
    "Bloom": lambda: Bloom(1000, 0.01),
    "Bloom standard": lambda: Bloom(1000, 0.01, kind="standard"),
    "Cuckoo": lambda: umbel.Cuckoo(1000, 0.01),
    "Counting": lambda: umbel.Counting(1000, 0.01),
    "Quotient": lambda: umbel.Quotient(1000, 0.01),
    "Scalable": lambda: umbel.Scalable(10, 0.01),
    "Aging": lambda: umbel.Aging(1000, 0.01),
    "Fuse": lambda: umbel.Fuse(["seed"], 0.01),
    "Map": lambda: umbel.Map(["seed"], [1]),
    "Count": lambda: umbel.Count(1000),
    "Distinct": lambda: umbel.Distinct(),
    "CountMin": lambda: umbel.CountMin(),
    "TopK": lambda: umbel.TopK(3),
    "Frequent": lambda: umbel.Frequent(3),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def filled(make):
    f = make()
    if not isinstance(f, (umbel.Fuse, umbel.Map)):
        f.update(["čert", "a", "a"])
    return f


def corpus():
    f = Bloom(N, P)
    f.update(LINES)
    return f


@every
def test_every_way_to_copy_gives_the_same_bytes_and_class(make, tmp_path):
    f, path = filled(make), tmp_path / "f.umbel"
    f.save(path)
    stream = io.BytesIO()
    f.save(stream)
    copies = [
        type(f).load(path), type(f).load(str(path)), type(f).load(io.BytesIO(stream.getvalue())),
        umbel.load(path), umbel.open(path).copy(), type(f).from_bytes(bytes(f)),
        type(f).from_bytes(bytearray(bytes(f))), type(f).from_bytes(memoryview(bytes(f))),
        f.copy(), copy.copy(f), copy.deepcopy(f),
        *(pickle.loads(pickle.dumps(f, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ]  # fmt: skip
    assert path.read_bytes() == stream.getvalue() == bytes(f) == f.to_bytes()
    for other in copies:
        assert type(other) is type(f) and bytes(other) == bytes(f) and other is not f


def test_the_shell_and_python_write_the_same_file(made, shell, tmp_path):
    path = tmp_path / "python.umbel"
    corpus().save(path)
    assert path.read_bytes() == made.read_bytes()
    text = "".join(f"{line}\n" for line in LINES).encode()
    assert shell("check", "-c", path, stdin=text).strip() == str(len(LINES)).encode()


def test_a_pickle_is_the_same_filter_in_processes_with_other_hash_seeds(python, tmp_path):
    path = tmp_path / "pickle"
    filters = [filled(make) for make in MAKERS.values()]
    path.write_bytes(pickle.dumps(filters))
    program = (
        "import pickle, sys\n"
        "for f in pickle.load(open(sys.argv[1], 'rb')):\n"
        "    print(type(f).__name__, bytes(f).hex()[-64:])"
    )
    expected = "".join(f"{type(f).__name__} {bytes(f).hex()[-64:]}\n" for f in filters)
    assert {python(program, path, seed=seed) for seed in (0, 1, 2)} == {expected}


def test_save_replaces_the_file_as_a_whole(tmp_path):
    path = tmp_path / "f.umbel"
    corpus().save(path)
    before = umbel.open(path)
    Bloom(10, 0.01).save(path)
    assert before.contains_many(LINES) == [True] * len(LINES), "the old file stays open"
    assert umbel.load(path).expected_items == 10
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.umbel"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path, python):
    path = tmp_path / "f.umbel"
    Bloom(10, 0.01).save(path)
    before = path.read_bytes()
    program = (
        "import resource, sys, umbel\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try:\n"
        "    umbel.Bloom(100_000, 0.01).save(sys.argv[1])\n"
        "except umbel.FileError as error:\n"
        "    print(error.errno, isinstance(error, OSError), sys.argv[1] in str(error))\n"
    )
    assert python(program, path) == f"{errno.EFBIG} True True\n"
    assert path.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["f.umbel"]
    with pytest.raises(umbel.MissingFileError) as caught:
        Bloom(20, 0.01).save(tmp_path / "no such folder" / "f.umbel")
    assert caught.value.filename and len(str(caught.value)) > 20


def test_a_file_object_may_take_the_bytes_in_parts():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.taken = b""

        def write(self, data):
            part = bytes(data[:1000])
            self.taken += part
            return len(part)

    f, slow = corpus(), Slow()
    f.save(slow)
    assert slow.taken == bytes(f)


def test_a_file_object_that_takes_nothing_or_fails_is_an_error():
    class Full:
        def write(self, data):
            return 0

    class Broken:
        def write(self, data):
            raise ZeroDivisionError

    with pytest.raises(umbel.FileError, match="took 0 of"):
        Bloom(10, 0.01).save(Full())
    with pytest.raises(ZeroDivisionError):
        Bloom(10, 0.01).save(Broken())


def test_a_file_object_that_would_wait_is_an_error():
    """A pipe takes some bytes at first, and then returns None."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb", buffering=0) as pipe:
        for _ in range(2):
            with pytest.raises(umbel.FileError, match="took .* of"):
                Bloom(1_000_000, 0.01).save(pipe)


def test_a_file_object_need_not_count():
    class Sink:
        def write(self, data):
            self.taken = bytes(data)

    f, sink = corpus(), Sink()
    f.save(sink)
    assert sink.taken == bytes(f)


def test_bytes_are_read_without_a_copy_of_them(python, tmp_path):
    path = tmp_path / "large.umbel"
    f = Bloom(50_000_000, 0.01)
    f.update(range(2_000_000))
    f.save(path)
    program = (
        "import re, sys, umbel\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "f = umbel.Bloom.from_bytes(data)\n"
        # Not `ru_maxrss`, in which a process begins with the memory of the one that started it.
        "peak = 1024 * int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        "print(peak / len(data), 1_999_999 in f)\n"
    )
    peak, found = python(program, path).split()
    assert float(peak) < 2.6 and found == "True"


def test_metadata_is_stored_and_replaced(tmp_path):
    path = tmp_path / "f.umbel"
    f = Bloom(10, 0.01)
    f.save(path, meta={"source": "märkt", "date": "today"})
    loaded = umbel.load(path)
    assert loaded.meta == umbel.open(path).meta == {"source": "märkt", "date": "today"} and f.meta == {}
    loaded.save(path)
    assert umbel.load(path).meta == loaded.meta
    loaded.save(path, meta={})
    assert umbel.load(path).meta == {}


def damaged():
    """Bytes that are not a filter, each with a name."""
    good = bytes(corpus())
    for bit in (0, 8 * 40 + 3, 8 * (len(good) // 2), 8 * len(good) - 1):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", bytes(bad)
    for length in (0, 7, 63, 64, len(good) // 2, len(good) - 1):
        yield f"{length} bytes", good[:length]
    yield "text", b"this is a text and not a filter\n" * 10
    yield "more", good + b"x"


@pytest.mark.parametrize(("name", "data"), list(damaged()), ids=[name for name, _ in damaged()])
def test_a_damaged_file_is_an_error_and_never_an_answer(name, data, tmp_path):
    path = tmp_path / "bad.umbel"
    path.write_bytes(data)
    for read in (
        lambda: umbel.load(path), lambda: Bloom.load(io.BytesIO(data)), lambda: Bloom.from_bytes(data),
        lambda: umbel.open(path).contains_many(LINES), lambda: umbel.open(path).stats(),
        lambda: umbel.open(path).copy(), lambda: bytes(umbel.open(path)),
    ):  # fmt: skip
        with pytest.raises(umbel.FormatError) as caught:
            read()
        assert isinstance(caught.value, ValueError) and len(str(caught.value)) > 20


def test_the_message_about_a_file_names_it(tmp_path):
    path = tmp_path / "bad.umbel"
    path.write_bytes(b"no filter")
    for read in (umbel.load, umbel.open, Bloom.load):
        with pytest.raises(umbel.FormatError, match="bad.umbel"):
            read(path)


def test_a_missing_file_a_folder_and_a_forbidden_file_are_the_errors_of_python(tmp_path):
    for read in (umbel.load, umbel.open, Bloom.load):
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / "none")
        assert isinstance(caught.value, umbel.Error)
        assert Path(caught.value.filename) == tmp_path / "none" and caught.value.errno == 2
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
    with pytest.raises(TypeError):
        umbel.load(5)
    if os.geteuid() != 0:
        path = tmp_path / "forbidden"
        Bloom(10, 0.01).save(path)
        path.chmod(0)
        with pytest.raises(PermissionError):
            umbel.load(path)


class BrokenPath(os.PathLike):
    """A path that fails."""

    def __fspath__(self):
        raise ZeroDivisionError("of mine")


def test_an_exception_of_a_path_reaches_the_caller():
    f = Bloom(10, 0.01)
    for use in (f.save, umbel.load, umbel.open, Bloom.load, lambda path: Bloom(10, 0.01, secret=path)):
        with pytest.raises(ZeroDivisionError, match="of mine"):
            use(BrokenPath())
        for wrong in (5, []):
            with pytest.raises(TypeError, match="os.PathLike|16 or 32 bytes"):
                use(wrong)


def test_a_file_of_another_class_is_refused(tmp_path):
    path = tmp_path / "cuckoo.umbel"
    umbel.Cuckoo(10, 0.01).save(path)
    for read in (lambda: Bloom.load(path), lambda: Bloom.from_bytes(path.read_bytes())):
        with pytest.raises(umbel.FormatError, match="Cuckoo"):
            read()
    assert type(umbel.Filter.load(path)) is type(umbel.Structure.load(path)) is umbel.Cuckoo


def test_a_file_that_is_open_for_reading_only_cannot_be_changed(made):
    f = umbel.open(made)
    assert f.read_only is True and "a" in f
    for change in (
        lambda: f.add("new"), lambda: f.update(["new"]), lambda: f.clear(), lambda: f.intersection_update(f)
    ):  # fmt: skip
        with pytest.raises(umbel.UnsupportedError, match="reading only"):
            change()
    with pytest.raises(umbel.UnsupportedError):
        f |= Bloom(N, P)
    assert (f | Bloom(N, P)).read_only is False and (f & f) == f == umbel.load(made)
    mine = f.copy()
    assert mine.add("new") and mine.read_only is False


def test_a_file_that_processes_open_is_mapped_and_shared(made, python):
    program = (
        "import sys, umbel\n"
        "f = umbel.open(sys.argv[1])\n"
        "found = sum(f.contains_many([str(i) for i in range(20_000)]))\n"
        "maps = open('/proc/self/smaps').read().split(sys.argv[1])[1:]\n"
        "print(found, len(maps) > 0, {m.split('Private_Dirty:')[1].split()[0] for m in maps})"
    )
    assert python(program, made) == "20000 True {'0'}\n"


def test_opening_a_large_file_reads_little_of_it(tmp_path):
    path = tmp_path / "large.umbel"
    Bloom(100_000_000, 0.01).save(path)
    before = resident()
    f = umbel.open(path)
    assert "absent" not in f and path.stat().st_size > 100_000_000
    assert resident() - before < 20 << 20


def test_a_secret_is_needed_to_read_and_is_not_written(tmp_path):
    for secret, strength in ((SECRET, "keyed"), (SEALED, "sealed")):
        path = tmp_path / f"{strength}.umbel"
        f = Bloom(100, 0.01, secret=secret)
        f.add("x")
        f.save(path)
        assert f.hash == strength and secret not in path.read_bytes() and secret not in bytes(f)
        for read in (umbel.load, umbel.open, Bloom.load, lambda path, **options: Bloom.from_bytes(path.read_bytes(), **options)):
            assert "x" in read(path, secret=secret)
            for wrong in ({}, {"secret": secret[::-1]}, {"secret": bytes(48 - len(secret))}):
                with pytest.raises(umbel.SecretError):
                    read(path, **wrong)


def test_a_key_file_of_the_shell_is_a_secret(shell, tmp_path):
    key, path = tmp_path / "k.key", tmp_path / "f.umbel"
    shell("key", "new", key)
    f = Bloom(100, 0.01, secret=key)
    f.add("x")
    f.save(path)
    assert "x" in umbel.load(path, secret=str(key))
    assert shell("check", "--key-file", key, path, stdin=b"x\ny\n") == b"x\n"
    key.chmod(0o644)
    with pytest.raises(umbel.SecretError, match="chmod"):
        umbel.load(path, secret=key)


def test_a_secret_is_embedded_on_request_only(tmp_path):
    f = Bloom(100, 0.01, secret=SECRET)
    f.add("x")
    path = tmp_path / "f.umbel"
    f.save(path, embed_secret=True)
    assert "x" in umbel.load(path) and "x" in Bloom.from_bytes(f.to_bytes(embed_secret=True))
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, "only the owner may read a secret"


def test_only_a_keyed_secret_can_be_embedded(tmp_path):
    for options in ({}, {"secret": SEALED}):
        f = Bloom(10, 0.01, **options)
        for write in (f.to_bytes, lambda f=f, **options: f.save(tmp_path / "f.umbel", **options)):
            with pytest.raises(umbel.ParameterError, match="embed_secret"):
                write(embed_secret=True)
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_of_a_keyed_filter_has_its_secret_and_a_sealed_one_is_refused():
    f = Bloom(100, 0.01, hash="keyed")
    f.add("x")
    assert pickle.loads(pickle.dumps(f)) == f
    with pytest.raises(umbel.UnsupportedError, match="sealed"):
        pickle.dumps(Bloom(100, 0.01, hash="sealed"))
    sealed = Bloom(100, 0.01, hash="sealed")
    assert copy.copy(sealed) == copy.deepcopy(sealed) == sealed.copy() == sealed


def test_wrong_secrets_are_named():
    for wrong in (b"", b"short", bytes(17)):
        with pytest.raises(umbel.SecretError, match="16"):
            Bloom(10, 0.01, secret=wrong)
    for contradiction in ({"hash": "fast", "secret": SECRET}, {"hash": "sealed", "secret": SECRET}, {"secret": SECRET, "seed": 1}):
        with pytest.raises(umbel.Error):
            Bloom(10, 0.01, **contradiction)
    with pytest.raises(FileNotFoundError):
        Bloom(10, 0.01, secret="/no/such/file")


def test_the_function_key_is_pickled_and_passed_to_load(tmp_path):
    path = tmp_path / "f.umbel"
    f = Bloom(100, 0.01, key=repr)
    f.add(1.5)
    f.save(path)
    assert 1.5 in pickle.loads(pickle.dumps(f)) and 1.5 in f.copy()
    assert 1.5 in umbel.load(path, key=repr) and 1.5 in umbel.open(path, key=repr)
    with pytest.raises(umbel.KeyTypeError):
        1.5 in umbel.load(path)
