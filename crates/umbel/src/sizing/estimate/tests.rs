use super::*;
use crate::sizing::experiment::{Random, moments};

fn keys(shape: Shape, set_bits: u64) -> f64 {
    shape.cardinality(set_bits).unwrap().estimate().unwrap().value
}

/// A bit set of some shape, filled with random keys.
struct Bits {
    shape: Shape,
    set: Vec<bool>,
}

impl Bits {
    fn new(shape: Shape) -> Self {
        Self { shape, set: vec![false; shape.cells() as usize] }
    }

    /// Each key seeds its own generator, so two filters use the same positions for a shared key.
    fn insert(&mut self, key: u64) {
        let mut random = Random(key.wrapping_mul(0xd134_2543_de82_ef95));
        match self.shape {
            Shape::Standard { bits, hashes } => {
                (0..hashes).for_each(|_| self.set[random.below(bits)] = true);
            }
            Shape::Partitioned { slice_bits, hashes } => {
                let slices = self.set.chunks_mut(slice_bits as usize).take(hashes as usize);
                slices.for_each(|slice| slice[random.below(slice_bits)] = true);
            }
            Shape::Blocked { lines, lines_per_key } => {
                for _ in 0..lines_per_key {
                    let first = random.below(lines) * 512;
                    self.set[first..first + 512]
                        .chunks_mut(64)
                        .for_each(|lane| lane[random.below(64)] = true);
                }
            }
        }
    }

    fn count(&self) -> u64 {
        self.set.iter().filter(|&&bit| bit).count() as u64
    }
}

/// One of the estimates in an overlap.
type Part = fn(&Overlap) -> Estimate;

/// Builds A = 0..a and B = a-shared..a-shared+b many times, with keys salted by the build.
fn overlaps(shape: Shape, a: u64, b: u64, shared: u64, builds: u64) -> Vec<Overlap> {
    (0..builds)
        .map(|build| {
            let (mut left, mut right) = (Bits::new(shape), Bits::new(shape));
            (0..a).for_each(|key| left.insert(key << 20 | build));
            (a - shared..a - shared + b).for_each(|key| right.insert(key << 20 | build));
            let either = left.set.iter().zip(&right.set).filter(|&(&l, &r)| l || r).count();
            shape.overlap(left.count(), right.count(), either as u64).unwrap().unwrap()
        })
        .collect()
}

#[test]
fn worked_numbers_of_the_estimate() {
    let toy = Shape::Standard { bits: 10, hashes: 3 };
    assert!((keys(toy, 5) - 2.3105).abs() < 5e-5);
    assert!((keys(toy, 6) - 3.0543).abs() < 5e-5);
    assert!((keys(Shape::Standard { bits: 9586, hashes: 7 }, 4968) - 1000.15).abs() < 5e-3);
    assert_eq!(toy.cardinality(0).unwrap(), Cardinality::Estimated(Estimate::default()));
    assert_eq!(toy.cardinality(10).unwrap(), Cardinality::Saturated);
    assert_eq!(toy.cardinality(10).unwrap().to_string(), "saturated");
}

#[test]
fn two_sets_of_800_and_700_sharing_200_are_estimated() {
    let shape = Shape::Standard { bits: 9586, hashes: 7 };
    let builds = overlaps(shape, 800, 700, 200, 200);
    // Estimate, true value, four sigma of the mean of 200 builds, sigma of one build.
    let table: [(Part, f64, f64, f64); 3] = [
        (|o| o.left, 800.0, 1.9, 6.6),
        (|o| o.intersection, 200.0, 2.1, 7.6),
        (|o| o.jaccard, 0.1538, 0.0019, 0.0068),
    ];
    for (part, truth, tolerance, sigma) in table {
        let (mean, deviation) = moments(&builds.iter().map(|o| part(o).value).collect::<Vec<_>>());
        assert!((mean - truth).abs() < tolerance, "{mean} instead of {truth}");
        // 200 builds determine their deviation to 5 %; allow four times that.
        assert!((deviation / sigma - 1.0).abs() < 0.2, "{deviation} instead of {sigma}");
        let predicted = part(&builds[0]).standard_error;
        assert!((predicted / sigma - 1.0).abs() < 0.05, "{predicted} predicted instead of {sigma}");
    }
}

