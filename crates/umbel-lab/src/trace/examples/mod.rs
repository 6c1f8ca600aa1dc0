//! The examples by subject, and the list of all.

mod applications;
mod bits;
mod blocks;
mod bloomier;
mod counters;
mod groups;
mod growing;
mod paths;
mod regions;
mod stores;

use super::Example;
pub(crate) use bits::positions;
pub(crate) use bloomier::elements;

/// Returns every example, by source document.
pub fn examples() -> &'static [Example] {
    const EXAMPLES: &[Example] = &[
        Example {
            name: "insert",
            title: "Three numbers into ten bits",
            source: "Jambura et al. 2026 (Bloom Filter), figures 1 to 4",
            steps: bits::insert,
        },
        Example {
            name: "search",
            title: "A member, a certain no, and a false positive",
            source: "Jambura et al. 2026 (Bloom Filter), figure 5",
            steps: bits::search,
        },
        Example {
            name: "two-hashes",
            title: "Two keys, two hash functions, and a third key",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 1",
            steps: bits::two_hashes,
        },
        Example {
            name: "parameters",
            title: "From keys and rate to bits and hash functions",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 2",
            steps: bits::parameters,
        },
        Example {
            name: "counting",
            title: "Counters, and how a key is removed",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 7",
            steps: counters::counting,
        },
        Example {
            name: "variable-increment",
            title: "Increments that exclude keys",
            source: "Rottenstreich et al. 2014; Schierz 2022",
            steps: counters::variable_increment,
        },
        Example {
            name: "deletable",
            title: "Regions in which bits may be cleared",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 9",
            steps: regions::deletable,
        },
        Example {
            name: "floom",
            title: "A bit for each pattern of regions",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 10",
            steps: regions::floom,
        },
        Example {
            name: "web-cache",
            title: "A filter in front of a cache",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 13",
            steps: applications::web_cache,
        },
        Example {
            name: "similarity",
            title: "Two pages compared by their filters",
            source: "Schierz 2022 (Wie zuverlässig ist Probabilismus), figure 14",
            steps: applications::similarity,
        },
        Example {
            name: "loop",
            title: "A packet in a loop",
            source: "Whitaker and Wetherall 2002; Schierz 2022",
            steps: applications::packet_loop,
        },
        Example {
            name: "two-keys",
            title: "Two insertions, a no and a false positive",
            source: "Honoroff 2006 (An Examination of Bloom Filters), example",
            steps: bits::two_keys,
        },
        Example {
            name: "deletion",
            title: "Clearing the bits of a key loses another one",
            source: "Honoroff 2006 (An Examination of Bloom Filters), deletion",
            steps: bits::deletion,
        },
        Example {
            name: "counters",
            title: "The same deletion with counters",
            source: "Honoroff 2006 (An Examination of Bloom Filters), counting",
            steps: counters::deletion,
        },
        Example {
            name: "overflow",
            title: "Sixteen insertions and fifteen removals",
            source: "Honoroff 2006 (An Examination of Bloom Filters), counting",
            steps: counters::overflow,
        },
        Example {
            name: "blocks",
            title: "A string searched in a payload of blocks",
            source: "Honoroff 2006 (An Examination of Bloom Filters), blocks",
            steps: blocks::payload,
        },
        Example {
            name: "recombination",
            title: "Blocks of two packets make a string of neither",
            source: "Honoroff 2006 (An Examination of Bloom Filters), blocks",
            steps: blocks::recombination,
        },
        Example {
            name: "hierarchy",
            title: "Pairs of blocks, and the strings they miss",
            source: "Honoroff 2006 (An Examination of Bloom Filters), hierarchy",
            steps: blocks::hierarchy,
        },
        Example {
            name: "bloomier",
            title: "A map of four keys, built and queried",
            source: "Honoroff 2006; Chazelle et al. 2004",
            steps: bloomier::build,
        },
        Example {
            name: "bloomier-mutable",
            title: "The same map with values that can change",
            source: "Honoroff 2006; Chazelle et al. 2004",
            steps: bloomier::mutable,
        },
        Example {
            name: "bloomier-mask",
            title: "A stranger in a map without masks",
            source: "Honoroff 2006 (An Examination of Bloom Filters), Bloomier",
            steps: bloomier::mask,
        },
        Example {
            name: "growing",
            title: "A filter that grows by stages",
            source: "Almeida et al. 2007; Schierz 2022",
            steps: growing::growing,
        },
        Example {
            name: "tables",
            title: "Three tables on disk, and the reads that filters save",
            source: "Jambura et al. 2026 (Bloom Filter); Chang et al. 2006",
            steps: stores::tables,
        },
        Example {
            name: "proxies",
            title: "Two proxies that share a summary",
            source: "Fan et al. 2000; Honoroff 2006",
            steps: stores::proxies,
        },
        Example {
            name: "routing",
            title: "Documents found by the filters of links",
            source: "Rhea and Kubiatowicz 2002",
            steps: paths::routing,
        },
        Example {
            name: "traceback",
            title: "The path of a packet, from the memory of routers",
            source: "Snoeren et al. 2001; Honoroff 2006",
            steps: paths::traceback,
        },
        Example {
            name: "groups",
            title: "A count from groups of hash functions",
            source: "Kumar et al. 2004; Honoroff 2006",
            steps: groups::groups,
        },
    ];
    EXAMPLES
}
