//! Similarity reproduces the figures of the literature, has estimates within their stated errors,
//! misses no near-duplicate, and reports no figure from a full filter.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;
use std::io::{self, Read};

use umbel::{Bloom, Hasher, Standard};
use umbel_text::similarity::{
    By, Collection, EXPECTED_CHUNK, Elements, compare, each_file, files_of, fill, fitting, is_html,
    visible_text,
};

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..Default::default() }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

fn of(text: impl AsRef<[u8]>, by: By) -> Elements {
    Elements::read(text.as_ref(), by, false).unwrap()
}

/// Returns the true Jaccard similarity.
fn truth(one: &Elements, two: &Elements) -> f64 {
    let [one, two] =
        [one, two].map(|elements| elements.digests().iter().map(|d| d.get()).collect::<BTreeSet<u64>>());
    one.intersection(&two).count() as f64 / one.union(&two).count() as f64
}

/// Returns the words `from` to `to` of a family.
fn text(family: u64, from: u64, to: u64) -> String {
    (from..to).map(|number| format!("w{:x} ", mix(family << 32 | number))).collect()
}

/// With m = 2048, k = 4 and sets of 200, reproduces the table of the AND fraction and the corrected
/// Jaccard similarity, averaged over many pairs of filters.
#[test]
fn the_table_of_the_literature_is_reproduced() {
    const BUILDS: u64 = 200;
    for (shared, and, jaccard) in
        [(0, 0.324, 0.001), (50, 0.470, 0.144), (100, 0.628, 0.332), (150, 0.805, 0.600), (200, 1.0, 1.0)]
    {
        let (mut and_mean, mut jaccard_mean, mut fill_mean) = (0.0, 0.0, 0.0);
        for build in 0..BUILDS {
            let sketch = |from: u64| {
                let mut filter =
                    Bloom::with_layout(Standard::new(2048, 4).unwrap(), Hasher::fast(build)).unwrap();
                filter.insert_batch(
                    &(from..from + 200).map(|key| mix(build << 20 | key)).collect::<Vec<u64>>()[..],
                );
                filter
            };
            let (one, two) = (sketch(0), sketch(200 - shared));
            let likeness = compare(&one, &two).unwrap();
            and_mean += likeness.left_and / BUILDS as f64;
            // Do not clamp at 0, so that the mean for disjoint sets is right, too.
            let overlap = likeness.overlap.unwrap();
            let (both, either) = (overlap.left.value + overlap.right.value, overlap.union.value);
            jaccard_mean += (both / either - 1.0) / BUILDS as f64;
            assert!((0.0..=1.0).contains(&likeness.jaccard().unwrap().value));
            fill_mean += fill(&two) / BUILDS as f64;
            assert_eq!(likeness.left_inside && likeness.right_inside, shared == 200);
        }
        assert!((and_mean - and).abs() < 0.01, "{shared} shared: {and_mean}");
        assert!((jaccard_mean - jaccard).abs() < 0.01, "{shared} shared: {jaccard_mean}");
        assert!((fill_mean - 0.3234).abs() < 0.01);
        if shared == 0 {
            assert!((and_mean - fill_mean).abs() < 0.01, "the floor is the fill");
        }
    }
}

