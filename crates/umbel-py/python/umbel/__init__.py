"""Bloom filters and their relatives: sets, maps and counts in a few bits per item.

>>> from umbel import Bloom
>>> seen = Bloom(1_000_000, 0.01)
>>> seen.add("apple")
True
>>> "apple" in seen, "pear" in seen
(True, False)

Every filter answers "certainly not" or "probably yes". The number 42 and the text "42" are different
items; a filter that the command `umbel` built from lines holds texts.
"""

from ._errors import (
    DirectoryError,
    Error,
    FileError,
    FilePermissionError,
    FormatError,
    FullError,
    KeyTypeError,
    MismatchError,
    MissingFileError,
    OutOfMemoryError,
    ParameterError,
    SecretError,
    UnsupportedError,
)
from ._umbel import (
    Aging,
    Bloom,
    Count,
    Counting,
    CountMin,
    Cuckoo,
    Distinct,
    Filter,
    Foreign,
    Frequent,
    Fuse,
    Map,
    Mask,
    Quotient,
    Scalable,
    Sharded,
    Structure,
    TopK,
    __version__,
    load,
    open,
    plan,
)

__all__ = [
    "Aging",
    "Bloom",
    "Count",
    "CountMin",
    "Counting",
    "Cuckoo",
    "DirectoryError",
    "Distinct",
    "Error",
    "FileError",
    "FilePermissionError",
    "Filter",
    "Foreign",
    "FormatError",
    "Frequent",
    "FullError",
    "Fuse",
    "KeyTypeError",
    "Map",
    "Mask",
    "MismatchError",
    "MissingFileError",
    "OutOfMemoryError",
    "ParameterError",
    "Quotient",
    "Scalable",
    "SecretError",
    "Sharded",
    "Structure",
    "TopK",
    "UnsupportedError",
    "__version__",
    "load",
    "open",
    "plan",
]
