//! Lets the sources ask whether the interpreter has a global lock.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
