"""A producer of the C data interface of Arrow that makes any promise, and keeps few of them."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int64, c_void_p, pointer, py_object


class Schema(Structure):
    """`struct ArrowSchema`."""


class Array(Structure):
    """`struct ArrowArray`."""


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, POINTER(Array))
Schema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64),
    ("n_children", c_int64), ("children", POINTER(POINTER(Schema))), ("dictionary", POINTER(Schema)),
    ("release", RELEASE_SCHEMA), ("private_data", c_void_p),
]  # fmt: skip
Array._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
    ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)), ("release", RELEASE_ARRAY), ("private_data", c_void_p),
]  # fmt: skip


@RELEASE_SCHEMA
def release_schema(schema):
    schema.contents.release = RELEASE_SCHEMA()


@RELEASE_ARRAY
def release_array(array):
    array.contents.release = RELEASE_ARRAY()


def schema(format, children=(), dictionary=None, **others):
    """A schema with these fields; those of `others` replace what they should be."""
    made = Schema(format=format, name=b"", flags=2, release=release_schema)
    made.n_children = len(children)
    if children:
        made.children = (POINTER(Schema) * len(children))(*map(_pointer, children))
    if dictionary is not None:
        made.dictionary = pointer(dictionary)
    return _replaced(made, others)


def array(length, memory, children=(), dictionary=None, **others):
    """An array with these fields; a part of the memory is `bytes`, or None for a null pointer."""
    made = Array(length=length, null_count=-1, n_buffers=len(memory), release=release_array)
    made.kept = [None if it is None else ctypes.create_string_buffer(it, len(it) + 64) for it in memory]
    made.buffers = (c_void_p * max(1, len(memory)))(
        *(None if it is None else ctypes.addressof(it) for it in made.kept)
    )
    made.n_children = len(children)
    if children:
        made.children = (POINTER(Array) * len(children))(*map(_pointer, children))
    if dictionary is not None:
        made.dictionary = pointer(dictionary)
    return _replaced(made, others)


def _pointer(it):
    return None if it is None else pointer(it)


def _replaced(made, others):
    for name, value in others.items():
        setattr(made, name, value)
    return made


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = py_object
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]


class Column:
    """An object that passes a schema and an array."""

    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    def __arrow_c_array__(self, requested_schema=None):
        return (
            _new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )
