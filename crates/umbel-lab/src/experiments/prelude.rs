//! The names that experiments share.

pub use crate::{
    About, Axis, Chart, Criterion, Experiment, Findings, Judge, Keys, Lab, Law, Mark, Parameter, Result,
    Series, Sweep, measure,
};
