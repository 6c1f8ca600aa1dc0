"""Writes pages_*.parquet: the same rows in every compression, and in pages of both versions.

    python pages.py

needs pyarrow.
"""
import os
import pyarrow as pa, pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = range(300)
TABLE = pa.table({
    "plain": pa.array([None if i % 7 == 0 else i * 10**12 for i in ROWS], pa.int64()),
    "dictionary": [f"d{i % 11}" for i in ROWS],
    "list": pa.array([None if i % 13 == 0 else [f"e{j}" for j in range(i, i + i % 4)] for i in ROWS], pa.list_(pa.string())),
    "group": pa.array([None if i % 5 == 0 else {"inner": i} for i in ROWS], pa.struct([("inner", pa.int32())])),
    "packed": pa.array([i * i for i in ROWS], pa.int32()),
    "prefix": [f"common/prefix/{i:05}" for i in ROWS],
    "lengths": [f"x{i}" * (i % 5) for i in ROWS],
    "split": [i / 3 for i in ROWS],
    "null": pa.array([None for i in ROWS], pa.string()),
})
ENCODINGS = {"plain": "PLAIN", "packed": "DELTA_BINARY_PACKED", "prefix": "DELTA_BYTE_ARRAY", "lengths": "DELTA_LENGTH_BYTE_ARRAY", "split": "BYTE_STREAM_SPLIT"}

for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
    for version in ("1.0", "2.0") if codec in ("none", "zstd") else ("1.0",):
        name = f"{HERE}/pages_{codec}{version[0] if version == '2.0' else ''}.parquet"
        dictionary = ["dictionary", "list.list.element"]
        pq.write_table(TABLE, name, row_group_size=200, compression=codec, data_page_version=version, use_dictionary=dictionary, column_encoding=ENCODINGS, data_page_size=600)
