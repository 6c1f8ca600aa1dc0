//! The lab: tables, curves and claims of the literature on Bloom filters, reproduced with umbel's
//! own filters, judged and drawn.
//!
//! # What an experiment is
//!
//! An [`Experiment`] is a claim of the literature and the code that tests it. Its [`About`] names
//! the claim, the works that make it, the set-up, the chapter of the report and what to do with the
//! result. Its `run` returns [`Findings`]: tables, charts, and [`Criterion`]s that hold or do not.
//! An experiment whose criteria all hold confirms its claim, or the correction of a wrong one; each
//! [`Erratum`] of a source document points to the criteria that show it.
//!
//! [`all`] lists the experiments, [`run`] runs them, and [`report`] writes the page with their
//! charts, criteria and tables. `umbel lab run` does both.
//!
//! ```
//! use umbel_lab::{Lab, Scale, find};
//! let experiment = find("E1b").expect("the worked examples");
//! let findings = experiment.run(&Lab::new(Scale::Quick, 1))?;
//! assert!(findings.criteria.iter().all(|criterion| criterion.holds));
//! # Ok::<(), umbel_lab::Error>(())
//! ```
//!
//! # How to write one
//!
//! Add a file to `experiments/` and a line to the list in `experiments/mod.rs`. Describe each
//! number once, with a [`Sweep`]: a row of a sweep becomes a row of the table, points of the chart
//! and criteria. [`Judge`] adds criteria that do not belong to a row. Numbers that a reader may
//! want to change are [`Parameter`]s, with one default for quick runs and one for full runs.
//!
//! ```
//! use umbel::{Bloom, Standard, sizing::rate};
//! use umbel_lab::{Axis, Findings, Lab, Parameter, Result, Scale, Sweep, measure};
//!
//! const KEYS: Parameter =
//!     Parameter::count("n", "keys in a filter", [1000, 100_000], [100, 1_000_000]);
//!
//! // The `run` of an experiment: the measured rate agrees with the formula, whatever k is.
//! fn run(lab: &Lab) -> Result<Findings> {
//!     let n = lab.count(&KEYS);
//!     let (x, y) = (Axis::linear("hash functions k"), Axis::log("false-positive rate"));
//!     let mut sweep = Sweep::new("rates").chart("rates", "Rate by hash functions", x, y);
//!     for k in 1..=3 {
//!         let build = |hasher| Bloom::with_layout(Standard::new(8 * n, k)?, hasher);
//!         let measured = measure::rate(lab, 10, n, 20_000, build)?;
//!         let theory = rate::classic(8 * n, n, k)?;
//!         sweep
//!             .at(k.into())
//!             .cell("k", k)
//!             .value("theory", theory, 4).line("theory", 0)
//!             .rate("measured", &measured, 4).dots("measured", 0)
//!             .agrees(format!("rate with k = {k}"), theory, 0.02);
//!     }
//!     let mut findings = Findings::default();
//!     findings.add(sweep);
//!     findings.verdict = "The filters have the rate of the formula.".into();
//!     Ok(findings)
//! }
//!
//! let findings = run(&Lab::new(Scale::Quick, 1))?;
//! assert_eq!((findings.tables[0].rows.len(), findings.criteria.len()), (3, 3));
//! # Ok::<(), umbel_lab::Error>(())
//! ```
//!
//! # Chance
//!
//! Measurements depend only on the seed, not on the number of threads. Keys are generated from
//! counters by a bijection that has nothing in common with the hashes of the library, and members
//! and strangers are disjoint by construction ([`Keys`]).
//!
//! Tolerances are four standard errors, or the exact tail of a count at the same confidence
//! ([`Law`]), so one criterion in sixteen thousand fails by chance. To see whether a tolerance is
//! right, run all experiments with many seeds:
//!
//! ```sh
//! for seed in $(seq 20); do umbel lab run all --seed $seed --out lab-$seed || true; done
//! grep -l '"holds": false' lab-*/*/*.json
//! ```

mod chapter;
mod chart;
mod criterion;
mod entropy;
mod errata;
mod error;
mod experiment;
mod experiments;
mod keys;
pub mod measure;
mod popularity;
mod references;
mod report;
mod run;
mod sweep;
mod table;
mod tail;
pub mod trace;
mod traffic;
mod words;

pub use chapter::Chapter;
pub use chart::{Axis, Chart, Mark, Series};
pub use criterion::{Criterion, Judge};
pub use errata::{ERRATA, Erratum};
pub use error::{Error, Result};
pub use experiment::{About, Experiment, Findings, Lab, Parameter, Scale};
pub use experiments::{all, find};
pub use keys::Keys;
pub use references::Reference;
pub use report::report;
pub use run::{Outcome, run};
pub use sweep::{Point, Sweep};
pub use table::Table;
pub use tail::{FOUR_SIGMA, Law};
pub use words::{WordsReport, words};
