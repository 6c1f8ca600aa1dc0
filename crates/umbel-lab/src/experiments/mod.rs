//! One file for each experiment, and the list of them all.

mod attenuated;
mod attribution;
mod attribution_methods;
mod bloomier;
mod caches;
mod cardinality;
mod choice_of_k;
mod counting;
mod cuckoo;
mod deletability;
mod exact_rate;
mod exact_structures;
mod floom;
mod floom_time;
mod generalized;
mod groups;
mod hash_families;
mod hashes;
mod header_filter;
mod hyphen;
mod icarus;
mod load;
mod password;
mod payload;
mod prelude;
mod privacy;
mod query_rules;
mod rate_table;
mod removal;
mod scalable;
mod similar;
mod space_code;
mod spell;
mod spie;
mod stuffing;
mod summary;
mod tables;
mod time_by_k;
mod time_by_size;
mod variable_increment;
mod vault;
mod words;
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
        Box::new(floom::Patterns),
        Box::new(floom_time::PatternTimes),
        Box::new(payload::RandomStrings),
        Box::new(payload::SplicedStrings),
        Box::new(attribution::WrongAttributions),
        Box::new(attribution_methods::Methods),
        Box::new(stuffing::Stuffing),
        Box::new(space_code::FlowSizes),
        Box::new(groups::Groups),
        Box::new(bloomier::Values),
        Box::new(cuckoo::Alternatives),
        Box::new(words::WordList),
        Box::new(choice_of_k::ChoiceOfK),
        Box::new(time_by_k::TimeByHashes),
        Box::new(time_by_size::TimeBySize),
        Box::new(removal::Removal),
        Box::new(load::Load),
        Box::new(hash_families::HashFamilies),
        Box::new(exact_structures::ExactStructures),
        Box::new(summary::Summary),
        Box::new(query_rules::QueryRules),
        Box::new(icarus::Icarus),
        Box::new(attenuated::AttenuatedRouting),
        Box::new(spie::Spie),
        Box::new(privacy::Privacy),
        Box::new(generalized::Generalized),
        Box::new(header_filter::HeaderFilter),
        Box::new(password::Difference),
        Box::new(tables::Tables),
        Box::new(caches::Caches),
        Box::new(hyphen::Hyphenation),
        Box::new(vault::DictionaryAttack),
        Box::new(spell::Spelling),
        Box::new(similar::Similar),
    ]
}

/// The experiment with this id, in capitals or not.
pub fn find(id: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|experiment| experiment.about().id.eq_ignore_ascii_case(id))
}