#[test]
fn errors_are_as_predicted_in_every_shape() {
    let shapes = [
        Shape::Standard { bits: 6000, hashes: 5 },
        Shape::Partitioned { slice_bits: 1200, hashes: 5 },
        Shape::Blocked { lines: 16, lines_per_key: 1 },
        Shape::Blocked { lines: 32, lines_per_key: 2 },
    ];
    for shape in shapes {
        let builds = overlaps(shape, 900, 500, 300, 400);
        let parts: [(Part, f64); 7] = [
            (|o| o.left, 900.0),
            (|o| o.right, 500.0),
            (|o| o.union, 1100.0),
            (|o| o.intersection, 300.0),
            (|o| o.jaccard, 3.0 / 11.0),
            (|o| o.left_in_right, 1.0 / 3.0),
            (|o| o.right_in_left, 0.6),
        ];
        for (part, truth) in parts {
            let (mean, deviation) = moments(&builds.iter().map(|o| part(o).value).collect::<Vec<_>>());
            let predicted = moments(&builds.iter().map(|o| part(o).standard_error).collect::<Vec<_>>()).0;
            // The logarithm is not linear, which causes a bias: far below the error of one build,
            // but not of four hundred.
            assert!(
                (mean - truth).abs() < 0.25 * predicted + 0.002 * truth,
                "{shape:?}: {mean} {truth} ± {predicted}"
            );
            assert!((deviation / predicted - 1.0).abs() < 0.2, "{shape:?} {truth}: {deviation} {predicted}");
        }
    }
}

#[test]
fn every_shape_inverts_its_own_expected_fill() {
    use crate::sizing::{blocked, partitioned, rate};
    let n = 1_000_000;
    let fills = [
        (Shape::Standard { bits: 9_585_059, hashes: 7 }, rate::expected_fill(9_585_059, n, 7)),
        (Shape::Partitioned { slice_bits: 1_442_696, hashes: 7 }, partitioned::expected_fill(1_442_696, n)),
        (Shape::Blocked { lines: 40_000, lines_per_key: 2 }, blocked::expected_fill(40_000, n, 2)),
    ];
    for (shape, fill) in fills {
        let set_bits = (fill.unwrap() * shape.cells()).round() as u64;
        assert!((keys(shape, set_bits) - n as f64).abs() < 2.0, "{shape:?}");
    }
}

#[test]
fn shares_stay_between_zero_and_one() {
    let shape = Shape::Standard { bits: 1000, hashes: 3 };
    let overlap = |a, b, u| shape.overlap(a, b, u).unwrap().unwrap();
    // Fewer common bits than expected by chance: the estimate would be negative.
    assert_eq!(overlap(300, 300, 600).intersection.value, 0.0);
    assert_eq!(overlap(300, 300, 600).jaccard.value, 0.0);
    assert_eq!(overlap(300, 300, 300).jaccard.value, 1.0);
    assert_eq!(overlap(300, 300, 300).jaccard.standard_error, 0.0);
    assert_eq!(overlap(200, 300, 300).left_in_right.value, 1.0);
    assert_eq!(overlap(0, 0, 0).jaccard.value, 1.0);
    assert_eq!(overlap(0, 300, 300).left_in_right.value, 1.0);
    assert_eq!(overlap(0, 300, 300).right_in_left.value, 0.0);
    assert_eq!(shape.overlap(900, 900, 1000).unwrap(), None);
}

#[test]
fn limits_bound_the_error_unless_they_contradict_each_other() {
    let estimate = |value, standard_error| Estimate { value, standard_error };
    assert_eq!(estimate(90.0, 8.0).within(95, None), estimate(95.0, 8.0));
    assert_eq!(estimate(90.0, 8.0).within(0, Some(85)), estimate(85.0, 8.0));
    assert_eq!(estimate(90.0, 8.0).within(88, Some(91)), estimate(90.0, 2.0));
    assert_eq!(estimate(90.0, 8.0).within(95, Some(95)), estimate(95.0, 0.0));
    assert_eq!(estimate(90.0, 8.0).within(100, Some(80)), estimate(80.0, 8.0));
}

#[test]
fn stages_add_up() {
    let part = |value, standard_error| Cardinality::Estimated(Estimate { value, standard_error });
    assert_eq!([part(100.0, 3.0), part(50.0, 4.0)].into_iter().sum::<Cardinality>(), part(150.0, 5.0));
    assert_eq!(
        [part(1.0, 1.0), Cardinality::Saturated].into_iter().sum::<Cardinality>(),
        Cardinality::Saturated
    );
    assert_eq!(part(1234.56, 7.8).to_string(), "1235 ± 8");
}

#[test]
fn impossible_counts_are_refused() {
    let shape = Shape::Standard { bits: 1000, hashes: 3 };
    assert!(shape.cardinality(1001).is_err());
    assert!(shape.overlap(300, 300, 299).is_err(), "a union has no fewer bits than its parts");
    assert!(shape.overlap(300, 300, 601).is_err(), "and no more than both together");
    assert!(Shape::Standard { bits: 0, hashes: 3 }.cardinality(0).is_err());
    assert!(Shape::Standard { bits: 10, hashes: 0 }.cardinality(0).is_err());
    assert!(Shape::Partitioned { slice_bits: 1 << 48, hashes: 2 }.cardinality(0).is_err());
    assert!(Shape::Blocked { lines: 8, lines_per_key: 5 }.cardinality(0).is_err());
    assert!(Shape::Blocked { lines: u64::MAX, lines_per_key: 1 }.cardinality(0).is_err());
    let largest = Shape::Standard { bits: 1 << 48, hashes: 1024 };
    assert!(largest.cardinality((1 << 48) - 1).unwrap().estimate().unwrap().standard_error.is_finite());
}
