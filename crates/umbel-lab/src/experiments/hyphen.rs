//! E12-hyphen: the first use of the filter in history. Most words are hyphenated by rules, and a
//! dictionary on disk has the rest.

use super::prelude::*;
use std::collections::BTreeSet;
use umbel::sizing::KPolicy;
use umbel::{Bloom, Hasher, Standard};
use umbel_text::hyphenation::{Hyphenator, Language};

pub struct Hyphenation;

/// log2(1/P), the saved reads in per cent, and the bits, for 500 000 words of which 50 000 are
/// exceptions.
const PRINTED: [(u32, f64, f64); 6] = [
    (1, 45.00, 72_135.0),
    (2, 67.50, 144_270.0),
    (3, 78.75, 216_404.0),
    (4, 84.38, 288_539.0),
    (5, 87.19, 360_674.0),
    (6, 88.59, 432_809.0),
];
const WORDS: u64 = 500_000;
const EXCEPTIONS: u64 = 50_000;
/// The largest number of letters of the patterns that act as rules; the longest pattern has nine.
const LETTERS: [usize; 4] = [3, 4, 5, 9];
const SIMPLE: usize = 4;
const ALL: usize = 9;
const MIN_EXCEPTIONS: usize = 50;
/// The path of Debian's list of English words. `/usr/share/dict/words` may be of any language.
const LIST: &str = "/usr/share/dict/american-english";

