//! The promises of disguised queries, and their limits.

use umbel::{Digest, Hasher};
use umbel_net::privacy::{Table, cover};

fn digests(range: std::ops::Range<u64>) -> Vec<Digest> {
    Hasher::fast(3).digest_batch(&range.collect::<Vec<_>>())
}

#[test]
fn answer_is_never_below_the_true_count() {
    let things = digests(0..1000);
    let mut table = Table::new(3, 200).unwrap();
    for (number, thing) in things.iter().enumerate() {
        (0..number % 7).for_each(|_| table.record(*thing));
    }
    for (number, thing) in things.iter().enumerate() {
        let cover = cover(&table, *thing, digests(5000..9000)).unwrap();
        assert!(table.query(cover.digest)[cover.row] >= (number % 7) as u64);
        assert_eq!(table.shared_row(cover.digest, *thing), Some(cover.row));
    }
}

#[test]
fn second_query_reveals_what_the_first_has_hidden() {
    let things = digests(0..20_000);
    let table = Table::new(2, 500).unwrap();
    let innocent = digests(50_000..60_000);
    let covers: Vec<Digest> =
        innocent.into_iter().filter(|other| table.shared_row(*other, things[7]).is_some()).take(3).collect();
    let counts: Vec<usize> = (1..=3).map(|asked| table.candidates(&covers[..asked], &things).len()).collect();
    // Of 20 000 things, about 80 share a cell with one cover, and hardly any with two.
    assert!((40..150).contains(&counts[0]) && counts[1] < 60 && counts[2] <= counts[1], "{counts:?}");
    assert!(table.candidates(&covers, &things).contains(&&things[7]), "the wanted one is among them");
}

#[test]
fn sizes_out_of_range_are_refused() {
    assert!(Table::new(0, 10).is_err() && Table::new(1, 0).is_err() && Table::new(65, 1).is_err());
    assert!(Table::new(1, usize::MAX).is_err());
    let table = Table::new(1, 10).unwrap();
    assert_eq!(cover(&table, digests(0..1)[0], []), None);
    assert_eq!(cover(&table, digests(0..1)[0], digests(0..1)), None, "not the thing itself");
}
