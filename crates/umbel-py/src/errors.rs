//! Python exceptions for the errors of the library.
//!
//! The classes are defined in `python/umbel/_errors.py`, where their docstrings and bases can be
//! read. Each derives from `umbel.Error` and, where one fits, from the built-in exception that
//! Python programs already catch.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::fmt::Display;
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
        Error::Parameter { name, got, needs } => return bad_parameter(python_name(name), got, needs),
        Error::MissingKey { path, id } => {
            let place =
                if path.as_os_str().is_empty() { String::new() } else { format!("{}: ", path.display()) };
            return Exception::Secret.with(format!(
                "{place}this filter was built with a secret ({id}), and it is not the one given: pass it as secret=, \
                 16 or 32 bytes or the path of a key file"
            ));
        }
        Error::Mismatch(_) => Exception::Mismatch,
        Error::Format { .. } => Exception::Format,
        Error::Full { .. } => Exception::Full,
        Error::Cannot { .. } => Exception::Unsupported,
        Error::OutOfMemory { .. } => Exception::OutOfMemory,
        _ => Exception::Parameter,
    };
    exception.with(message)
}

/// Returns the exception for a parameter that is out of range.
pub fn bad_parameter(name: &str, got: impl Display, needs: impl Display) -> PyErr {
    Exception::Parameter.with(format!("{name} = {got} cannot be used: it needs {needs}"))
}

/// Returns the exception for a column with more rows than memory can hold results.
pub fn too_many_rows(rows: usize) -> PyErr {
    Exception::OutOfMemory.with(format!(
        "the system does not have the memory for the results of {rows} rows: pass the column in parts"
    ))
}

/// Returns the name in Python of a parameter of the library.
fn python_name(name: &'static str) -> &'static str {
    match name {
        "n" => "expected_items",
        "p" => "false_positive_rate",
        "embed_key" => "embed_secret",
        name => name,
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
    // An error that did not come from the system itself has no number.
    let (name, usual) = match source.kind() {
        io::ErrorKind::NotFound => ("MissingFileError", Some("ENOENT")),
        io::ErrorKind::PermissionDenied => ("FilePermissionError", Some("EACCES")),
        io::ErrorKind::IsADirectory => ("DirectoryError", Some("EISDIR")),
        _ => (Exception::File.name(), None),
    };
    Python::attach(|py| {
        let instance = class(py, name).and_then(|class| {
            let number = match (source.raw_os_error(), usual) {
                (None, Some(usual)) => Some(py.import("errno")?.getattr(usual)?.extract()?),
                (number, _) => number,
            };
            class.call1((number, message.as_str(), path.as_os_str()))
        });
        instance.map_or_else(|_| Exception::File.with(message.clone()), PyErr::from_value)
    })
}
