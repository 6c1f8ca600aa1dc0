//! The imports that experiments share.

pub use crate::references::*;
pub use crate::{
    About, Axis, Chapter, Chart, Criterion, Experiment, Findings, Judge, Keys, Lab, Law, Mark, Parameter,
    Result, Series, Sweep, measure,
};
