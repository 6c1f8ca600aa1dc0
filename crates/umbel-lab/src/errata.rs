//! Errors of the five source documents, and their corrections.
//!
//! A [`Criterion`](crate::Criterion) of an experiment may show an error; the report's page
//! `textbooks.html` puts both side by side. Errors without a criterion are matters of wording, or
//! concern a structure without an experiment.

use crate::references::{HONOROFF, JAMBURA, Reference, SCHIERZ, UNTITLED, WERREN};

/// An error in a source document.
#[derive(Clone, Copy, Debug)]
pub struct Erratum {
    /// Number that criteria refer to.
    pub number: &'static str,
    /// The source document.
    pub source: Reference,
    /// The statement of the document, in other words.
    pub says: &'static str,
    /// The correction.
    pub truth: &'static str,
}

/// All errors, by source document.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        number: "e01",
        source: JAMBURA,
        says: "In the worked example, 5 is not a member because position 2 is 0.",
        truth: "Position 2 is 1, set by the key 2; position 5 is 0. The answer, no, is right.",
    },
    Erratum {
        number: "e02",
        source: JAMBURA,
        says: "The best number of hash functions is found by setting the rate to 0.",
        truth: "The rate is never 0. It has a minimum, where its derivative by k is 0: at k = (m/n) ln 2.",
    },
    Erratum {
        number: "e03",
        source: JAMBURA,
        says: "Hash functions of a Bloom filter need no cryptographic properties.",
        truth: "That is true only while nobody chooses keys to do harm, or reads a filter of \
                secrets. In these cases a keyed hash is needed.",
    },
    Erratum {
        number: "e04",
        source: JAMBURA,
        says: "The three hash functions of the worked example are independent.",
        truth: "All three depend only on the last digit: 4 and 9 have the same three positions, \
                and three numbers of ten are found, not 23 of a hundred.",
    },
    Erratum {
        number: "e05",
        source: JAMBURA,
        says: "A proxy consults the filters that promise a hit.",
        truth: "It consults all filters, which costs no message, and queries only the proxies \
                whose filters say yes.",
    },
    Erratum {
        number: "e06",
        source: JAMBURA,
        says: "Squid uses the Summary Cache protocol; a well-known service for leaked passwords \
               and a well-known browser use Bloom filters.",
        truth: "Squid has cache digests, plain filters that are rebuilt from time to time. The \
                service answers by prefixes of hashes, and the browser has abandoned its filter.",
    },
    Erratum {
        number: "e07",
        source: JAMBURA,
        says: "(1 - (1 - 1/m)^(kn))^k is the probability of a false positive.",
        truth: "It is an approximation and too low: the mean of a power is not the power of the mean.",
    },
    Erratum {
        number: "e08",
        source: JAMBURA,
        says: "A Bloom filter always needs the same number of bits per key.",
        truth: "It does for a given rate: 1.44 log2(1/p) bits, which is 4.8 more for each further \
                decimal place.",
    },
    Erratum {
        number: "e10",
        source: WERREN,
        says: "A key that is not in the set is always recognised as such.",
        truth: "It is the other way round: a key that is in the set is always found. Some of the \
                other keys are found too; these are the false positives.",
    },
    Erratum {
        number: "e11",
        source: WERREN,
        says: "The rate rises with the number of hash functions.",
        truth: "It falls until half of the bits are set, at k = (m/n) ln 2, and rises only after that.",
    },
    Erratum {
        number: "e12",
        source: WERREN,
        says: "There is no way to find out how many keys a filter holds.",
        truth: "There is: -(m/k) ln(1 - X/m), where X is the number of set bits.",
    },
    Erratum {
        number: "e13",
        source: WERREN,
        says: "The program asks for a probability above 0, up to 1.",
        truth: "At 1 the filter would have no bits. The probability has to be below 1.",
    },
    Erratum {
        number: "e14",
        source: WERREN,
        says: "The number of hash functions is rounded up.",
        truth: "Rounding to the nearest is never slower, and better at p = 0.05 (4 rather than 5) \
                and at p = 0.03 (5 rather than 6).",
    },
    Erratum {
        number: "e15",
        source: WERREN,
        says: "For 1000 keys and p = 0.01 the computed rate is 0.01.",
        truth: "The formula gives 0.010037, since k is a whole number.",
    },
    Erratum {
        number: "e20",
        source: SCHIERZ,
        says: "The best number of hash functions is -(m/n) ln 2.",
        truth: "There is no minus; the program of the same author has none.",
    },
    Erratum {
        number: "e21",
        source: SCHIERZ,
        says: "Rounding k goes down, which saves time.",
        truth: "It goes to the nearest: for p = 0.01, from 6.64 up to 7.",
    },
    Erratum {
        number: "e22",
        source: SCHIERZ,
        says: "The program hashes with MurmurHash2.",
        truth: "Its function of that name is the 32-bit MurmurHash3.",
    },
    Erratum {
        number: "e23",
        source: SCHIERZ,
        says: "(1 - a)^k is the probability that a key can be removed from a deletable filter.",
        truth: "It is the probability that it cannot. Even one minus that is too high, because the \
                key's own cells are certainly hit.",
    },
    Erratum {
        number: "e24",
        source: SCHIERZ,
        says: "At worst a deletable filter has a region for each key.",
        truth: "At worst it has one for each bit, which doubles its size.",
    },
    Erratum {
        number: "e25",
        source: SCHIERZ,
        says: "Each stage of a scalable filter has a lower rate; no bound for the whole is given.",
        truth: "The rates add up to a bound: P0 / (1 - r). Without tightening the rate grows with \
                every stage. Each stage costs 1.44 log2(1/r) more bits per key than the one \
                before.",
    },
    Erratum {
        number: "e26",
        source: SCHIERZ,
        says: "From the value of a cell of {8, 12, 14, 15} one can read off what was added.",
        truth: "24 is 12 + 12 and 8 + 8 + 8; 28 is 14 + 14 and 8 + 8 + 12. Only numbers that are \
                not sums can be excluded.",
    },
    Erratum {
        number: "e27",
        source: SCHIERZ,
        says: "A filter with variable increments needs even more memory than a counting filter.",
        truth: "A cell is larger, but fewer are needed: at the same rate it needs a quarter to a \
                third less memory.",
    },
    Erratum {
        number: "e28",
        source: SCHIERZ,
        says: "Of the extra bits of a Floom filter only the first is wasted; at least k regions are hit.",
        truth: "At most k regions are hit. With 16 regions and k = 7, 60 % of the extra bits can \
                never be addressed; with 20 and k = 5, 98 %.",
    },
    Erratum {
        number: "e29",
        source: SCHIERZ,
        says: "A lookup takes a time linear in k, apart from peaks that are false positives.",
        truth: "A key that is not in the set takes (1 - f^k)/(1 - f) probes at a fill of f: two at \
                half fill, whatever k is. Only members take k.",
    },
    Erratum {
        number: "e30",
        source: SCHIERZ,
        says: "Times depend neither on n nor on m.",
        truth: "They depend on m when the filter outgrows a cache, and on n unless the filter was \
                made for it.",
    },
    Erratum {
        number: "e31",
        source: SCHIERZ,
        says: "Cuckoo filters are smaller than Bloom filters for rates below 3 %.",
        truth: "By the formulas they are smaller below 2.5 % with semi-sorted buckets and below \
                0.41 % with plain ones; since fingerprints have whole bits, real filters are only \
                a little below these rates.",
    },
    Erratum {
        number: "e32",
        source: SCHIERZ,
        says: "For intrusion detection, malicious strings are cut into pieces of several lengths.",
        truth: "The signatures stay whole. They are grouped by length, and each length has its own filter.",
    },
    Erratum {
        number: "e33",
        source: SCHIERZ,
        says: "Documents can be searched in secret by a Bloom filter of their words.",
        truth: "Anybody who has the filter can try any word, unless the hash has a secret key.",
    },
    Erratum {
        number: "e34",
        source: SCHIERZ,
        says: "The filter in a packet's header reveals the path that it took.",
        truth: "If the sender fills it with ones, every router seems to be on the path. A \
                generalised filter, which also resets bits, withstands that, at the price of \
                forgetting routers: half of them with 256 bits and 16 routers.",
    },
    Erratum {
        number: "e35",
        source: SCHIERZ,
        says: "Removing from a counting filter stops when a counter is zero, so nothing wrong can be removed.",
        truth: "All counters have to be checked before any is changed; and a false positive passes \
                the check, and its removal damages other keys.",
    },
    Erratum {
        number: "e36",
        source: SCHIERZ,
        says: "The program finds a position's region by comparing it with j m / b.",
        truth: "A position on a border falls into the region below, and j m overflows 32 bits in \
                large filters.",
    },
    Erratum {
        number: "e40",
        source: UNTITLED,
        says: "If all bits of a key are 0 it is not in the set; otherwise it may be.",
        truth: "One 0 is enough for a no. By the printed rule, a filter of 9586 bits with 1000 \
                keys and k = 7 would find 99.4 % of all strangers instead of 1 %.",
    },
    Erratum {
        number: "e41",
        source: UNTITLED,
        says: "Fewer hash functions or fewer bits than the best numbers make the filter worse.",
        truth: "More hash functions than the best number make it worse, too.",
    },
    Erratum {
        number: "e42",
        source: UNTITLED,
        says: "The best k and m follow from p = (1 - e^(-kn/m))^k.",
        truth: "That is one equation with two unknowns. k = (m/n) ln 2 is the second.",
    },
    Erratum {
        number: "e43",
        source: UNTITLED,
        says: "A counting filter solves the problem of removing.",
        truth: "Counters overflow, and the removal of a key that was never inserted still damages other keys.",
    },
    Erratum {
        number: "e50",
        source: HONOROFF,
        says: "A Bloomier filter answers undefined with the probability |R| / 2^q.",
        truth: "That is the probability that a key without a value gets one; the rest get undefined.",
    },
    Erratum {
        number: "e51",
        source: HONOROFF,
        says: "Positions run from 1 to m, the range of a hash is 2r, a Bloomier filter is an \
               immutable Bloom filter.",
        truth: "The tables start at 0; the range is 2^r; the name is Bloomier. In the second row \
                of hash groups, the last one belongs to the second group.",
    },
    Erratum {
        number: "e52",
        source: HONOROFF,
        says: "When a Bloomier table is filled, a key's own cell is among the cells that are summed.",
        truth: "It has to be left out. The formula is right only while that cell is 0.",
    },
    Erratum {
        number: "e53",
        source: HONOROFF,
        says: "All l = 32 groups have been hit after about l ln l = 111 insertions.",
        truth: "It takes l (1 + 1/2 + ... + 1/l) = 129.9 on average; l ln l is only the leading term.",
    },
    Erratum {
        number: "e54",
        source: HONOROFF,
        says: "16 insertions and 15 removals make a counting filter forget a key.",
        truth: "They do if a full counter is decremented. If it stays full, as the same slides \
                say, nothing is forgotten. The bound for overflows holds only for distinct keys.",
    },
    Erratum {
        number: "e55",
        source: HONOROFF,
        says: "The table of attributions has the rates of the best k, and its values fall when the rate falls.",
        truth: "Its rates are those of k = 1 and 2; one value in the row of two blocks rises, \
                since real blocks recur; and in the next table an entry for three blocks is \
                probably ten times too large.",
    },
    Erratum {
        number: "e56",
        source: HONOROFF,
        says: "A block-based filter is better than a hierarchical one only for strings of one block.",
        truth: "For random strings and the same memory it is better at any length. The advantage \
                of a hierarchical filter concerns strings spliced from real blocks.",
    },
    Erratum {
        number: "e57",
        source: HONOROFF,
        says: "In the example of blocks there is a double false positive at offset 2.",
        truth: "Nothing is stored there for these two blocks.",
    },
    Erratum {
        number: "e58",
        source: HONOROFF,
        says: "Masks eliminate the false positives of a Bloomier filter.",
        truth: "They make them uniform: |R| / 2^q, whatever the table holds.",
    },
    Erratum {
        number: "e59",
        source: HONOROFF,
        says: "MD5(x + i) is a family of hash functions.",
        truth: "For whole numbers h_i(x) = h_(i+1)(x - 1), so neighbours share all positions but \
                one. MD5(x || i) is a family.",
    },
    Erratum {
        number: "e60",
        source: HONOROFF,
        says: "For five bits per key the best k is 3.46.",
        truth: "It is 3.4657, which rounds to 3.47.",
    },
];
