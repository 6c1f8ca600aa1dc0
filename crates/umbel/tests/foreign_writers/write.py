"""Writes the golden files in ../golden_foreign with the original programs and libraries.

    python write.py JARS

JARS is a folder with the jars of pyspark (spark-sketch, spark-common-utils, scala-library, datasketches-java,
datasketches-memory, parquet-column and others). Also needed: `bloom` (Debian: golang-github-dcso-bloom-cli), Guava
(Debian: libguava-java), a JDK, and pyarrow and duckdb in the environment. RedisBloom cannot be installed like these, so
`redisbloom.py` follows the description of its chunks.

Each file NAME.FORMAT contains the lines of FUNNEL.members, where FUNNEL is how NAME begins. NAME.FORMAT.yes has those of
FUNNEL.questions that the original accepts: all members and its false positives.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import redisbloom

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden_foreign"
KEYS, RATE, SEED = 80, 0.1, 9001
STRANGERS = 400
GUAVA = "/usr/share/java/guava.jar"


def text_members():
    """Returns texts of the lengths at which hashes change their loops, and some outside ASCII."""
    members = ["", "köder", "äpfel", "żółw", "日本語", "🌸", "x🌼y", "\u00a0", " spaces ", "tab\there"]
    lengths = [*range(1, 66), 100, 127, 128, 200, 250]
    return members + [("abcdefghijklmnopqrstuvwxyz" * 10)[:n] for n in lengths]


def byte_members():
    """Returns keys with every byte but the one that ends a line, the later of them not UTF-8."""
    bytes_ = bytes(b for b in range(256) if b != 10)
    return [bytes_[i:i + n] for i, n in zip(range(0, 160, 2), range(KEYS))]


def keys():
    """Returns, for each funnel, members and questions as lines."""
    words = [x.encode() for x in text_members()]
    ints = [0, 1, -1, 127, 128, -128, 255, 256, 65535, 2**31 - 1, -(2**31)] + [7919 * i - 100_000 for i in range(69)]
    longs = ints[:9] + [2**31, -(2**31) - 1, 2**32, 2**63 - 1, -(2**63)] + [(7919 * i) ** 3 - 2**40 for i in range(66)]
    text_strangers = [f"stranger {i}{'ü' * (i % 3)}".encode() for i in range(STRANGERS)]
    byte_strangers = [b"\xff" * (i % 7) + i.to_bytes(2, "big").replace(b"\n", b"\xf5") for i in range(STRANGERS)]
    numbers = [1_000_003 * (i - STRANGERS // 2) + 12 for i in range(STRANGERS)]
    encode = lambda values: [str(x).encode() for x in values]
    members = {"utf8": words, "bytes": byte_members(), "int": encode(ints), "long": encode(longs)}
    strangers = {"utf8": text_strangers, "bytes": byte_strangers, "int": encode(numbers), "long": encode(numbers)}
    members["unencoded"], strangers["unencoded"] = words, text_strangers
    for funnel, lines in members.items():
        assert len(set(lines)) == KEYS and not set(lines) & set(strangers[funnel]), funnel
    return members, {funnel: lines + strangers[funnel] for funnel, lines in members.items()}


def save(name, lines):
    (GOLDEN / name).write_bytes(b"".join(line + b"\n" for line in lines))


def java(classes, jars, library, files):
    """Runs the writer of a library for files (name, argument, funnel)."""
    classes = Path(classes) / library
    subprocess.run(["javac", "-d", classes, "-cp", jars, HERE / "Writer.java", HERE / f"{library}.java"], check=True)
    arguments = []
    for name, argument, funnel in files:
        asked = [GOLDEN / f"{funnel}.members", GOLDEN / f"{funnel}.questions", GOLDEN / name]
        arguments += [library, argument, funnel, str(KEYS), str(RATE), *asked]
    subprocess.run(["java", "-cp", f"{classes}:{jars}", "Writer", *arguments], check=True)


def dcso():
    members, questions = ((GOLDEN / f"utf8.{part}").read_bytes() for part in ("members", "questions"))
    plain, packed, data = (GOLDEN / name for name in ("utf8.dcso", "utf8.dcso.gz", "utf8-data.dcso"))
    arguments = ["create", "-n", str(KEYS), "-p", str(RATE)]
    subprocess.run(["bloom", *arguments, plain], input=members, check=True)
    subprocess.run(["bloom", "--gzip", *arguments, packed], input=members, check=True)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    shutil.copy(plain, data)
    subprocess.run(["bloom", "set-data", data], input=b"a note of its owner", check=True)
    for file in plain, packed, data:
        zipped = ["--gzip"] if file.suffix == ".gz" else []
        asked = subprocess.run(["bloom", *zipped, "check", file], input=questions, stdout=subprocess.PIPE, check=True)
        Path(f"{file}.yes").write_bytes(asked.stdout)


def column(lines, funnel):
    types = {"utf8": pa.string(), "bytes": pa.binary(), "int": pa.int32(), "long": pa.int64()}
    values = [int(x) if funnel in ("int", "long") else x.decode() if funnel == "utf8" else x for x in lines]
    return pa.array(values, types[funnel])


def filter_bytes(file):
    """Returns the header and the bit set of the only filter in a Parquet file."""
    chunk = pq.read_metadata(file).row_group(0).column(0).to_dict()
    start = chunk["bloom_filter_offset"]
    return Path(file).read_bytes()[start:start + chunk["bloom_filter_length"]]


def parquet(folder, members, questions):
    """Writes columns with pyarrow and DuckDB, cuts their filters out, and lets DuckDB answer from the files."""
    duckdb.sql("set threads = 1")
    for funnel in "utf8", "bytes", "int", "long":
        table = pa.table({"key": column(members[funnel], funnel)})
        written = {writer: f"{folder}/{funnel}-{writer}.parquet" for writer in ("pyarrow", "duckdb")}
        options = {"key": {"ndv": KEYS, "fpp": RATE}}
        pq.write_table(table, written["pyarrow"], bloom_filter_options=options, use_dictionary=False)
        # DuckDB adds filters to columns with a dictionary, which it makes for values that repeat.
        duckdb.register("repeated", pa.table({"key": pa.concat_arrays([column(members[funnel], funnel)] * 10)}))
        ratio = f"bloom_filter_false_positive_ratio {RATE}"
        duckdb.sql(f"copy repeated to '{written['duckdb']}' (format parquet, {ratio})")
        for writer, file in written.items():
            name = GOLDEN / f"{funnel}-{writer}.sbbf"
            name.write_bytes(filter_bytes(file))
            accepted = []
            for line, value in zip(questions[funnel], column(questions[funnel], funnel).to_pylist()):
                probe = duckdb.execute("select bloom_filter_excludes from parquet_bloom_probe($1, 'key', $2)", [file, value])
                if not probe.fetchall()[0][0]:
                    accepted.append(line)
            save(f"{name.name}.yes", accepted)


def main():
    jars = f"{sys.argv[1]}/*"
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    members, questions = keys()
    for funnel in members:
        save(f"{funnel}.members", members[funnel])
        save(f"{funnel}.questions", questions[funnel])
    # A filter without keys, which DataSketches writes without its bits.
    save("empty.members", [])
    save("empty.questions", questions["utf8"])
    with tempfile.TemporaryDirectory() as folder:
        dcso()
        funnels = ["utf8", "unencoded", "bytes", "long", "int"]
        java(folder, GUAVA, "Guava", [(f"{x}.guava", "1", x) for x in funnels] + [(f"{x}-32.guava", "0", x) for x in funnels])
        funnels.remove("unencoded")
        java(folder, jars, "Spark", [(f"{x}.spark", "1", x) for x in funnels] + [(f"{x}.spark2", "2", x) for x in funnels]
             + [(f"{x}-seed.spark2", "2,-77", x) for x in ("utf8", "long")])
        java(folder, jars, "Datasketches", [(f"{x}.datasketches", str(SEED), x) for x in [*funnels, "empty"]])
        # As many bytes as the other writers choose.
        java(folder, jars, "Parquet", [(f"{x}-java.sbbf", "64", x) for x in funnels])
        parquet(folder, members, questions)
    for name, keys_, rate, grown in [("utf8", KEYS, RATE, False), ("utf8-chain", KEYS // 5, RATE, True)]:
        chain = redisbloom.Chain(keys_, rate, grown)
        for line in members["utf8"]:
            chain.add(line)
        (GOLDEN / f"{name}.redisbloom").write_bytes(chain.dump())
        save(f"{name}.redisbloom.yes", [line for line in questions["utf8"] if line in chain])
    for file in sorted(GOLDEN.iterdir()):
        print(f"{os.path.getsize(file):6} {file.name}")


main()
