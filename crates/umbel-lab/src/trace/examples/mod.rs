//! The examples, by what they are about, and the list of them all.

mod applications;
mod bits;
mod blocks;
mod bloomier;
mod counters;
mod regions;

use super::Example;
pub(crate) use bits::positions;
pub(crate) use bloomier::elements;

/// Every example, in the order of the sources.
pub fn examples() -> &'static [Example] {
    const EXAMPLES: &[Example] = &[
        Example {
            name: "insert",
            title: "Three numbers into ten bits",
            source: "the first seminar paper, figures 1 to 4",
            steps: bits::insert,
        },
        Example {
            name: "search",
            title: "A member, a certain no, and a false positive",
            source: "the first seminar paper, figure 5",
            steps: bits::search,
        },
        Example {
            name: "two-hashes",
            title: "Two keys, two hash functions, and a third key",
            source: "the third seminar paper, figure 1",
            steps: bits::two_hashes,
        },
        Example {
            name: "parameters",
            title: "From keys and rate to bits and hash functions",
            source: "the third seminar paper, figure 2",
            steps: bits::parameters,
        },
        Example {
            name: "counting",
            title: "Counters, and how a key is removed",
            source: "the third seminar paper, figure 7",
            steps: counters::counting,
        },
        Example {
            name: "variable-increment",
            title: "Increments that tell who cannot have been there",
            source: "the third seminar paper, figure 8; Rottenstreich et al. 2014",
            steps: counters::variable_increment,
        },
        Example {
            name: "deletable",
            title: "Regions in which bits may be cleared",
            source: "the third seminar paper, figure 9",
            steps: regions::deletable,
        },
        Example {
            name: "floom",
            title: "A bit for each pattern of regions",
            source: "the third seminar paper, figure 10",
            steps: regions::floom,
        },
        Example {
            name: "web-cache",
            title: "A filter before a cache",
            source: "the third seminar paper, figure 13",
            steps: applications::web_cache,
        },
        Example {
            name: "similarity",
            title: "Two pages compared by their filters",
            source: "the third seminar paper, figure 14",
            steps: applications::similarity,
        },
        Example {
            name: "loop",
            title: "A packet that comes by again",
            source: "the third seminar paper, 5.1.2; Whitaker and Wetherall 2002",
            steps: applications::packet_loop,
        },
        Example {
            name: "two-keys",
            title: "Two insertions, a no and a false positive",
            source: "the lecture slides, the first example",
            steps: bits::two_keys,
        },
        Example {
            name: "deletion",
            title: "Clearing the bits of a key loses another one",
            source: "the lecture slides, deletion",
            steps: bits::deletion,
        },
        Example {
            name: "counters",
            title: "The same deletion with counters",
            source: "the lecture slides, counting filters",
            steps: counters::deletion,
        },
        Example {
            name: "overflow",
            title: "In sixteen times, out fifteen times",
            source: "the lecture slides, counting filters",
            steps: counters::overflow,
        },
        Example {
            name: "blocks",
            title: "A string looked for in a payload of blocks",
            source: "the lecture slides, block-based filters",
            steps: blocks::payload,
        },
        Example {
            name: "recombination",
            title: "Blocks of two packets make a string of neither",
            source: "the lecture slides, block-based filters",
            steps: blocks::recombination,
        },
        Example {
            name: "hierarchy",
            title: "Pairs of blocks, and the strings they do not catch",
            source: "the lecture slides, hierarchical filters",
            steps: blocks::hierarchy,
        },
        Example {
            name: "bloomier",
            title: "A map of four keys, built and asked",
            source: "the lecture slides, Bloomier filters; Chazelle et al. 2004",
            steps: bloomier::build,
        },
        Example {
            name: "bloomier-mutable",
            title: "The same map with values that can change",
            source: "the lecture slides, Bloomier filters; Chazelle et al. 2004",
            steps: bloomier::mutable,
        },
        Example {
            name: "bloomier-mask",
            title: "What a map without masks answers to a stranger",
            source: "the lecture slides, Bloomier filters",
            steps: bloomier::mask,
        },
    ];
    EXAMPLES
}