const WORDS_ASKED: Parameter =
    Parameter::count("words", "largest number of words from each list", [15_000, 150_000], [1000, 1_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each size", [3, 12], [2, 100]);

impl Experiment for Hyphenation {
    fn about(&self) -> About {
        About {
            id: "E12-hyphen",
            chapter: Chapter::Documents,
            title: "Hyphenation: the first use of the filter in history",
            sources: &[BLOOM],
            claim: "Of 500 000 words, 450 000 can be hyphenated by a few rules; a dictionary on \
                    disk has the other 50 000. A filter of those in memory saves 0.9 (1 - P) of \
                    the reads: 45 % at P = 1/2 to 88.6 % at P = 1/64, in 72 800 bits at first and \
                    72 800 more for each further step. P = 1/16 leaves 16 % of the reads.",
            set_up: "The table by the formula, and measured with 500 000 numbered words. Then real \
                     words: the TeX patterns of at most three, four or five letters act as the \
                     simple rules, and all patterns with their exceptions act as the dictionary; \
                     last, all patterns act as the rules. A word is an exception if the two \
                     disagree. The words are composed from English parts; Debian's word list is \
                     used as well where it is installed. Every word is looked up once.",
            advice: "Improve the rules before you improve the filter: it can save at most the \
                     reads for words that the rules get right.",
            command: "`umbel hyphenate --stats`",
            seconds: [1, 10],
            timed: false,
            parameters: &[WORDS_ASKED, BUILDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        as_printed(lab, &mut findings)?;
        with_patterns(lab, &mut findings)?;
        findings.verdict =
            "The savings are those of the formula, with Bloom's numbers and with words that TeX \
             hyphenates. Bloom counts 1.456 log2(1/P) bits per word, where 1.4427 are enough, and \
             the bits of his last row belong to P = 1/128. The savings depend on the rules more \
             than on the filter: no filter saves more than the share of words that the rules get \
             right. Patterns of four letters come close to Bloom's nine words of ten. Today all \
             patterns fit into memory, and leave fewer than one word in a hundred to the \
             dictionary."
                .into();
        Ok(findings)
    }
}

/// Builds a half-full filter of these exceptions with k functions, so that P = 2^-k.
fn filter(exceptions: &[u64], k: u32, hasher: Hasher, lab: &Lab) -> Result<Bloom<Standard>> {
    let bits = bits(exceptions.len() as u64, k).ceil() as u64;
    let mut filter = Bloom::with_layout(Standard::new(bits.max(8), k)?, hasher)?;
    let digests = lab.digests(filter.hasher(), exceptions);
    filter.insert_batch(&umbel::key::Hashed(&digests));
    Ok(filter)
}

fn bits(exceptions: u64, k: u32) -> f64 {
    exceptions as f64 * f64::from(k) * std::f64::consts::LOG2_E
}

/// Measures the share of lookups that need no dictionary, where the rules get the `regular` words
/// right. Returns the mean over filters and four standard errors of it.
fn saved(lab: &Lab, exceptions: &[u64], regular: &[u64], k: u32) -> Result<(f64, f64)> {
    let total = (exceptions.len() + regular.len()) as f64;
    let mut shares = Vec::new();
    for build in 0..lab.count(&BUILDS) {
        let filter = filter(exceptions, k, lab.hasher(build), lab)?;
        let digests = lab.digests(filter.hasher(), regular);
        let reads = filter.contains_batch(&umbel::key::Hashed(&digests)).count();
        shares.push((regular.len() as u64 - reads) as f64 / total);
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let (p, share) = (0.5f64.powi(k as i32), regular.len() as f64 / total);
    // The counting error, and the variation of the fill from filter to filter: at half fill its
    // relative deviation is below 1 / sqrt(m), and that of the rate is k times as large.
    let counting = share * p * (1.0 - p) / total;
    let fill = (share * p * f64::from(k)).powi(2) / bits(exceptions.len() as u64, k);
    Ok((mean, 4.0 * ((counting + fill) / shares.len() as f64).sqrt()))
}

/// Reproduces Bloom's table.
fn as_printed(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("bloom").chart(
        "bloom",
        "Saved reads for 500 000 words with 50 000 exceptions",
        Axis::linear("log2(1/P)"),
        Axis::linear("saved, %"),
    );
    let share = (WORDS - EXCEPTIONS) as f64 / WORDS as f64;
    let own = lab.keys(0);
    let (exceptions, regular) = (own.members(EXCEPTIONS), own.strangers(WORDS - EXCEPTIONS));
    for (k, printed, printed_bits) in PRINTED {
        let p = 0.5f64.powi(k as i32);
        let computed = share * (1.0 - p);
        let claim = |text: &str| format!("P = 1/{}: {text}", 1 << k);
        let (measured, chance) = saved(lab, &exceptions, &regular, k)?;
        // 1.456 bits per step and word, and seven steps in the last row.
        let bloom = 72_800.0 * f64::from(if k == 6 { 7 } else { k });
        sweep
            .at(k.into())
            .cell("P", format_args!("1/{}", 1 << k))
            .value("bits", bits(EXCEPTIONS, k), 0)
            .near(claim("bits"), printed_bits, 0.51)
            .cell("bits_printed", if k == 6 { "509800".into() } else { format!("{bloom:.0}") })
            .value("saved_computed", computed, 4)
            .hidden(100.0 * computed)
            .line("0.9 (1 - P)", 0)
            .near(claim("saved reads by the formula, in %"), printed, 0.0051)
            .value("saved_measured", measured, 4)
            .hidden(100.0 * measured)
            .dots("measured", 0)
            .near(claim("saved reads, measured, in %"), 100.0 * computed, 100.0 * chance + 0.02)
            .value("reads_of_500_000", WORDS as f64 * (1.0 - measured), 0);
    }
    let reads = WORDS as f64 * (1.0 - share * (1.0 - 1.0 / 16.0));
    sweep.near("P = 1/16: reads for 500 000 words", reads, 78_125.0, 0.5);
    let optimal = umbel::sizing::rate::optimal_bits(EXCEPTIONS, 1.0 / 64.0)? as f64;
    sweep.near(
        "bits per key and halving of P (the literature prints 1.456 and 1.47)",
        optimal / EXCEPTIONS as f64 / 6.0,
        std::f64::consts::LOG2_E,
        0.0001,
    );
    let claim = "last printed size, 509 800, in steps of 72 800: seven, not six";
    sweep.near(claim, 509_800.0 / 72_800.0, 7.0, 0.01);
    let hashes = KPolicy::Round.hashes(optimal as u64, EXCEPTIONS)?;
    sweep.that("P = 1/64 takes six hash functions", hashes == 6);
    findings.add(sweep);
    Ok(())
}

/// Measures the savings for words that TeX hyphenates.
fn with_patterns(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let hyphenator = Hyphenator::new(Language::English)?;
    let mut sweep = Sweep::new("patterns").chart(
        "patterns",
        "Saved reads when short patterns act as the rules",
        Axis::linear("log2(1/P)"),
        Axis::linear("saved, %"),
    );
    for (colour, (from, words)) in lists(lab).into_iter().enumerate() {
        let truth: Vec<Vec<usize>> = words.iter().map(|word| hyphenator.breaks(word)).collect();
        for letters in LETTERS {
            let mut exceptions = Vec::new();
            let mut regular = Vec::new();
            for (word, truth) in words.iter().zip(&truth) {
                // Words become numbers, so that a bad hash is noticed here as in other experiments.
                let key = Hasher::fast(0x7e).digest_bytes(word.as_bytes()).get();
                let by_rule = hyphenator.breaks_by_rule(word, letters);
                if by_rule == *truth { regular.push(key) } else { exceptions.push(key) }
            }
            let share = regular.len() as f64 / words.len() as f64;
            let claim =
                format!("{from}: share of words that patterns of at most {letters} letters get right");
            match letters {
                SIMPLE => drop(sweep.near(claim, share, 0.87, 0.06)),
                ALL => drop(sweep.at_least(claim, share, 0.99)),
                _ => {}
            }
            // A filter of a handful of words has no meaningful rate.
            if exceptions.len() < MIN_EXCEPTIONS {
                continue;
            }
            // Only the list that every machine has is drawn.
            let is_drawn = colour == 0;
            let of = LETTERS.iter().position(|own| *own == letters).unwrap_or(0);
            if is_drawn {
                let line = (10..=60).map(|tenth| f64::from(tenth) / 10.0);
                let line = line.map(|k| (k, 100.0 * share * (1.0 - 0.5f64.powf(k))));
                sweep.series(format!("{letters} letters, {share:.2} (1 - P)"), Mark::Line, of, line);
            }
            for (k, ..) in PRINTED {
                let p = 0.5f64.powi(k as i32);
                let computed = share * (1.0 - p);
                let (measured, chance) = saved(lab, &exceptions, &regular, k)?;
                let claim = format!("{from}, {letters} letters, P = 1/{}: share of saved reads", 1 << k);
                sweep
                    .at(k.into())
                    .cells([("words_from", &from), ("words", &words.len()), ("letters", &letters)])
                    .value("share_by_rule", share, 4)
                    .cell("P", format_args!("1/{}", 1 << k))
                    .value("computed", computed, 4)
                    .value("measured", measured, 4)
                    .near(claim, computed, chance + 0.002)
                    .hidden(100.0 * measured)
                    .when(is_drawn, |point| point.dots(format!("{letters} letters, measured"), of));
            }
        }
    }
    findings.add(sweep);
    Ok(())
}

/// Returns lists of words with their names. Every machine has the first one.
fn lists(lab: &Lab) -> Vec<(&'static str, Vec<String>)> {
    let most = lab.count(&WORDS_ASKED) as usize;
    let mut lists = vec![("composed words", sample(lab, composed(), most))];
    if let Ok(text) = std::fs::read_to_string(LIST) {
        let plain = |word: &&str| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let words: BTreeSet<String> = text.lines().filter(plain).map(String::from).collect();
        if words.len() >= 1000 {
            lists.push(("Debian's list", sample(lab, words, most)));
        }
    }
    lists
}

/// Draws at most `most` of these words.
fn sample(lab: &Lab, words: BTreeSet<String>, most: usize) -> Vec<String> {
    let mut words: Vec<(u64, String)> =
        (0..).map(|number| lab.draw(0x5a, number, u64::MAX)).zip(words).collect();
    words.sort_unstable();
    words.truncate(most);
    words.into_iter().map(|(_, word)| word).collect()
}

/// Returns words that are, or could be, English.
fn composed() -> BTreeSet<String> {
    let parts = |text: &'static str| text.split(' ').map(|part| part.trim_matches('-'));
    let mut words = BTreeSet::new();
    for stem in parts(STEMS) {
        for prefix in parts(PREFIXES) {
            for suffix in parts(SUFFIXES) {
                words.insert(format!("{prefix}{stem}{suffix}"));
            }
        }
    }
    words
}

const PREFIXES: &str = "- anti- be- co- counter- de- dis- en- fore- in- inter- mis- non- out- over- post- pre- re- semi- sub- super- \
                        trans- un- under- up-";
const SUFFIXES: &str = "- -able -age -al -ance -ation -ed -en -er -ers -ful -hood -ing -ings -ish -ism -ist -ity -ive -ization -less -ly \
                        -ment -ness -or -ous -ship -s -ward -y";
const STEMS: &str = "account act answer arm balance band bank bear bend bind bird blank blood board body bond book border bottle bound \
    bowl branch brand breath bridge bright broad brother brown bundle burden button cable candle carbon care cast castle cell center \
    chain chamber change channel chapter chart child circle city claim class clean clear climb clock close cloud coast collar color \
    column comfort common concept concern connect contact content control copper corn corner cotton count country couple court cover \
    credit crown culture current custom cycle danger dark deal design desk detail direct doctor dollar double doubt draft dream dress \
    drift drink drive earth east edge effort engine enter equal escape event example exact expert express fabric factor family farm \
    father fault feather field figure filter finger finish flame flat flight floor flow flower fold follow force forest form found \
    frame free friend front fruit garden gather gentle glass gold govern grace grain grand grant green ground group grow guard guide \
    hand harbor hard hammer heart heat heavy hold hollow home honest honor hope horse hospital house human hunt image impact inform iron \
    island jacket join journal judge jump justice kind kitchen knot labor ladder land language large laugh lawyer lead leader leather \
    legal lemon letter level light limit line liquid list listen live local lock log long luck machine magnet manner mark market master \
    matter measure member memory merchant metal method middle mind minister mirror model modern moment monitor moral mother motion motor \
    mountain mouth move music narrow nation nature needle neighbor network normal north notice number object office open order organ \
    origin paper parent part partner party pass patient pattern peace pencil people perfect person picture place plain planet plant \
    plastic play pocket point police popular port post potter powder power practice present press prison problem process product profit \
    program proper prosper protect public pump quarter question rabbit radio rail rapid reason record region remain report respect rest \
    result reward rhythm ribbon ring river road rocket root round ruler sailor salt sample scale school science season second sector \
    secure sense service settle shadow shape share sharp shelter ship shoulder signal silver simple sister sketch slave sleep slip small \
    smooth soft soldier solid solve sound south special spirit spoon spring square stable staff stage stand station steady steam stick \
    stone storm story stream street strike strong student studio subject sugar summer support surface system table target tea teacher \
    temper tender test theater thought thread thunder ticket timber title tower town track trade traffic train travel treat treaty \
    tribe trouble trust tunnel turn twist union unit value vapor vessel victor village violet vision voice vote wagon wander warm watch \
    water weather weight west wheel whisper white wild window winter wire witness wonder wood word work world worth write yellow young";
