//! Popularity by Zipf's law: a few things are requested often, and most of them hardly ever.

use crate::traffic::Dice;

/// A number of things, of which the i-th, counted from 1, is requested in proportion to i^-skew.
pub(crate) struct Zipf {
    skew: f64,
    /// The sum of i^-skew up to each thing.
    sums: Vec<f64>,
}

impl Zipf {
    /// Creates the popularity of this many things.
    pub fn new(things: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let add = |i: usize| {
            sum += (i as f64).powf(-skew);
            sum
        };
        Zipf { skew, sums: (1..=things).map(add).collect() }
    }

    /// Draws the number of a thing, counted from 0.
    pub fn draw(&self, dice: &mut Dice) -> usize {
        let at = dice.fraction() * self.total();
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1)
    }

    /// Returns the share of requests that are for each thing, the most popular one first.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        (1..=self.sums.len()).map(|i| (i as f64).powf(-self.skew) / self.total())
    }

    /// Returns the share of requests that are for one of the `first` most popular things.
    pub fn share_of_first(&self, first: usize) -> f64 {
        match first.min(self.sums.len()) {
            0 => 0.0,
            first => self.sums[first - 1] / self.total(),
        }
    }

    fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lab, Law, Scale};

    #[test]
    fn things_are_drawn_by_their_share() {
        let lab = Lab::new(Scale::Quick, 1);
        let (zipf, mut dice) = (Zipf::new(4, 1.0), Dice::new(&lab, b"zipf", 0));
        // 1, 1/2, 1/3 and 1/4 of 25/12.
        let shares: Vec<f64> = zipf.shares().collect();
        assert!(shares.iter().zip([0.48, 0.24, 0.16, 0.12]).all(|(one, other)| (one - other).abs() < 1e-12));
        assert!((zipf.share_of_first(2) - 0.72).abs() < 1e-12);
        assert_eq!((zipf.share_of_first(0), zipf.share_of_first(9)), (0.0, 1.0));
        let mut drawn = [0; 4];
        (0..100_000).for_each(|_| drawn[zipf.draw(&mut dice)] += 1);
        for (count, probability) in drawn.into_iter().zip(shares) {
            assert!(
                Law::Binomial { trials: 100_000, probability }.two_sided(0.0).contains(&count),
                "{drawn:?}"
            );
        }
    }
}
