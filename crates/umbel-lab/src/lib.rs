//! The lab: the tables, curves and claims of the literature, reproduced with this project's own filters, judged, and drawn.
//!
//! An [`Experiment`] describes a claim, tests it, and returns [`Findings`]: tables, charts, and [`Criterion`]s that hold or
//! do not. A [`Sweep`] describes a measurement once and yields all three. [`all`] lists the experiments. A new one is a file
//! in `experiments/` with its claim, its run and its criteria, and a line in that list.
//!
//! ```
//! use umbel_lab::{Lab, Scale, all, find};
//! let experiment = find("E1b").expect("the worked examples");
//! let findings = experiment.run(&Lab::new(Scale::Quick, 1))?;
//! assert!(findings.criteria.iter().all(|criterion| criterion.holds));
//! # Ok::<(), umbel_lab::Error>(())
//! ```
//!
//! Measurements depend on the seed alone, not on the number of threads: keys are made from counters by a bijection that has
//! nothing in common with the hashes of the library, and members and strangers are disjoint by construction.
//!
//! Tolerances are four standard errors, or the exact tail of a count at the same confidence ([`Law`]): one criterion in
//! sixteen thousand fails by chance. Running all experiments with many seeds shows whether a tolerance is right:
//!
//! ```sh
//! for seed in $(seq 20); do umbel lab run all --seed $seed --out lab-$seed || true; done
//! grep -l '"holds": false' lab-*/*/*.json
//! ```

mod chart;
mod criterion;
mod errata;
mod error;
mod experiment;
mod experiments;
mod keys;
pub mod measure;
mod report;
mod run;
mod sweep;
mod table;
mod tail;
pub mod trace;
mod traffic;
mod words;

pub use chart::{Axis, Chart, Mark, Series};
pub use criterion::{Criterion, Judge};
pub use errata::{ERRATA, Erratum};
pub use error::{Error, Result};
pub use experiment::{About, Experiment, Findings, Lab, Parameter, Scale};
pub use experiments::{all, find};
pub use keys::Keys;
pub use report::report;
pub use run::{Outcome, run};
pub use sweep::{Point, Sweep};
pub use table::Table;
pub use tail::{FOUR_SIGMA, Law};
pub use words::{WordsReport, words};
