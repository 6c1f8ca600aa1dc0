//! Examples of filters whose bits lie in regions, with further bits about the regions.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Answer, Row, Step, Touch, and};
use umbel::sizing::floom;

/// Numbers of bits and regions.
const BITS: usize = 10;
const REGIONS: usize = 5;

fn region(position: usize) -> usize {
    position * REGIONS / BITS
}

/// A deletable filter: bits, and a collision bit for each region.
struct Deletable {
    bits: Cells,
    collisions: Cells,
}

impl Deletable {
    fn insert(&mut self, key: &str, positions: &[usize]) -> Step {
        let hit: Vec<usize> =
            positions.iter().copied().filter(|position| self.bits.values()[*position] > 0).collect();
        let regions: Vec<usize> = hit.iter().map(|position| region(*position)).collect();
        let effect = if hit.is_empty() {
            "none of its bits was set before, so no region is marked".into()
        } else {
            format!("bit {} is 1 already, which marks region {}", and(&hit), and(&regions))
        };
        let rows = vec![self.bits.set(key, positions), self.collisions.set(key, &regions)];
        Step::new(format!("Insert {key} at {}: {effect}.", and(positions)), rows)
    }

    fn remove(&mut self, key: &str, positions: &[usize]) -> Step {
        let (stay, go): (Vec<usize>, Vec<usize>) =
            positions.iter().partition(|position| self.collisions.values()[region(**position)] > 0);
        let mut row = self.bits.clear(key, &go);
        let mut collisions = self.collisions.row();
        for position in stay.iter() {
            row.mark(*position, Touch::Refused, "stays");
            collisions.mark(region(*position), Touch::Found, "hit");
        }
        let effect = match (go.is_empty(), stay.is_empty()) {
            (true, _) => "all its regions are marked: it cannot be removed".into(),
            (false, true) => format!("{} lie in regions without a mark and become 0", and(&go)),
            (false, false) => format!(
                "{} lies in a marked region and stays, {} does not and becomes 0, which is enough",
                and(&stay),
                and(&go)
            ),
        };
        if !go.is_empty() {
            self.bits.leave(key);
        }
        Step::new(format!("Remove {key}: {effect}."), vec![row, collisions])
    }
}

pub fn deletable() -> Result<Vec<Step>> {
    let mut filter =
        Deletable { bits: Cells::new("bits", BITS), collisions: Cells::new("collisions", REGIONS) };
    let start = "Ten bits in five regions of two, and a collision bit for each region. x and y \
                 share the third bit; the other positions are ours.";
    let (x, y) = ([2, 8], [2, 5]);
    let mut steps = vec![Step::new(start, vec![filter.bits.row(), filter.collisions.row()])];
    steps.push(filter.insert("x", &x));
    steps.push(filter.insert("y", &y));
    steps.push(filter.remove("x", &x));
    steps.push(filter.bits.query("x", &x));
    steps.push(filter.bits.query("y", &y));
    Ok(steps)
}

/// Returns the number whose binary digits are the regions of these positions.
fn pattern(positions: &[usize]) -> usize {
    positions.iter().fold(0, |pattern, position| pattern | 1 << region(*position))
}

/// A Floom filter: bits, and a further bit for each pattern.
struct Floom {
    bits: Cells,
    patterns: Cells,
}

impl Floom {
    fn insert(&mut self, key: &str, positions: &[usize]) -> Step {
        let (regions, powers) = region_names(positions);
        let rows = vec![self.bits.set(key, positions), self.patterns.set(key, &[pattern(positions)])];
        let says = format!(
            "Insert {key} at {}, in the regions {regions}: its pattern is {powers} = {}.",
            and(positions),
            pattern(positions)
        );
        Step::new(says, rows)
    }

    fn query(&self, key: &str, positions: &[usize]) -> Step {
        let (mut asked, of_pattern) =
            (self.bits.query(key, positions), self.patterns.query(key, &[pattern(positions)]));
        let (_, powers) = region_names(positions);
        if asked.answer.as_ref().is_some_and(Answer::is_yes)
            && let Some(Answer::No(_)) = of_pattern.answer
        {
            asked.says = format!(
                "Ask for {key} at {}: all its bits are 1, and a standard filter would say yes. But \
                 bit {powers} = {} of the patterns is 0: certainly not a member.",
                and(positions),
                pattern(positions)
            );
            asked.answer = of_pattern.answer;
        }
        asked.rows.extend(of_pattern.rows);
        asked
    }
}

/// Returns the regions of positions, and the powers of two that they stand for.
fn region_names(positions: &[usize]) -> (String, String) {
    let mut regions: Vec<usize> = positions.iter().map(|position| region(*position)).collect();
    regions.sort_unstable();
    regions.dedup();
    let powers: Vec<String> = regions.iter().map(|region| format!("2^{region}")).collect();
    (and(&regions), powers.join(" + "))
}

pub fn floom() -> Result<Vec<Step>> {
    let mut filter = Floom { bits: Cells::new("bits", BITS), patterns: Cells::new("patterns", 1 << REGIONS) };
    let start = "Ten bits in five regions of two, and a bit for each of the 32 sets of regions. x \
                 has bits in the second and the fifth region; the other keys are ours.";
    let mut steps = vec![Step::new(start, vec![filter.bits.row(), filter.patterns.row()])];
    steps.push(filter.insert("x", &[3, 8]));
    steps.push(filter.insert("y", &[1, 5]));
    steps.push(filter.query("z", &[3, 5]));
    let hashes = 2;
    let reachable = floom::reachable_patterns(REGIONS as u32, hashes)?;
    let within = |pattern: u32| u8::from((1..=hashes).contains(&pattern.count_ones()));
    steps.push(Step::new(
        format!(
            "Two hash functions hit one region or two. Only {reachable} of the 32 patterns can \
             ever occur, marked with a 1; the other bits are wasted."
        ),
        vec![Row::new("can occur", (0..1 << REGIONS).map(within))],
    ));
    Ok(steps)
}
