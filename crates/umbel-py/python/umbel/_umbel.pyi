# The types of the extension module. Documentation is in the docstrings of its classes and functions.

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import (
    Any,
    Final,
    Literal,
    NoReturn,
    NotRequired,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

# numpy is optional: a type checker that does not find it takes its types as `Any`.
from numpy import bool_  # type: ignore[import-not-found,unused-ignore]
from numpy.typing import DTypeLike, NDArray  # type: ignore[import-not-found,unused-ignore]
from typing_extensions import Buffer, CapsuleType, disjoint_base

__all__ = [
    "__version__",
    "Structure",
    "Filter",
    "Foreign",
    "Sharded",
    "Bloom",
    "Cuckoo",
    "Counting",
    "Quotient",
    "Scalable",
    "Aging",
    "Fuse",
    "Map",
    "Count",
    "Distinct",
    "CountMin",
    "TopK",
    "Frequent",
    "Mask",
    "load",
    "open",
    "plan",
    "_restore",
    "_restore_foreign",
    "_restore_sharded",
    "_Layout",
    "_Collector",
    "_Merge",
    "_restore_layout",
    "_assemble",
    "_assemble_pieces",
    "_create_file",
    "_finish_file",
    "_seal",
]

_T = TypeVar("_T")

# A key is a str, bytes, anything with `__index__`, a UUID or a network address. With `key=`, it is
# any object, so the methods take `object`, as those of `set` do for lookups.
_Item: TypeAlias = object
_Key: TypeAlias = Callable[[Any], object]
_Hash: TypeAlias = Literal["fast", "keyed", "sealed"]
_Path: TypeAlias = str | PathLike[str]
_Secret: TypeAlias = bytes | bytearray | _Path
_SetKind: TypeAlias = Literal[
    "blocked",
    "standard",
    "partitioned",
    "floom",
    "cuckoo",
    "counting",
    "variable-increment",
    "deletable",
    "quotient",
    "scalable",
    "aging",
    "fuse",
]

_ShardKind: TypeAlias = Literal["blocked", "standard", "partitioned"]

# The formats and the funnels of other libraries.
_Format: TypeAlias = Literal[
    "datasketches", "dcso", "guava", "redisbloom", "sbbf", "spark", "spark2"
]
_Funnel: TypeAlias = Literal["utf8", "unencoded", "bytes", "long", "int"]

@type_check_only
class _ArrowArray(Protocol):
    # Some libraries do not name the type of capsules.
    def __arrow_c_array__(
        self, requested_schema: Any = None
    ) -> tuple[object, object]: ...

@type_check_only
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...

@type_check_only
class _Array(Protocol):
    # A numpy array, or an object that numpy makes one of.
    def __array__(self) -> Any: ...

@type_check_only
class _Reader(Protocol):
    def read(self) -> bytes: ...

@type_check_only
class _Writer(Protocol):
    def write(self, data: bytes, /) -> object: ...

_Arrow: TypeAlias = _ArrowArray | _ArrowStream
_Items: TypeAlias = Iterable[_Item] | Buffer | _Array | _Arrow

@type_check_only
class _Stats(TypedDict):
    kind: str
    holds: Literal["set", "map", "multiset", "sketch"]
    cells: int
    hashes: int
    bits: int
    bytes: int
    capacity: int | None
    count: int | None
    estimated_count: float | None
    estimated_count_error: float | None
    fill: float
    fpr_target: float | None
    fpr_now: float
    hash: _Hash
    public_hash: bool
    # Some kinds have more.
    bits_of_a_cell: NotRequired[float]
    bits_per_cell: NotRequired[float]
    code_book_bytes: NotRequired[float]
    collided_regions: NotRequired[float]
    decay: NotRequired[float]
    deletability: NotRequired[float]
    depth: NotRequired[float]
    distinct_fingerprints: NotRequired[float]
    epoch: NotRequired[float]
    error: NotRequired[float]
    error_bound: NotRequired[float]
    fingerprint_bits: NotRequired[float]
    generations: NotRequired[float]
    groups: NotRequired[float]
    k: NotRequired[float]
    keys_without_a_place: NotRequired[float]
    levels: NotRequired[float]
    live_generations: NotRequired[float]
    load: NotRequired[float]
    probability_of_more: NotRequired[float]
    reachable_patterns: NotRequired[float]
    regions: NotRequired[float]
    seen_patterns: NotRequired[float]
    slots_per_bucket: NotRequired[float]
    stages: NotRequired[float]
    standard_error: NotRequired[float]
    stuck_cells: NotRequired[float]
    values: NotRequired[float]  # type: ignore[misc,unused-ignore]
    width: NotRequired[float]

@type_check_only
class _ShardedStats(_Stats):
    shards: int

@type_check_only
class _Probe(TypedDict):
    section: int
    bit: int
    bits: int
    line: int
    value: int

@type_check_only
class _Explanation(TypedDict):
    key: Any
    kind: str
    hash: str
    digest: str
    probes: list[_Probe]
    member: bool
    first_zero: int | None

@type_check_only
class _ForeignStats(TypedDict):
    format: _Format
    bits: int
    bits_set: int
    hashes: int
    fill: float
    links: int
    capacity: int | None
    count: int | None
    fpr_target: float | None
    fpr_now: float
    seed: int | None
    remark: str | None

@type_check_only
class _ForeignProbe(TypedDict):
    link: int
    bit: int
    value: int

@type_check_only
class _ForeignExplanation(TypedDict):
    key: Any
    format: _Format
    probes: list[_ForeignProbe]
    member: bool
    first_zero: int | None

@type_check_only
class _Abilities(TypedDict):
    add: bool
    remove: bool
    grow: bool
    forget: bool
    union: bool
    intersect: bool
    fold: bool

@type_check_only
class _Plan(TypedDict):
    kind: str
    capacity: int
    bits: int
    built_bits: int
    hashes: int
    bytes: int
    fpr: float
    built_fpr: float
    fpr_target: float
    bits_per_key: float
    lines_touched: float
    can: _Abilities

__version__: Final[str]

@disjoint_base
class Structure:
    @property
    def kind(self) -> str: ...
    @property
    def hash(self) -> _Hash: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def meta(self) -> dict[str, str]: ...
    def save(
        self,
        file: _Path | _Writer,
        *,
        embed_secret: bool = False,
        meta: dict[str, str] | None = None,
        format: _Format | None = None,
    ) -> None: ...
    @classmethod
    def load(
        cls,
        file: _Path | _Reader,
        *,
        secret: _Secret | None = None,
        key: _Key | None = None,
    ) -> Self: ...
    def to_bytes(self, *, embed_secret: bool = False) -> bytes: ...
    @classmethod
    def from_bytes(
        cls,
        data: Buffer,
        *,
        secret: _Secret | None = None,
        key: _Key | None = None,
    ) -> Self: ...
    def save_bytes(self) -> bytes: ...
    @classmethod
    def load_bytes(cls, data: Buffer) -> Self: ...
    def copy(self) -> Self: ...
    def stats(self) -> _Stats: ...
    def __bytes__(self) -> bytes: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[Callable[..., Structure], tuple[object, ...]]: ...
    def __sizeof__(self) -> int: ...

class Filter(Structure):
    @property
    def approx_items(self) -> float: ...
    @property
    def inserted(self) -> int | None: ...
    @property
    def size_in_bits(self) -> int: ...
    @property
    def expected_items(self) -> int | None: ...
    @property
    def false_positive_rate(self) -> float | None: ...
    def update(self, *others: _Items | Filter) -> None: ...
    @overload
    def contains_many(self, items: _Arrow) -> Mask: ...
    @overload
    def contains_many(self, items: _Array) -> NDArray[bool_]: ...
    @overload
    def contains_many(self, items: Iterable[_Item] | Buffer) -> list[bool]: ...
    def union(self, *others: _Items | Filter) -> Self: ...
    def intersection(self, *others: _Items | Filter) -> Self: ...
    def intersection_update(self, *others: _Items | Filter) -> None: ...
    def issubset(self, other: _Items | Filter) -> bool: ...
    def issuperset(self, other: _Items | Filter) -> bool: ...
    def overlap(self, other: Filter) -> tuple[float, float] | None: ...
    def why(self, item: _Item) -> _Explanation: ...
    def clear(self) -> None: ...
    def __or__(self, other: Filter, /) -> Self: ...
    def __ror__(self, other: Filter, /) -> Self: ...
    def __and__(self, other: Filter, /) -> Self: ...
    def __rand__(self, other: Filter, /) -> Self: ...
    def __ior__(self, other: Filter, /) -> Self: ...
    def __iand__(self, other: Filter, /) -> Self: ...
    def __le__(self, other: Filter, /) -> bool: ...
    def __lt__(self, other: Filter, /) -> bool: ...
    def __ge__(self, other: Filter, /) -> bool: ...
    def __gt__(self, other: Filter, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __bool__(self) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Foreign:
    def __new__(
        cls,
        format: _Format,
        expected_items: int,
        false_positive_rate: float,
        *,
        funnel: _Funnel | None = None,
        seed: int | None = None,
    ) -> Self: ...
    @property
    def format(self) -> _Format: ...
    @property
    def funnel(self) -> _Funnel | None: ...
    @property
    def read_only(self) -> bool: ...
    def add(self, item: _Item, /) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...
    def update(self, *others: _Items) -> None: ...
    @overload
    def contains_many(self, items: _Arrow) -> Mask: ...
    @overload
    def contains_many(self, items: _Array) -> NDArray[bool_]: ...
    @overload
    def contains_many(self, items: Iterable[_Item] | Buffer) -> list[bool]: ...
    def why(self, item: _Item) -> _ForeignExplanation: ...
    def stats(self) -> _ForeignStats: ...
    def save(
        self, file: _Path | _Writer, *, format: _Format | None = None
    ) -> None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def load(
        file: _Path | _Reader,
        *,
        format: _Format | None = None,
        funnel: _Funnel | None = None,
    ) -> Foreign: ...
    @staticmethod
    def from_bytes(
        data: Buffer, *, format: _Format | None = None, funnel: _Funnel | None = None
    ) -> Foreign: ...
    def copy(self) -> Self: ...
    def __bytes__(self) -> bytes: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[Callable[..., Foreign], tuple[object, ...]]: ...

@final
class Sharded:
    @staticmethod
    def build(
        items: _Items,
        expected_items: int,
        false_positive_rate: float,
        shards: int,
        path: _Path,
        *,
        kind: _ShardKind = "blocked",
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        embed_secret: bool = False,
        key: _Key | None = None,
    ) -> Sharded: ...
    @property
    def shards(self) -> int: ...
    @property
    def path(self) -> Path: ...
    @property
    def kind(self) -> _ShardKind: ...
    @property
    def hash(self) -> _Hash: ...
    @property
    def expected_items(self) -> int: ...
    @property
    def false_positive_rate(self) -> float: ...
    @property
    def inserted(self) -> int | None: ...
    @property
    def approx_items(self) -> float: ...
    @property
    def read_only(self) -> bool: ...
    # It is opened for lookups only.
    def add(self, item: _Item, /) -> NoReturn: ...
    def update(self, *others: _Items) -> NoReturn: ...
    def __contains__(self, item: _Item, /) -> bool: ...
    @overload
    def contains_many(self, items: _Arrow) -> Mask: ...
    @overload
    def contains_many(self, items: _Array) -> NDArray[bool_]: ...
    @overload
    def contains_many(self, items: Iterable[_Item] | Buffer) -> list[bool]: ...
    def stats(self) -> _ShardedStats: ...
    def __reduce__(self) -> tuple[Callable[..., Sharded], tuple[object, ...]]: ...

@final
class Bloom(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        kind: Literal["blocked", "standard", "partitioned"] = "blocked",
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Cuckoo(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def remove(self, item: _Item) -> None: ...
    def discard(self, item: _Item) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Counting(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        kind: Literal["counting", "variable-increment", "deletable"] = "counting",
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def remove(self, item: _Item) -> None: ...
    def discard(self, item: _Item) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Quotient(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def remove(self, item: _Item) -> None: ...
    def discard(self, item: _Item) -> bool: ...
    def resized(self, expected_items: int) -> Self: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Scalable(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Aging(Filter):
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        window: int | timedelta | None = None,
        generations: int = 8,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item, /) -> bool: ...
    def advance(self, now: float | None = None) -> None: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Fuse(Filter):
    def __new__(
        cls,
        items: _Items,
        false_positive_rate: float,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    # All items are given to the constructor.
    def add(self, item: _Item, /) -> NoReturn: ...
    def __contains__(self, item: _Item, /) -> bool: ...

@final
class Map(Structure):
    def __new__(
        cls,
        keys: _Items,
        values: Iterable[SupportsIndex] | Iterable[str],
        false_positive_rate: float = 0.01,
        *,
        kind: Literal["bloomier", "bloomier-mutable"] = "bloomier",
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    @property
    def largest_value(self) -> int: ...
    @property
    def names(self) -> dict[int, str] | None: ...
    @overload
    def get(self, key: _Item, default: None = None) -> int | str | bytes | None: ...
    @overload
    def get(self, key: _Item, default: _T) -> int | str | bytes | _T: ...
    def get_many(self, keys: _Items) -> list[int | str | bytes | None]: ...
    def __getitem__(self, key: _Item, /) -> int | str | bytes: ...
    def __setitem__(self, key: _Item, value: SupportsIndex, /) -> None: ...
    # The keys of a map are fixed.
    def __delitem__(self, key: _Item, /) -> NoReturn: ...
    def __contains__(self, key: _Item, /) -> bool: ...

@final
class Count(Structure):
    def __new__(
        cls,
        expected_items: int,
        *,
        noise: float = 0.005,
        kind: Literal["multi-resolution", "space-code"] = "multi-resolution",
        random_seed: int = 0,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item) -> None: ...
    def update(self, *others: _Items) -> None: ...
    def count(self, item: _Item) -> float: ...
    def interval(self, item: _Item) -> tuple[float, float, float]: ...
    def count_many(self, items: _Items) -> list[float]: ...
    def clear(self) -> None: ...
    def __contains__(self, item: _Item, /) -> bool: ...
    def __or__(self, other: Count, /) -> Self: ...
    def __ror__(self, other: Count, /) -> Self: ...
    def __ior__(self, other: Count, /) -> Self: ...

@final
class Distinct(Structure):
    def __new__(
        cls,
        error: float = 0.01,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item) -> None: ...
    def update(self, *others: _Items) -> None: ...
    def count(self) -> float: ...
    def estimate(self) -> tuple[float, float]: ...
    def clear(self) -> None: ...
    def __or__(self, other: Distinct, /) -> Self: ...
    def __ror__(self, other: Distinct, /) -> Self: ...
    def __ior__(self, other: Distinct, /) -> Self: ...

@final
class CountMin(Structure):
    def __new__(
        cls,
        error: float = 0.001,
        probability: float = 0.01,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item) -> None: ...
    def update(self, *others: _Items) -> None: ...
    def count(self, item: _Item) -> int: ...
    def clear(self) -> None: ...
    def __or__(self, other: CountMin, /) -> Self: ...
    def __ror__(self, other: CountMin, /) -> Self: ...
    def __ior__(self, other: CountMin, /) -> Self: ...

@final
class TopK(Structure):
    def __new__(
        cls,
        k: int,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item) -> None: ...
    def update(self, *others: _Items) -> None: ...
    def count(self, item: _Item) -> int: ...
    @overload
    def items(self, type: type[str] | None = None) -> list[tuple[str, int]]: ...
    @overload
    def items(self, type: type[bytes]) -> list[tuple[bytes, int]]: ...
    @overload
    def items(self, type: type[int]) -> list[tuple[int, int]]: ...
    def clear(self) -> None: ...
    def __or__(self, other: TopK, /) -> Self: ...
    def __ror__(self, other: TopK, /) -> Self: ...
    def __ior__(self, other: TopK, /) -> Self: ...

@final
class Frequent(Structure):
    def __new__(
        cls,
        k: int,
        *,
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        key: _Key | None = None,
    ) -> Self: ...
    def add(self, item: _Item) -> None: ...
    def update(self, *others: _Items) -> None: ...
    def count(self, item: _Item) -> int: ...
    @overload
    def items(self, type: type[str] | None = None) -> list[tuple[str, int]]: ...
    @overload
    def items(self, type: type[bytes]) -> list[tuple[bytes, int]]: ...
    @overload
    def items(self, type: type[int]) -> list[tuple[int, int]]: ...
    def clear(self) -> None: ...
    def __or__(self, other: Frequent, /) -> Self: ...
    def __ror__(self, other: Frequent, /) -> Self: ...
    def __ior__(self, other: Frequent, /) -> Self: ...

@final
class Mask:
    def to_list(self) -> list[bool | None]: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> bool | None: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[bool | None]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bool | None]: ...
    def __array__(
        self, dtype: DTypeLike | None = None, *, copy: bool | None = None
    ) -> NDArray[Any]: ...
    def __arrow_c_array__(
        self, requested_schema: object = None
    ) -> tuple[CapsuleType, CapsuleType]: ...

# The class depends on the file. `Bloom.load` and its like have a precise type.
@overload
def load(
    file: _Path | _Reader, *, format: _Format, funnel: _Funnel | None = None
) -> Foreign: ...
@overload
def load(
    file: _Path | _Reader,
    *,
    secret: _Secret | None = None,
    key: _Key | None = None,
    format: None = None,
    funnel: _Funnel | None = None,
) -> Any: ...
@overload
def open(
    path: _Path, *, format: _Format, funnel: _Funnel | None = None
) -> Foreign: ...
@overload
def open(
    path: _Path,
    *,
    secret: _Secret | None = None,
    key: _Key | None = None,
    format: None = None,
    funnel: _Funnel | None = None,
) -> Any: ...
def plan(
    expected_items: int, false_positive_rate: float, *, kind: _SetKind = "blocked"
) -> _Plan: ...
def _restore(data: bytes, key: _Key | None) -> Structure: ...
def _restore_foreign(
    data: bytes, format: _Format, funnel: _Funnel | None
) -> Foreign: ...
def _restore_sharded(path: _Path, key: _Key | None) -> Sharded: ...

# One filter built by processes that share no memory. A piece is at most 128 KiB and 40 bytes long.
@final
class _Layout:
    def __new__(
        cls,
        expected_items: int,
        false_positive_rate: float,
        *,
        kind: Literal["blocked", "standard", "partitioned"] = "blocked",
        hash: _Hash | None = None,
        secret: _Secret | None = None,
        seed: int = 0,
        shards: int | None = None,
        embed_secret: bool = False,
    ) -> Self: ...
    @property
    def ranges(self) -> int: ...
    @property
    def shards(self) -> int | None: ...
    @property
    def file_bytes(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[bytes], _Layout], tuple[bytes]]: ...

@final
class _Collector:
    def __new__(cls, layout: _Layout) -> Self: ...
    def add(self, keys: _Items) -> None: ...
    def drain(self, last: bool = False) -> list[tuple[int, bytes]]: ...

@final
class _Merge:
    def __new__(cls, layout: _Layout, range: int) -> Self: ...
    def add(self, piece: Buffer) -> None: ...
    def update(self, pieces: _ArrowArray | _ArrowStream | Iterable[Buffer]) -> None: ...
    @property
    def inserted(self) -> int: ...
    def bits(self) -> bytes: ...
    def pieces(self) -> list[bytes]: ...
    def write(self, partial: _Path) -> bytes: ...
    def save_shard(self, folder: _Path) -> None: ...

def _restore_layout(data: bytes) -> _Layout: ...
def _assemble(
    layout: _Layout, parts: Iterable[tuple[int, Buffer]], inserted: int
) -> Bloom: ...
def _assemble_pieces(layout: _Layout, pieces: Iterable[Buffer]) -> Bloom: ...
def _create_file(layout: _Layout, file: _Path) -> str: ...
def _finish_file(
    layout: _Layout,
    file: _Path,
    partial: _Path,
    inserted: int,
    sums: Iterable[tuple[int, Buffer]] | None = None,
) -> None: ...
def _seal(layout: _Layout, folder: _Path) -> None: ...
