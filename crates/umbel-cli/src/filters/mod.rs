//! Filters opened, built, filled and saved.
//!
//! [`Secrets`] opens filters; [`HashArgs`], [`SizeArgs`], [`KindOptionArgs`] and [`budget`] plan
//! new ones; [`SetBuilder`], [`ParallelFill`] and [`construct`] put keys into them; [`SaveArgs`] and
//! [`Target`] write them, and [`LockArgs`] keep other processes out meanwhile.

pub mod budget;
mod build;
pub mod construct;
mod counted_keys;
pub mod digest_spool;
mod distinct;
mod fill;
mod foreign;
mod foreign_build;
mod group;
mod hash_args;
mod kind_options;
mod literature;
mod lock;
mod messages;
mod model;
mod open;
mod record;
mod save;
mod secrets;
mod shards;
mod size_args;
pub mod sketches;
mod target;

pub use build::SetBuilder;
pub use counted_keys::CountedKeys;
pub use distinct::{DistinctCounter, capacity_for, new_distinct};
pub use fill::{ParallelFill, warn_if_overfull, warn_if_overfull_by};
pub use foreign::{ForeignArgs, FormatArg, Opening, explain_foreign, is_not_a_filter, missing_funnel};
pub use foreign_build::ForeignBuilder;
pub use group::FilterGroup;
pub use hash_args::{HashArgs, TransientHashArgs};
pub use kind_options::{CellScheme, KindOptionArgs, MultisetArgs, default_rate, window_keys};
pub use literature::LiteratureBuilder;
pub use lock::LockArgs;
pub use messages::{MessageTarget, load_public, read_message, read_universe};
pub use model::Model;
pub use open::{
    check_category, check_not_fixed, check_plain, check_same_form, check_whole, sketch_command, wrong_kind,
};
pub use record::{record, warn_if_noisy};
pub use save::SaveArgs;
pub use secrets::{NewKey, Secrets, key_file_beside, read_key};
pub use shards::{ShardArgs, explain_folder, report_shards, warn_if_overfull_shards};
pub use size_args::SizeArgs;
pub use target::{Target, already_exists, check_writable, explain_exists, folder};

/// The default rate of a filter.
pub const DEFAULT_RATE: f64 = 0.01;

/// The default noise of a multiset.
pub const DEFAULT_NOISE: f64 = 0.005;
