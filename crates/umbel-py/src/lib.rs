//! The extension module of the Python package `umbel`.
//!
//! Users import the package, which is described in the guide, `docs/guide/python.md`. This crate
//! translates between Python and the library:
//!
//! | module | job |
//! | --- | --- |
//! | [`keys`] | the keys in Python objects, buffers and Arrow columns, as digests |
//! | [`storage`], [`shared`] | a structure in memory or in a mapped file, shared between threads |
//! | [`answers`] | the answers to many keys, as a list, a numpy array or an Arrow array |
//! | [`classes`] | the Python classes |
//! | [`errors`] | the Python exceptions |
//!
//! A batch of keys is hashed and looked up *detached*: without the interpreter, so that other threads
//! run Python code meanwhile. Only what needs Python objects runs attached.
//!
//! `unsafe` is confined to [`shared`], to the reading of borrowed memory in [`keys`], and to the C
//! functions in [`classes`].

mod answers;
mod classes;
mod errors;
mod keys;
mod secret;
mod shared;
mod storage;

use pyo3::prelude::*;

/// The extension module of the package `umbel`.
#[pymodule(gil_used = false)]
fn _umbel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    classes::add_to(module)?;
    module.add_class::<answers::Mask>()?;
    module.add_function(wrap_pyfunction!(classes::load, module)?)?;
    module.add_function(wrap_pyfunction!(classes::open, module)?)?;
    module.add_function(wrap_pyfunction!(classes::plan, module)?)?;
    module.add_function(wrap_pyfunction!(classes::restore, module)?)?;
    module.add_function(wrap_pyfunction!(classes::restore_foreign, module)?)?;
    module.add_function(wrap_pyfunction!(classes::restore_sharded, module)?)
}
