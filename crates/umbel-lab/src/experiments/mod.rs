//! The experiments, one file each or one file for a few that share their set-up, and the list of
//! all.

mod attack;
mod attenuated;
mod attribution;
mod attribution_methods;
mod bloomier;
mod caches;
mod cardinality;
mod choice_of_k;
mod compressed;
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
mod sharded;
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

/// Returns every experiment, chapter by chapter.
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        // Sizing and rates
        Box::new(rate_table::RateTable),
        Box::new(worked_examples::WorkedExamples),
        Box::new(exact_rate::ExactRate),
        Box::new(choice_of_k::ChoiceOfK),
        Box::new(query_rules::QueryRules),
        // Kinds of sets
        Box::new(summary::Summary),
        Box::new(load::Load),
        Box::new(removal::Removal),
        Box::new(counting::Counters),
        Box::new(variable_increment::VariableIncrements),
        Box::new(deletability::Deletability),
        Box::new(scalable::Growing),
        Box::new(cuckoo::Alternatives),
        Box::new(floom::Patterns),
        Box::new(floom_time::PatternTimes),
        // Maps and counts
        Box::new(cardinality::Estimates),
        Box::new(space_code::FlowSizes),
        Box::new(groups::Groups),
        Box::new(bloomier::Values),
        // Hashing and speed
        Box::new(hashes::Hashes),
        Box::new(hash_families::HashFamilies),
        Box::new(time_by_k::TimeByHashes),
        Box::new(time_by_size::TimeBySize),
        Box::new(exact_structures::ExactStructures),
        // Networks
        Box::new(payload::RandomStrings),
        Box::new(payload::SplicedStrings),
        Box::new(attribution::WrongAttributions),
        Box::new(attribution_methods::Methods),
        Box::new(stuffing::Stuffing),
        Box::new(icarus::Icarus),
        Box::new(attenuated::AttenuatedRouting),
        Box::new(spie::Spie),
        Box::new(generalized::Generalized),
        Box::new(header_filter::HeaderFilter),
        // Documents and words
        Box::new(words::WordList),
        Box::new(hyphen::Hyphenation),
        Box::new(spell::Spelling),
        Box::new(similar::Similar),
        // Caches and tables
        Box::new(caches::Caches),
        Box::new(compressed::Compressed),
        Box::new(tables::Tables),
        Box::new(sharded::ShardedService),
        // Privacy and security
        Box::new(password::Difference),
        Box::new(vault::DictionaryAttack),
        Box::new(privacy::Privacy),
        Box::new(attack::ChosenKeys),
    ]
}

/// Returns the experiment with this id; upper and lower case are equal.
pub fn find(id: &str) -> Option<Box<dyn Experiment>> {
    all().into_iter().find(|experiment| experiment.about().id.eq_ignore_ascii_case(id))
}
