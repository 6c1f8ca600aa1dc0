//! One file for each experiment, and the list of them all.

mod bloomier;
mod cardinality;
mod counting;
mod deletability;
mod exact_rate;
mod exact_structures;
mod groups;
mod hash_families;
mod hashes;
mod load;
mod payload;
mod rate_table;
mod scalable;
mod space_code;
mod summary;
mod time_by_k;
mod time_by_size;
mod variable_increment;
mod worked_examples;

use crate::Experiment;

/// Every experiment, in the order of the report.
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(rate_table::RateTable),
        Box::new(worked_examples::WorkedExamples),
        Box::new(exact_rate::ExactRate),
        Box::new(hashes::Hashes),
        Box::new(cardinality::Estimates),
        Box::new(counting::Counters),
        Box::new(variable_increment::VariableIncrements),
        Box::new(deletability::Deletability),
        Box::new(scalable::Growing),
        Box::new(payload::RandomStrings),
        Box::new(payload::SplicedStrings),
        Box::new(space_code::FlowSizes),
        Box::new(groups::Groups),
        Box::new(bloomier::Values),
        Box::new(time_by_k::TimeByHashes),
        Box::new(time_by_size::TimeBySize),
        Box::new(load::Load),
        Box::new(hash_families::HashFamilies),
        Box::new(exact_structures::ExactStructures),
        Box::new(summary::Summary),
    ]
}

/// The experiment with this id, in capitals or not.
pub fn find(id: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|experiment| experiment.about().id.eq_ignore_ascii_case(id))
}
