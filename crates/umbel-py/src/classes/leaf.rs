//! The classes of sets that programs see, with the two operations that take one key.
//!
//! `add` and `in` take a few nanoseconds each, less than `PyO3`'s way of calling them. So each class
//! of sets that `PyO3` makes is a base, and the class that programs see is derived from it by the C
//! interface of Python, with these two as plain C functions: `add` without a list of arguments
//! (`METH_O`), and `in` as the slot `sq_contains`. Together they take half the time. Everything else
//! is inherited.
//!
//! An instance is made by `PyO3` as one of the base; [`wrap`] then changes its class.

use super::filter::Filter;
use super::kinds::{Aging, Bloom, Counting, Cuckoo, Fuse, Quotient, Scalable};
use super::map::Map;
use super::sketches::{Count, CountMin, Distinct, Frequent, TopK};
use super::structure::Structure;
use crate::errors::Exception;
use pyo3::ffi;
use pyo3::intern;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::PyType;
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use umbel::Kind;

/// The classes of sets that programs see, in the order of [`SETS`].
static LEAVES: PyOnceLock<[Py<PyType>; SETS.len()]> = PyOnceLock::new();

/// Returns a class that `PyO3` made.
type Base = fn(Python<'_>) -> Bound<'_, PyType>;

/// The name of each class of sets, and its base.
static SETS: [(&CStr, Base); 7] = [
    (c"umbel.Bloom", Bloom::type_object),
    (c"umbel.Cuckoo", Cuckoo::type_object),
    (c"umbel.Counting", Counting::type_object),
    (c"umbel.Quotient", Quotient::type_object),
    (c"umbel.Scalable", Scalable::type_object),
    (c"umbel.Aging", Aging::type_object),
    (c"umbel.Fuse", Fuse::type_object),
];

/// Adds the classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for leaf in leaves(module.py())? {
        let leaf = leaf.bind(module.py());
        module.add(leaf.name()?, leaf)?;
    }
    module.add_class::<Map>()?;
    module.add_class::<Count>()?;
    module.add_class::<Distinct>()?;
    module.add_class::<CountMin>()?;
    module.add_class::<TopK>()?;
    module.add_class::<Frequent>()
}

fn leaves(py: Python<'_>) -> PyResult<&[Py<PyType>; SETS.len()]> {
    LEAVES.get_or_try_init(py, || {
        let leaves: Vec<_> =
            SETS.iter().map(|(name, base)| derive(name, &base(py))).collect::<PyResult<_>>()?;
        leaves.try_into().map_err(|_| Exception::Unsupported.with("a class of sets is missing"))
    })
}

/// Returns the Python object of a structure, of the class that fits its kind.
///
/// # Errors
///
/// If no class does.
pub fn wrap(py: Python<'_>, structure: Structure) -> PyResult<Bound<'_, PyAny>> {
    let kind = structure.storage.read_now(py, |storage| storage.kind());
    let base = PyClassInitializer::from(structure);
    macro_rules! set {
        ($index:literal, $class:ident) => {{
            let object = Bound::new(py, base.add_subclass(Filter).add_subclass($class))?.into_any();
            object.setattr(intern!(py, "__class__"), &leaves(py)?[$index])?;
            Ok(object)
        }};
    }
    macro_rules! other {
        ($class:ident) => {
            Ok(Bound::new(py, base.add_subclass($class))?.into_any())
        };
    }
    match kind {
        Kind::Blocked | Kind::Standard | Kind::Partitioned | Kind::Floom => set!(0, Bloom),
        Kind::Cuckoo => set!(1, Cuckoo),
        Kind::Counting | Kind::VariableIncrement | Kind::Deletable => set!(2, Counting),
        Kind::Quotient => set!(3, Quotient),
        Kind::Scalable => set!(4, Scalable),
        Kind::Aging => set!(5, Aging),
        Kind::Fuse => set!(6, Fuse),
        Kind::Bloomier | Kind::BloomierMutable => other!(Map),
        Kind::SpaceCode | Kind::MultiResolution => other!(Count),
        Kind::Distinct => other!(Distinct),
        Kind::CountMin => other!(CountMin),
        Kind::TopK => other!(TopK),
        Kind::Frequent => other!(Frequent),
        _ => Err(Exception::Unsupported
            .with(format!("Python has no class for a filter of kind {kind}: use the command umbel"))),
    }
}

/// `PyMethodDef` has pointers to static data only.
struct Methods([ffi::PyMethodDef; 2]);

// SAFETY: the functions and texts that it points to are static and never change.
#[allow(unsafe_code, reason = "sound for the reason above")]
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods([
    ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: add },
        ml_flags: ffi::METH_O,
        ml_doc:
            c"add($self, item, /)\n--\n\nAdds an item. Returns whether it was certainly not there before.\n\n\
>>> f = Bloom(100, 0.01)\n>>> f.add(\"apple\"), f.add(\"apple\")\n(True, False)"
                .as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
]);

