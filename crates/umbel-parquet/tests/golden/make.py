"""Writes the golden files: small Parquet files of pyarrow and DuckDB with filters, and the answers of these filters.

    python make.py [FOLDER]

needs pyarrow, duckdb and xxhash, and writes beside itself or into FOLDER. A line of NAME.answers has a column, a text, the row groups that hold its value, and
those whose filter has it, computed here from the documentation of the format.
"""
import datetime, decimal, os, struct, sys, uuid
import duckdb, pyarrow as pa, pyarrow.parquet as pq, xxhash

HERE = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
SALT = (0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31)
DAY, NOON, UTC = datetime.date(1970, 1, 1), datetime.datetime(2024, 2, 29, 12), datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)


def micros(time):
    return (time.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)


def clock(number):
    return datetime.time(number % 24, number % 60, 7, 500000)


def decimals(number):
    return decimal.Decimal(number - 40) * 9973 / 100


def unscaled(bytes, order):
    return lambda v: int(v * 100).to_bytes(bytes, order, signed=True)


def packed(format, convert=lambda v: v):
    return lambda v: struct.pack(format, convert(v))


# column: its type, the value of a number, and the bytes that are hashed; the files hold the even numbers.
TYPES = {
    "i8": (pa.int8(), lambda t: t - 40, packed("<i")),
    "i16": (pa.int16(), lambda t: 300 * t - 9000, packed("<i")),
    "i32": (pa.int32(), lambda t: t * 10**7 - 3 * 10**8, packed("<i")),
    "i64": (pa.int64(), lambda t: t * 10**17 - 3 * 10**18, packed("<q")),
    "u8": (pa.uint8(), lambda t: 255 - t, packed("<I")),
    "u16": (pa.uint16(), lambda t: 65535 - t, packed("<I")),
    "u32": (pa.uint32(), lambda t: 2**32 - 1 - t, packed("<I")),
    "u64": (pa.uint64(), lambda t: 2**64 - 1 - t, packed("<Q")),
    "f16": (pa.float16(), lambda t: t / 4 - 3, packed("<e")),
    "f32": (pa.float32(), lambda t: t / 4 - 3, packed("<f")),
    "f64": (pa.float64(), lambda t: t / 10 - 3, packed("<d")),
    "text": (pa.string(), lambda t: f"ключ {t}", str.encode),
    "bytes": (pa.binary(), lambda t: f"b{t}".encode(), bytes),
    "four": (pa.binary(4), lambda t: f"f{t:03}".encode(), bytes),
    "id": (pa.uuid(), lambda t: uuid.UUID(int=t << 100 | t), lambda v: v.bytes),
    "day": (pa.date32(), lambda t: DAY + datetime.timedelta(500 * t - 20000), packed("<i", lambda v: (v - DAY).days)),
    "time_ms": (pa.time32("ms"), clock, packed("<i", lambda v: ((v.hour * 60 + v.minute) * 60 + 7) * 1000 + 500)),
    "time_us": (pa.time64("us"), clock, packed("<q", lambda v: ((v.hour * 60 + v.minute) * 60 + 7) * 10**6 + 500000)),
    "at_ms": (pa.timestamp("ms"), lambda t: NOON + datetime.timedelta(milliseconds=t * 10**7 + 5), packed("<q", lambda v: micros(v) // 1000)),
    "at_us": (pa.timestamp("us"), lambda t: NOON - datetime.timedelta(t * 1000, microseconds=t), packed("<q", micros)),
    "at_ns": (pa.timestamp("ns"), lambda t: NOON + datetime.timedelta(t), packed("<q", lambda v: micros(v) * 1000)),
    "utc_us": (pa.timestamp("us", "UTC"), lambda t: (NOON + datetime.timedelta(t)).replace(tzinfo=UTC), packed("<q", micros)),
    "fixed": (pa.decimal128(30, 2), decimals, unscaled(13, "big")),
    "wide": (pa.decimal256(60, 2), decimals, unscaled(26, "big")),
}
INTEGER_DECIMALS = {
    "small": (pa.decimal128(9, 2), decimals, unscaled(4, "little")),
    "large": (pa.decimal128(18, 2), decimals, unscaled(8, "little")),
}
DUCK = {**{column: TYPES[column] for column in ("text", "u16", "f64", "day", "id")}, "i64": (pa.int64(), lambda t: t * 10**12, packed("<q"))}
FEW = {column: TYPES[column] for column in ("i8", "i64", "u32", "u64", "f64", "text", "four", "id", "day", "at_us", "fixed")}


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def blocks(path, group, column):
    """Returns the blocks of a filter, or None."""
    chunks = pq.read_metadata(path).row_group(group)
    chunk = next(c for i in range(chunks.num_columns) if (c := chunks.column(i)).path_in_schema == column)
    start = chunk.to_dict().get("bloom_filter_offset")
    if not start:
        return None
    with open(path, "rb") as file:
        file.seek(start)
        head = file.read(64)
    assert head[0] == 0x15
    at, number = 1, 0
    while True:
        number |= (head[at] & 127) << 7 * (at - 1)
        at += 1
        if head[at - 1] < 128:
            break
    with open(path, "rb") as file:
        file.seek(start + head.index(bytes.fromhex("1c1c00001c1c00001c1c000000")) + 13)
        return file.read(number >> 1)


def has(filter, key):
    hash = xxhash.xxh64_intdigest(key)
    words = struct.unpack_from("<8I", filter, ((hash >> 32) * (len(filter) // 32) >> 32) * 32)
    return all(word >> ((hash & 0xffffffff) * salt % 2**32 >> 27) & 1 for word, salt in zip(words, SALT))


def answers(name, columns, numbers):
    path = f"{HERE}/{name}.parquet"
    groups = range(pq.read_metadata(path).num_row_groups)
    listed = lambda groups: ",".join(map(str, groups)) or "-"
    with open(f"{HERE}/{name}.answers", "w") as out:
        for column, (_, value, key) in columns.items():
            filters = [blocks(path, group, column) for group in groups]
            held = [numbers[len(numbers) * g // len(groups):len(numbers) * (g + 1) // len(groups)] for g in groups]
            for t in (*sorted(set(numbers))[::5], *range(1, 48, 6)):
                true = [g for g in groups if any(value(t) == value(u) for u in held[g])]
                named = [g for g in groups if filters[g] is None or has(filters[g], key(value(t)))]
                assert set(true) <= set(named), (name, column, t)
                print(column, text(value(t)), listed(true), listed(named), sep="\t", file=out)


def table(columns, numbers):
    make = lambda value, type: pa.array([getattr(v, "bytes", v) for v in map(value, numbers)], type)
    return pa.table({column: make(value, type) for column, (type, value, _) in columns.items()})


numbers = list(range(0, 48, 2))
options = lambda columns: {column: {"ndv": 12, "fpp": 0.05} for column in columns}
plain = {"row_group_size": 8, "compression": "zstd", "store_schema": False}
pq.write_table(table(TYPES, numbers), f"{HERE}/types.parquet", bloom_filter_options=options(TYPES), **plain)
pq.write_table(table(INTEGER_DECIMALS, numbers), f"{HERE}/decimals.parquet", bloom_filter_options=options(INTEGER_DECIMALS), store_decimal_as_integer=True, **plain)
pq.write_table(table(FEW, numbers), f"{HERE}/bare.parquet", **plain)
nested = pa.table({"tags": [[f"tag{t}", "all"] for t in numbers], "who": [{"name": f"name{t}", "years": t} for t in numbers]})
pq.write_table(nested, f"{HERE}/nested.parquet", bloom_filter_options=options(["tags.list.element", "who.name"]), **plain)
sizes = pa.table({"full": [f"v{t}" for t in range(200)], "roomy": [f"v{t}" for t in range(200)], "good": [f"v{t}" for t in range(200)], "bare": [1] * 200})
pq.write_table(sizes, f"{HERE}/sizes.parquet", bloom_filter_options={"full": {"ndv": 1, "fpp": 0.5}, "roomy": {"ndv": 200, "fpp": 1e-8}, "good": {"ndv": 200, "fpp": 0.01}}, compression="zstd", store_schema=False)
many = [2 * (t % 48 + 48 * (t // 2048)) for t in range(4096)]     # DuckDB's row groups have 2048 rows or more

# The orders of three months, for the guide.
os.makedirs(f"{HERE}/orders", exist_ok=True)
for month in range(1, 4):
    orders = range(200 * month, 200 * month + 200)
    columns = {
        "customer": pa.array([1000 + order * 37 % 500 + 400 * month for order in orders], pa.int64()),
        "placed": pa.array([datetime.datetime(2024, month, order % 200 // 7 + 1, order % 24, order % 60) for order in orders], pa.timestamp("ms")),
        "total": pa.array([decimal.Decimal(order * 7919 % 20000) / 100 for order in orders], pa.decimal128(9, 2)),
        "country": [("DE", "FR", "IT", "NL")[order % 4] for order in orders],
    }
    filters = {"customer": {"ndv": 100, "fpp": 0.01}, "placed": {"ndv": 100, "fpp": 0.01}, "total": {"ndv": 8, "fpp": 0.3}}
    pq.write_table(pa.table(columns), f"{HERE}/orders/2024-{month:02}.parquet", bloom_filter_options=filters, row_group_size=100, compression="zstd", store_schema=False)

few = table(DUCK, many)
duckdb.sql(f"copy (select * from few) to '{HERE}/duckdb.parquet' (format parquet, row_group_size 2048, dictionary_size_limit 100000, compression zstd)")
answers("types", TYPES, numbers)
answers("decimals", INTEGER_DECIMALS, numbers)
answers("bare", FEW, numbers)
answers("duckdb", DUCK, many)
