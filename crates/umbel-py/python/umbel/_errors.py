"""The exceptions of the package.

Each derives from `Error` and, where one fits, from the built-in exception that programs already catch.
"""


class Error(Exception):
    """The base class of all exceptions that umbel raises."""


class ParameterError(Error, ValueError):
    """A parameter is out of range, or two parameters contradict each other."""


class MismatchError(Error, ValueError):
    """Two filters differ in kind, shape, hash or seed, and cannot be combined."""


class FormatError(Error, ValueError):
    """The contents of a file are damaged, of another class, or not a filter."""


class SecretError(Error, ValueError):
    """The secret of a filter is missing, wrong, or not a secret."""


class FullError(Error):
    """There is no room for another item; the filter has not changed."""


class UnsupportedError(Error, TypeError):
    """This kind of filter does not support the operation, or it was opened for reading only."""


class KeyTypeError(Error, TypeError):
    """An object or a column is of a type that cannot be a key."""


class OutOfMemoryError(Error, MemoryError):
    """The system did not provide the memory."""


class FileError(Error, OSError):
    """The system refused an operation on a file.

    `errno` and `filename` are those of the built-in exception; `strerror` is the whole message.
    """

    def __str__(self):
        # `OSError` would put the number before the sentence and the path, which it has, behind it.
        return self.strerror or super().__str__()


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


class FilePermissionError(FileError, PermissionError):
    """The user may not read or write the file."""


class DirectoryError(FileError, IsADirectoryError):
    """The path is that of a directory."""


for _class in list(vars().values()):
    if isinstance(_class, type):
        # As users import them, in tracebacks and pickles.
        _class.__module__ = "umbel"
del _class
