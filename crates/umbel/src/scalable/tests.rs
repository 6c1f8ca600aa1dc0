use super::*;

fn grown() -> Scalable {
    let mut filter = Scalable::with_capacity(100, 0.01).unwrap();
    filter.insert_batch(&(0..650u64).collect::<Vec<_>>()).unwrap();
    assert_eq!(filter.stages().count(), 3);
    filter
}

fn parts(filter: &Scalable, params: Vec<u64>) -> Parts {
    let sections = filter.sections().into_iter().map(|(what, words)| (what, words.try_clone().unwrap()));
    Parts { head: filter.head.clone(), params, sections: sections.collect::<Vec<_>>().into_iter() }
}

#[test]
fn invalid_parameters_of_a_file_are_refused() {
    let filter = grown();
    let params = filter.params();
    assert!(Scalable::restore(parts(&filter, params.clone())).is_ok());
    let (rate, tightening) = (1, 2);
    for (i, value) in [
        (0, 0),
        (0, 10),
        (rate, 2f64.to_bits()),
        (rate, f64::NAN.to_bits()),
        (tightening, 1f64.to_bits()),
        (3, 0),
        (3, u64::MAX),
        (4, 3),
        (5, Kind::Scalable.number().into()),
        (5, Kind::Aging.number().into()),
        (5, 77),
        (6, 0),
        (6, 1 << 40),
        (7, 0),
        (7, u64::MAX),
        (8, 101),
        (12, u64::MAX),
    ] {
        let mut params = params.clone();
        params[i] = value;
        assert!(Scalable::restore(parts(&filter, params)).is_err(), "parameter {i} = {value}");
    }
    // Stages without sections, sections without stages, and incomplete stages.
    for len in (0..params.len()).chain([params.len() + 4, params.len() + 400_000]) {
        let mut params = params.clone();
        params.resize(len, 1);
        assert!(Scalable::restore(parts(&filter, params)).is_err(), "{len} parameters");
    }
}

#[test]
fn a_trace_reads_what_the_lookup_reads_newest_stage_first() {
    let filter = grown();
    for key in [0u64, 649, 1_000_000] {
        let digest = crate::Key::digest(&key, filter.hasher());
        let mut sections = Vec::new();
        let found = filter.trace(digest, &mut |probe| {
            let words = filter.sections()[probe.section].1;
            assert!(probe.bits.end <= words.words().len() as u64 * 64);
            sections.push(probe.section);
            Ok(())
        });
        assert_eq!(found.unwrap(), filter.contains(&key));
        assert!(sections.is_sorted_by(|a, b| a >= b) && sections[0] == 2, "{sections:?}");
    }
}

#[test]
fn plan_and_build_cannot_disagree() {
    for (capacity, rate) in [(1, 0.5), (1000, 0.001), (100_000, 0.01)] {
        let spec = Spec::new(capacity, rate).unwrap();
        let (plan, filter) = (Scalable::plan(&spec).unwrap(), Scalable::build(&spec).unwrap());
        let stats = filter.stats();
        assert_eq!((plan.stored_bits, plan.bytes, plan.hashes), (stats.bits, stats.bytes, stats.hashes));
        assert_eq!((Some(plan.capacity), Some(plan.rate_asked)), (stats.capacity, stats.rate_target));
        assert!((filter.predicted_rate(capacity).unwrap() / plan.rate - 1.0).abs() < 1e-9);
        assert!(plan.rate <= rate * 0.1501 && filter.predicted_rate(0).unwrap() == 0.0);
        assert!(filter.predicted_rate(capacity * 1000).unwrap() <= rate);
    }
}

/// Returns a filter with the stages of two filters, which files store with types of 16 and more.
fn united() -> Scalable {
    let (mut filter, mut other) = (grown(), grown().try_clone_empty().unwrap());
    other.insert_batch(&(1000..1650u64).collect::<Vec<_>>()).unwrap();
    filter.union(&other).unwrap();
    assert_eq!(filter.parts().map(|part| part.stage).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    filter
}

#[test]
fn invalid_stage_indices_in_a_file_are_refused() {
    let filter = united();
    let params = filter.params();
    assert_eq!((params[4], params.len()), (PLACED, 5 + 6 * 5));
    let restored = Scalable::restore(parts(&filter, params.clone())).unwrap();
    assert!(restored.stages().eq(filter.stages()) && restored.params() == params);
    // The type, the indices of the first, the second and the last stage, and the keys of the
    // second.
    for (i, value) in [
        (4, 2 * PLACED),
        (4, PLACED + 3),
        (4, u64::MAX),
        (9, 1),
        (14, 2),
        (34, 1),
        (34, 1024),
        (34, u64::MAX),
        (13, 101),
    ] {
        let mut params = params.clone();
        params[i] = value;
        assert!(Scalable::restore(parts(&filter, params)).is_err(), "parameter {i} = {value}");
    }
}

/// Any filter that can be read can be filled to its limit, and read again.
#[test]
fn a_filter_at_the_last_stage_opens_no_further_stage() {
    let mut spec = Spec::new(1, 0.01).unwrap();
    let mut options = crate::spec::KindOptions::default();
    (options.scalable.growth, options.scalable.tightening) = (1, 0.99);
    spec = spec.with_options(options);
    let empty = Scalable::build(&spec).unwrap();
    let mut params = empty.params();
    params[4] += PLACED;
    params.push(1023);
    let mut last = Scalable::restore(parts(&empty, params)).unwrap();
    last.insert(&1u64).unwrap();
    assert!(matches!((2..100u64).find_map(|key| last.insert(&key).err()), Some(Error::Full { .. })));
    assert!(Scalable::restore(parts(&last, last.params())).is_ok());
}
