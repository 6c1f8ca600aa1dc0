use super::*;
use crate::Structure;
use crate::memory::Words;
use crate::structure::Parts;
use crate::{Key, Level};

fn digest(key: u64) -> Digest {
    key.digest(&Hasher::default())
}

fn tuned(n: u64, p: f64, options: Options) -> Spec {
    let options = crate::spec::KindOptions { space_code: options, ..Default::default() };
    Spec::new(n, p).unwrap().with_options(options)
}

fn words<R: Resolution>(filter: &SpaceCodeFilter<R>) -> Vec<Vec<u64>> {
    filter.sections().iter().map(|(_, words)| words.words().to_vec()).collect()
}

fn parts<R: Resolution>(filter: &SpaceCodeFilter<R>) -> Parts {
    let sections: Vec<(u32, Words)> =
        filter.sections().into_iter().map(|(what, words)| (what, words.try_clone().unwrap())).collect();
    Parts { head: filter.head.clone(), params: filter.params(), sections: sections.into_iter() }
}

#[test]
fn levels_sample_independently_and_at_their_rates() {
    let filter = MultiResolution::with_capacity(1000, 0.005).unwrap();
    let recordings = 1 << 20;
    let mut taken = [0u32; 9];
    let mut both = 0;
    for i in 0..recordings {
        let hits = filter.draw(i);
        hits.iter().for_each(|(level, _)| taken[level] += 1);
        both += u32::from(hits.iter().filter(|(level, _)| [1, 2].contains(level)).count() == 2);
    }
    let close = |count: u32, expected: f64| {
        // Five standard deviations of a Poisson count.
        assert!(
            (f64::from(count) - expected).abs() <= 5.0 * expected.sqrt(),
            "{count} instead of {expected}"
        );
    };
    assert_eq!(taken[0] as usize, recordings);
    for (level, count) in (0..9).zip(taken).skip(1) {
        close(count, recordings as f64 * sampling(level));
    }
    close(both, recordings as f64 / 64.0);
}

#[test]
fn groups_are_uniform_for_every_number_of_groups() {
    for groups in [1u32, 2, 7, 32, 33, 64] {
        let options = Options { groups, ..Options::default() };
        let filter = SpaceCode::build(&tuned(1000, 0.005, options)).unwrap();
        let mut hit = [0u32; 64];
        let recordings = 20_000 * groups;
        (0..recordings).for_each(|i| hit[filter.draw(i as usize).first()] += 1);
        let chi: f64 = hit[..groups as usize]
            .iter()
            .map(|count| (f64::from(*count) - 20_000.0).powi(2) / 20_000.0)
            .sum();
        // Mean l - 1, variance 2 (l - 1): six standard deviations are allowed.
        let freedom = f64::from(groups - 1);
        assert!(chi <= freedom + 6.0 * (2.0 * freedom).sqrt(), "{groups}: {chi}");
        assert_eq!(hit.iter().sum::<u32>(), recordings);
    }
}

#[test]
fn single_keys_tiles_and_batches_agree_on_every_instruction_set() {
    let keys: Vec<u64> = (0..3000u64).map(|i| i % 700 * (i % 3)).collect();
    for (groups, levels) in [(1u32, 1), (5, 1), (8, 4), (21, 4), (32, 4), (33, 4), (64, 4)] {
        let spec = tuned(3000, 0.02, Options { groups, levels, ..Options::default() });
        let mut one = MultiResolution::build(&spec).unwrap();
        keys.iter().for_each(|key| one.insert(key));
        let mut batch = MultiResolution::build(&spec).unwrap();
        batch.insert_batch(&keys);
        assert_eq!(words(&one), words(&batch));
        let asked: Vec<u64> = (0..1500).collect();
        let counts: Vec<Multiplicity> = asked.iter().map(|key| one.count(key)).collect();
        for level in Level::available() {
            batch.set_level(level);
            assert_eq!(batch.count_batch(&asked), counts, "{level} {groups}");
            assert!(asked.iter().zip(&counts).all(|(key, count)| batch.count(key) == *count));
            for (key, count) in asked.iter().zip(&counts) {
                let found = batch.groups_found(digest(*key));
                assert_eq!(batch.contains(key), found[0] > 0);
                let traced = batch.trace(digest(*key), &mut |_| Ok(())).unwrap();
                assert_eq!(traced, found[0] > 0);
                assert_eq!(batch.estimate(digest(*key), Estimator::Mve, Rule::Guarded), *count);
            }
        }
    }
}

#[test]
fn tiles_of_a_filter_outside_the_caches_are_recorded_like_single_keys() {
    let mut one = MultiResolution::with_capacity(4_000_000, 0.005).unwrap();
    assert!(one.levels[0].is_far());
    let mut tiles = one.try_clone_empty().unwrap();
    let digests: Vec<Digest> = (0..1000).map(|i| digest(i % 300)).collect();
    digests.iter().for_each(|digest| one.insert_digest(*digest));
    // Longer than a tile, and with a remainder.
    digests.chunks(150).for_each(|tile| tiles.insert_tile(tile));
    assert!(words(&one) == words(&tiles) && one.inserted() == tiles.inserted());
}