proptest! {
    #![proptest_config(fixed(40))]

    /// Inclusion is always recognised, for any sizes.
    #[test]
    fn a_part_is_contained_in_the_whole(small in 1u64..300, large in 0u64..5000, seed in 0u64..1000) {
        let (part, whole) = (of(text(seed, 0, small), By::Words), of(text(seed, 0, small + large), By::Words));
        let likeness = compare(
            &part.filter(fitting(part.len()).unwrap()).unwrap(),
            &whole.filter(fitting(whole.len()).unwrap()).unwrap(),
        ).unwrap();
        prop_assert!(likeness.left_inside && likeness.left_and == 1.0);
        let shape = fitting(whole.len()).unwrap();
        let likeness = compare(&whole.filter(shape).unwrap(), &part.filter(shape).unwrap()).unwrap();
        prop_assert!(likeness.right_inside);
    }

    /// A folded filter equals the filter built in the smaller size.
    #[test]
    fn folding_equals_building_smaller(words in 1u64..3000, seed in 0u64..1000) {
        let elements = of(text(seed, 0, words), By::Words);
        let large = elements.filter(Standard::new(1 << 15, 2).unwrap()).unwrap();
        let small = elements.filter(Standard::new(1 << 13, 2).unwrap()).unwrap();
        let folded = large.fold().unwrap().fold().unwrap();
        prop_assert_eq!(folded.words().words(), small.words().words());
    }

    /// The estimate is within five of its own standard errors of the truth, also between sizes.
    #[test]
    fn estimates_are_within_their_stated_errors(a in 50u64..2000, b in 50u64..2000, shared in 0u64..2000, seed in 0u64..1000) {
        let shared = shared.min(a).min(b);
        let (one, two) = (of(text(seed, 0, a), By::Words), of(text(seed, a - shared, a - shared + b), By::Words));
        let sketch = |elements: &Elements| elements.filter(fitting(elements.len()).unwrap()).unwrap();
        let jaccard = compare(&sketch(&one), &sketch(&two)).unwrap().jaccard().unwrap();
        let truth = truth(&one, &two);
        prop_assert!((jaccard.value - truth).abs() <= 5.0 * jaccard.standard_error + 0.002, "{} and {}", jaccard, truth);
    }

    /// The elements of a document do not depend on the pieces in which it is read, for any bytes.
    #[test]
    fn elements_do_not_depend_on_read_sizes(bytes in prop::collection::vec(1u8..=255, 0..2000), step in 1usize..70) {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                let length = self.1.min(to.len()).min(self.0.len());
                to[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        for (by, html) in [(By::Words, false), (By::Shingles(3), false), (By::Chunks, false), (By::Words, true)] {
            let whole = Elements::read(&bytes[..], by, html).unwrap();
            prop_assert_eq!(&Elements::read(Slow(&bytes, step), by, html).unwrap(), &whole);
        }
    }
}

#[test]
fn documents_are_split_into_words_shingles_and_chunks() {
    assert_eq!(
        of("The cat. the CAT, the naïve café42", By::Words),
        of("cafe\u{301}42 cat naïve THE", By::Words)
    );
    assert_eq!(of("a b c d e", By::Shingles(4)).len(), 2);
    assert_eq!(
        of("a b c d e a b c d", By::Shingles(4)).len(),
        5,
        "two more start at d and e, and one is repeated"
    );
    assert_eq!((of("a b", By::Shingles(4)).len(), of("", By::Shingles(4)).len()), (1, 0));
    assert_ne!(of("a b", By::Shingles(4)), of("b a", By::Shingles(4)));
    assert!(
        of("", By::Words).is_empty() && of("", By::Chunks).is_empty() && of(" .,\n", By::Words).is_empty()
    );
    assert!(Elements::read(&b"PK\x03\0"[..], By::Words, false).is_err(), "binary has no words");
    assert!(Elements::read(&b"PK\x03\0"[..], By::Chunks, false).is_ok());
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| mix(seed << 40 | i) as u8).collect()
}

#[test]
fn chunks_depend_on_content_and_repeated_ones_count() {
    let whole = bytes(1, 1 << 20);
    let elements = of(&whole, By::Chunks);
    let mean = whole.len() as f64 / elements.len() as f64;
    assert!((mean / EXPECTED_CHUNK as f64 - 1.0).abs() < 0.1, "chunks of {mean} bytes");
    // An inserted byte changes only the chunks around it.
    let mut more = whole.clone();
    more.insert(500_000, 7);
    let changed = of(&more, By::Chunks);
    let common = elements.digests().iter().filter(|digest| changed.digests().contains(digest)).count();
    assert!(elements.len() - common <= 2, "{} of {}", common, elements.len());
    // Ten copies count as ten.
    let copies = of(whole[..100_000].repeat(10), By::Chunks);
    assert!(copies.len() > 9 * of(&whole[..100_000], By::Chunks).len());
    // Bytes without any boundary are split all the same.
    assert_eq!(of(vec![0; 1 << 20], By::Chunks).len(), (1 << 20) / (16 * EXPECTED_CHUNK));
}