/// Derives a class that has `add` and `in` from a class that `PyO3` made.
fn derive(name: &'static CStr, base: &Bound<'_, PyType>) -> PyResult<Py<PyType>> {
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_sq_contains, contains as ffi::objobjproc as *mut _),
        // Python copies the definitions' addresses, and never writes to them.
        slot(ffi::Py_tp_methods, (&raw const METHODS.0).cast_mut().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        // The size of the base: there is no data here.
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification is complete and ends with an empty slot. Python has copied it when
    // the call returns, except for the name and the methods, which are static. The functions have
    // the types that their slots demand.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let leaf = unsafe {
        let leaf = ffi::PyType_FromSpecWithBases(&raw mut spec, base.as_ptr());
        Bound::from_owned_ptr_or_err(base.py(), leaf)?
    };
    leaf.setattr("__doc__", base.getattr("__doc__")?)?;
    Ok(leaf.cast_into::<PyType>()?.unbind())
}

/// `item in set`.
#[allow(unsafe_code, reason = "a function that Python calls")]
unsafe extern "C" fn contains(set: *mut ffi::PyObject, item: *mut ffi::PyObject) -> c_int {
    // SAFETY: Python calls the slot of a class with an instance of the class, and passes references
    // that live until it returns.
    let found = unsafe { with_set(set, item, Filter::contains_item) };
    found.map_or(-1, c_int::from)
}

/// `set.add(item)`.
#[allow(unsafe_code, reason = "a function that Python calls")]
unsafe extern "C" fn add(set: *mut ffi::PyObject, item: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as in `contains`; the type of `set` was checked by the descriptor of the method.
    let new = unsafe { with_set(set, item, Filter::add_item) };
    let Some(new) = new else { return std::ptr::null_mut() };
    // SAFETY: these are references to static objects, and the caller gets one of its own.
    unsafe {
        let answer = if new { ffi::Py_True() } else { ffi::Py_False() };
        ffi::Py_INCREF(answer);
        answer
    }
}

/// Calls `f`. Sets Python's exception and returns `None` if it fails or panics.
///
/// # Safety
///
/// The thread is attached, `set` points to an instance of [`Filter`], and both references live until
/// the end of the call.
#[allow(unsafe_code, reason = "turns the arguments of functions that Python calls into safe types")]
#[inline(always)]
unsafe fn with_set(
    set: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
    f: impl FnOnce(&Structure, &Bound<'_, PyAny>) -> PyResult<bool>,
) -> Option<bool> {
    // SAFETY: as the caller promises.
    let (set, item) = unsafe {
        let py = Python::assume_attached();
        (Borrowed::from_ptr(py, set).cast_unchecked::<Structure>(), Borrowed::from_ptr(py, item))
    };
    match catch_unwind(AssertUnwindSafe(|| f(set.get(), &item))) {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            error.restore(item.py());
            None
        }
        Err(panic) => {
            let message = panic.downcast_ref::<&str>().copied().unwrap_or("a panic in umbel");
            PanicException::new_err(message.to_owned()).restore(item.py());
            None
        }
    }
}