#[test]
fn the_answers_depend_only_on_the_bits() {
    // Queried after each recording, or only at the end: cached values must not affect the answers.
    let mut asked = SpaceCode::with_capacity(2000, 0.05).unwrap();
    let mut quiet = asked.try_clone_empty().unwrap();
    for i in 0..2000u64 {
        let key = i % 40 * (i % 7);
        asked.insert(&key);
        asked.count(&key);
        quiet.insert(&key);
        if i % 100 == 0 {
            let fresh = SpaceCode::restore(parts(&asked)).unwrap();
            for key in 0..280u64 {
                assert_eq!(asked.count(&key), fresh.count(&key));
            }
        }
    }
    assert_eq!(words(&asked), words(&quiet));
    assert!((0..280u64).all(|key| asked.count(&key) == quiet.count(&key)));
    assert_eq!(asked.levels[0].ones(), asked.levels[0].words().count_ones());
}

#[test]
fn a_loaded_filter_continues_its_random_numbers() {
    let spec = tuned(1000, 0.005, Options { seed: 7, epoch: 3, ..Options::default() });
    let mut whole = MultiResolution::build(&spec).unwrap();
    (0..600u64).for_each(|i| whole.insert(&(i % 9)));
    let mut halves = MultiResolution::build(&spec).unwrap();
    (0..300u64).for_each(|i| halves.insert(&(i % 9)));
    let mut halves = MultiResolution::restore(parts(&halves)).unwrap();
    (300..600u64).for_each(|i| halves.insert(&(i % 9)));
    assert_eq!(words(&whole), words(&halves));
    assert_eq!((halves.seed(), halves.epoch(), halves.inserted()), (7, 3, Some(600)));
    // Another seed or another epoch draws other numbers; another epoch also has other groups.
    let groups_of = |options| {
        let filter = MultiResolution::build(&tuned(1000, 0.005, options)).unwrap();
        (0..64).map(|i| filter.draw(i).first()).collect::<Vec<_>>()
    };
    let base = Options { seed: 7, epoch: 3, ..Options::default() };
    assert_ne!(groups_of(base), groups_of(Options { seed: 8, ..base }));
    assert_ne!(groups_of(base), groups_of(Options { epoch: 4, ..base }));
    assert_ne!(salts(&base, 0), salts(&Options { epoch: 4, ..base }, 0));
    assert_ne!(salts(&base, 0), salts(&base, 1));
    assert_eq!(salts(&base, 0), salts(&Options { seed: 8, ..base }, 0), "or nothing could be united");
}

#[test]
fn invalid_parameters_are_refused_before_the_bits_are_read() {
    let multi = MultiResolution::with_capacity(1000, 0.005).unwrap();
    let wrong = |change: &dyn Fn(&mut Parts)| {
        let mut parts = parts(&multi);
        change(&mut parts);
        assert!(MultiResolution::restore(parts).is_err());
    };
    wrong(&|parts| parts.params[0] = 0);
    wrong(&|parts| parts.params[0] = 65);
    wrong(&|parts| parts.params[0] = u64::MAX);
    wrong(&|parts| parts.params[4] = 0);
    wrong(&|parts| parts.params[4] = u64::MAX);
    wrong(&|parts| parts.params[4] += 512);
    wrong(&|parts| parts.params[5] = 0);
    wrong(&|parts| parts.params[5] = 65);
    wrong(&|parts| parts.params.truncate(3));
    wrong(&|parts| parts.params.truncate(4));
    wrong(&|parts| parts.params.truncate(5));
    wrong(&|parts| parts.params.truncate(6));
    wrong(&|parts| parts.params.extend([64; 2 * 16]));
    wrong(&|parts| parts.head.inserted = None);
    assert!(MultiResolution::restore(parts(&multi)).is_ok());
    assert!(SpaceCode::restore(parts(&multi)).is_err(), "nine levels are not one");
}

#[test]
fn arbitrary_bits_do_no_harm() {
    for (fill, saturated) in [(0u64, false), (!0, true), (0x5555_5555_5555_5555, false)] {
        let mut filter = MultiResolution::with_capacity(1000, 0.005).unwrap();
        for array in &mut filter.levels {
            let mut words = array.words().try_clone().unwrap();
            words.words_mut().fill(fill);
            *array = Array::from_words(array.layout(), array.salts().to_vec(), words);
        }
        // Whole lines are filled, including bits beyond the last one.
        assert_eq!(filter.check_contents().is_err(), fill != 0);
        for key in 0..50u64 {
            let count = filter.count(&key);
            assert!(count.value.is_finite() && count.low <= count.value && count.value <= count.high);
            assert_eq!(count.saturated, saturated);
            filter.insert(&key);
            filter.estimate(digest(key), Estimator::Mle, Rule::Unguarded);
        }
        filter.stats();
    }
}