#[test]
fn only_visible_text_of_html_counts() {
    let shown = |page: &str| {
        let mut text = String::new();
        visible_text(page.as_bytes(), |part| text += part).unwrap();
        text.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    let page = "<!DOCTYPE html><html><head><title>A &amp; B</title><style>p { color: red }</style>\
        <script>var x = '<p>no</p>';</script></head><body><!-- no --><h1>One</h1><p>two<b>three</b></p>\
        <template><p>no</p></template><div hidden>no <div>no</div> no</div><div style='DISPLAY : none'>no</div>four\
        <noscript>no</noscript><ul><li hidden>no<li>five</ul><img alt=no hidden>six<br>seven</body></html>";
    assert_eq!(shown(page), ["A", "&", "B", "One", "twothree", "four", "five", "six", "seven"]);
    assert!(is_html(b"  <!doctype HTML>") && is_html(b"\xef\xbb\xbf<HTML lang=de>") && !is_html(b"a < b"));
    assert_eq!(
        of(page, By::Words),
        of("a b one twothree four five six seven", By::Words),
        "recognised by its start"
    );
    let fragment = "<p>one</p><script>two</script>";
    assert_eq!(Elements::read(fragment.as_bytes(), By::Words, true).unwrap(), of("one", By::Words));
    assert_eq!(of(fragment, By::Words).len(), 4, "one, two, p and script");
    // Hostile pages do not take forever.
    for page in
        ["<".repeat(100_000), "<div hidden>".repeat(20_000), "<script>".to_string() + &"<!--".repeat(50_000)]
    {
        shown(&page);
    }
}

/// Returns documents of 20 to 3000 words, in families whose members have more or less in common.
fn library(documents: u64) -> Vec<Elements> {
    (0..documents)
        .map(|number| {
            let family = number / 4;
            let size = 20 + mix(family) % if family % 10 == 0 { 3000 } else { 300 };
            let shift = size * (number % 4) * (family % 5) / 40;
            of(text(family, shift, size + shift) + &text(1 << 20, 0, 15), By::Words)
        })
        .collect()
}

/// Exact sets are the oracle: pairs above the threshold by more than the error are found, and pairs
/// below it by more are not.
#[test]
fn exactly_the_near_duplicates_are_listed() {
    let documents = library(300);
    let mut collection = Collection::default();
    documents.iter().for_each(|elements| collection.add(elements).unwrap());
    let truths: Vec<Vec<f64>> = (0..documents.len())
        .map(|right| (0..right).map(|left| truth(&documents[left], &documents[right])).collect())
        .collect();
    for at_least in [0.1, 0.5, 0.8, 1.0] {
        let nearest = collection.nearest(at_least, usize::MAX).unwrap();
        assert_eq!(nearest.count, nearest.pairs.len() as u64);
        let found: BTreeSet<(usize, usize)> =
            nearest.pairs.iter().map(|pair| (pair.left, pair.right)).collect();
        assert_eq!(found.len(), nearest.pairs.len(), "each pair once");
        let jaccards: Vec<f64> =
            nearest.pairs.iter().map(|pair| pair.likeness.jaccard().unwrap().value).collect();
        assert!(jaccards.is_sorted_by(|a, b| a >= b) && jaccards.iter().all(|jaccard| *jaccard >= at_least));
        for right in 0..documents.len() {
            for left in 0..right {
                let truth = truths[right][left];
                let sketch = |at: usize| documents[at].filter(fitting(documents[at].len()).unwrap()).unwrap();
                let error =
                    6.0 * 0.5 / (documents[left].len().min(documents[right].len()) as f64 * 16.0).sqrt();
                if truth >= at_least + error || truth == 1.0 {
                    assert!(found.contains(&(left, right)), "{left} and {right}: {truth}");
                } else if truth < at_least - error {
                    assert!(!found.contains(&(left, right)), "{left} and {right}: {truth}");
                }
                // The search agrees with comparing each pair.
                if right % 40 == 0 {
                    let estimate = compare(&sketch(left), &sketch(right)).unwrap().jaccard().unwrap().value;
                    let sizes = [left, right].map(|at| documents[at].len() as f64);
                    let possible = sizes[0].min(sizes[1]) >= at_least * sizes[0].max(sizes[1]);
                    assert_eq!(
                        found.contains(&(left, right)),
                        possible && estimate >= at_least,
                        "{left} {right}"
                    );
                }
            }
        }
        let few = collection.nearest(at_least, 7).unwrap();
        assert_eq!(
            (few.count, &few.pairs[..]),
            (nearest.count, &nearest.pairs[..nearest.pairs.len().min(7)])
        );
        assert!(nearest.compared <= 300 * 299 / 2);
    }
    for wrong in [0.0, 0.01, 1.5, f64::NAN] {
        assert!(collection.nearest(wrong, 1).is_err());
    }
    assert_eq!(Collection::default().nearest(0.5, 10).unwrap().count, 0);
}

#[test]
fn a_full_filter_has_no_estimate() {
    let (one, two) = (of(text(1, 0, 5000), By::Words), of(text(2, 0, 5000), By::Words));
    let shape = Standard::new(512, 4).unwrap();
    let likeness = compare(&one.filter(shape).unwrap(), &two.filter(shape).unwrap()).unwrap();
    assert_eq!((likeness.jaccard(), likeness.overlap), (None, None));
    // A nearly full filter has an estimate, but it is useless.
    let shape = Standard::new(2048, 4).unwrap();
    let nearly = compare(&one.filter(shape).unwrap(), &two.filter(shape).unwrap()).unwrap();
    assert_eq!(nearly.jaccard(), None, "{nearly:?}");
    assert!(one.filter(shape).unwrap().stats().used_cells > 2000);
}

#[test]
fn directories_are_walked_in_order_and_loops_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("b")).unwrap();
    for name in ["c", "b/d", "a"] {
        std::fs::write(at(name), name).unwrap();
    }
    std::os::unix::fs::symlink(folder.path(), at("b/loop")).unwrap();
    let (files, unreached) = files_of(&[folder.path().to_owned(), at("missing")]);
    assert_eq!(files, ["a", "b/d", "c", "missing"].map(at));
    assert!(unreached.is_empty());
    let read = each_file(&files, |path| std::fs::read_to_string(path).ok());
    assert_eq!(read, [Some("a"), Some("b/d"), Some("c"), None].map(|text| text.map(String::from)));
}
