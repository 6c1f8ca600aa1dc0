//! Reports printed: filters and plans, for people and as JSON, and the tables, rates and sizes that
//! every report is made of.

mod filter;
mod foreign;
mod plan;
mod shards;
mod table;
mod text;

pub use filter::FilterReport;
pub use foreign::ForeignReport;
pub use plan::{FormulaReport, PlanReport};
pub use shards::ShardsReport;
pub use table::{Columns, Rows};
pub use text::{count, escaped, other_names, percent, printable, shell_word, size, truncated};
