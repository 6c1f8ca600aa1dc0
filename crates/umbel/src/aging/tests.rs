use super::*;

fn used() -> Aging {
    let aging = Options { window: Some(Window::Time(Duration::from_millis(40))), generations: 4 };
    let options = crate::spec::KindOptions { aging, ..Default::default() };
    let mut filter = Aging::build(&Spec::new(100, 0.01).unwrap().with_options(options)).unwrap();
    for now in [1000, 1010, 1020, 1030, 1047] {
        filter.advance(Timestamp::from_millis(now)).unwrap();
        filter.insert(&now);
    }
    filter
}

fn parts(filter: &Aging, params: Vec<u64>) -> Parts {
    let sections = filter.sections().into_iter().map(|(what, words)| (what, words.try_clone().unwrap()));
    Parts { head: filter.head.clone(), params, sections: sections.collect::<Vec<_>>().into_iter() }
}

#[test]
fn invalid_parameters_of_a_file_are_refused() {
    let filter = used();
    let params = filter.params();
    assert_eq!(params[4..], [1, 40, 1048, 104, 0, 105, 1, 102, 1, 103, 1, 104, 1]);
    let restored = Aging::restore(parts(&filter, params.clone())).unwrap();
    assert_eq!(restored.params(), params);
    for (i, value) in [
        (0, Kind::Aging.number().into()),
        (0, 99),
        (1, 0),
        (1, 1 << 40),
        (2, 0),
        (4, 2),
        (5, 3),
        (6, 0),
        (6, 2000),
        (7, 103),
        (8, 4),
        (8, 1),
        (8, u64::MAX),
        (9, 106),
        (11, 110),
        (13, 102),
    ] {
        let mut params = params.clone();
        params[i] = value;
        assert!(Aging::restore(parts(&filter, params)).is_err(), "parameter {i} = {value}");
    }
    for len in (0..params.len()).chain([params.len() + 2, params.len() + 100_000]) {
        let mut params = params.clone();
        params.resize(len, 1);
        assert!(Aging::restore(parts(&filter, params)).is_err(), "{len} parameters");
    }

    let mut filter = Aging::with_capacity(80, 0.01).unwrap();
    filter.insert_batch(&(0..25u64).collect::<Vec<_>>());
    let params = filter.params();
    assert_eq!(params[3..9], [10, 0, 80, 0, 2, 2]);
    for (i, value) in [(3, 0), (3, u64::MAX), (5, 0), (5, 81), (14, 11), (14, u64::MAX), (7, 1)] {
        let mut params = params.clone();
        params[i] = value;
        let restored = Aging::restore(parts(&filter, params));
        // A generation planned for more keys than can exist is odd, but harmless.
        if (i, value) != (3, u64::MAX) {
            assert!(restored.is_err(), "parameter {i} = {value}");
        }
    }
}

#[test]
fn impossible_counts_in_a_file_do_not_overflow() {
    let filter = used();
    let mut params = filter.params();
    (params[14], params[16]) = (u64::MAX, u64::MAX);
    assert_eq!(Aging::restore(parts(&filter, params)).unwrap().held(), u64::MAX);

    let mut filter = Aging::with_capacity(8, 0.01).unwrap();
    filter.insert_batch(&[1u64, 2]);
    let mut params = filter.params();
    assert_eq!((params[7], params[9..13].to_vec()), (1, vec![1, 1, 2, 1]));
    for current in [u64::MAX, u64::MAX - 1, u64::MAX / 2 + 1] {
        (params[7], params[11]) = (current, current);
        assert!(Aging::restore(parts(&filter, params.clone())).is_err(), "{current}");
    }
    (params[7], params[11]) = (u64::MAX / 2, u64::MAX / 2 + 1);
    let mut restored = Aging::restore(parts(&filter, params)).unwrap();
    restored.insert_batch(&(0..100u64).collect::<Vec<_>>());
    assert!(restored.contains(&99u64));
}

#[test]
fn a_trace_reads_live_generations_only() {
    let mut filter = used();
    filter.advance(Timestamp::from_millis(1060)).unwrap();
    let mut sections = std::collections::BTreeSet::new();
    let digest = crate::Key::digest("stranger", filter.hasher());
    let found = filter.trace(digest, &mut |probe| {
        sections.insert(probe.section);
        Ok(())
    });
    // Of the generations 101 to 104, those from 103 on are live: sections 3 and 0.
    assert!(!found.unwrap() && sections.into_iter().eq([0, 3]));
}
