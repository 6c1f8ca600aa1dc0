//! Python exceptions for the errors of the library.
//!
//! The classes are defined in `python/umbel/_errors.py`, where their docstrings and bases can be
//! read. Each derives from `umbel.Error` and, where one fits, from the built-in exception that
//! Python programs already catch.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::io;
use std::path::Path;
use umbel::internals::key_file::KeyFileError;

/// The exception classes of the package.
#[derive(Clone, Copy, Debug)]
pub enum Exception {
    /// A parameter is out of range, or two contradict each other.
    Parameter,
    /// Two filters differ in kind, shape, hash or seed.
    Mismatch,
    /// The contents of a file cannot be used.
    Format,
    /// The secret of a file is missing or wrong.
    Secret,
    /// There is no room for another key.
    Full,
    /// A kind does not support an operation.
    Unsupported,
    /// An object or a column cannot be a key.
    KeyType,
    /// The system refused an operation on a file.
    File,
    /// The system did not provide the memory.
    OutOfMemory,
}

impl Exception {
    fn name(self) -> &'static str {
        match self {
            Exception::Parameter => "ParameterError",
            Exception::Mismatch => "MismatchError",
            Exception::Format => "FormatError",
            Exception::Secret => "SecretError",
            Exception::Full => "FullError",
            Exception::Unsupported => "UnsupportedError",
            Exception::KeyType => "KeyTypeError",
            Exception::File => "FileError",
            Exception::OutOfMemory => "OutOfMemoryError",
        }
    }

    /// Makes an exception of this class.
    pub fn with(self, message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| match class(py, self.name()) {
            Ok(class) => PyErr::from_type(class, message),
            // The package is damaged: its own files cannot be imported.
            Err(_) => PyRuntimeError::new_err(message),
        })
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("umbel._errors")?.getattr(name)?.cast_into()?)
}

/// Converts an error of the library.
pub fn raise(error: umbel::Error) -> PyErr {
    use umbel::Error;
    let message = format!("{error:#}");
    let exception = match &error {
        Error::Io { path, source, .. } => return file_error(message, path, source),
        Error::Mismatch(_) => Exception::Mismatch,
        Error::Format { .. } => Exception::Format,
        Error::MissingKey { .. } => Exception::Secret,
        Error::Full { .. } => Exception::Full,
        Error::Cannot { .. } => Exception::Unsupported,
        Error::OutOfMemory { .. } => Exception::OutOfMemory,
        _ => Exception::Parameter,
    };
    match error {
        // The library names the option of the command line.
        Error::MissingKey { .. } => exception.with(message.replace("--key-file", "secret=")),
        _ => exception.with(message),
    }
}

/// Converts an error of a key file.
pub fn raise_key_file(error: KeyFileError) -> PyErr {
    let message = match &error {
        KeyFileError::Io { path, source, .. } => return file_error(format!("{error:#}"), path, source),
        _ => format!("{error:#}"),
    };
    Exception::Secret.with(message)
}

/// Makes the subclass of `FileError` that fits the system's error, with `errno` and `filename`.
pub fn file_error(message: String, path: &Path, source: &io::Error) -> PyErr {
    let name = match source.kind() {
        io::ErrorKind::NotFound => "MissingFileError",
        io::ErrorKind::PermissionDenied => "FilePermissionError",
        io::ErrorKind::IsADirectory => "DirectoryError",
        _ => Exception::File.name(),
    };
    Python::attach(|py| {
        let instance = class(py, name).and_then(|class| {
            let instance = class.call1((message.as_str(),))?;
            instance.setattr("errno", source.raw_os_error())?;
            instance.setattr("filename", path)?;
            Ok(instance)
        });
        instance.map_or_else(|_| Exception::File.with(message.clone()), PyErr::from_value)
    })
}
