//! The example of a filter that grows by stages.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Answer, Row, Step, and};
use umbel::sizing::PartitionedParams;
use umbel::sizing::scalable::Schedule;

const LABELS: [&str; 3] = ["stage 1", "stage 2", "stage 3"];

/// The hash values of a key, in twelfths of the range. A slice of s bits reduces one of them to the
/// bit (value * s / 12), as the library reduces a hash to a position.
type Values = [usize; 4];

/// A stage: slices of bits, with one bit in each for every key.
struct Stage {
    bits: Cells,
    params: PartitionedParams,
    keys: u64,
}

impl Stage {
    fn positions(&self, values: &Values) -> Vec<usize> {
        let slice = self.params.slice_bits as usize;
        let slices = values.iter().take(self.params.hashes as usize).enumerate();
        slices.map(|(number, value)| number * slice + value * slice / 12).collect()
    }
}

/// A scalable filter.
struct Growing {
    schedule: Schedule,
    stages: Vec<Stage>,
}

impl Growing {
    /// Opens the next stage and describes it.
    fn open(&mut self) -> Result<String> {
        let next = self.stages.len();
        let (keys, rate) = (self.schedule.stage_capacity(next), self.schedule.stage_rate(next));
        let params = PartitionedParams::for_capacity(keys, rate)?;
        self.stages.push(Stage { bits: Cells::new(LABELS[next], params.bits as usize), params, keys: 0 });
        let (noun, slices, bits) = (if keys == 1 { "key" } else { "keys" }, params.hashes, params.slice_bits);
        Ok(format!(
            "stage {} takes {keys} {noun} at a rate of 1/{}: {slices} slices of {bits} bits",
            next + 1,
            1.0 / rate
        ))
    }

    /// Inserts a key into the newest stage, after opening another one if that is full.
    fn insert(&mut self, key: &str, values: &Values) -> Result<Step> {
        let is_full = self.stages.last().is_none_or(|stage| stage.keys == stage.params.capacity);
        let mut says = String::new();
        if is_full {
            says = format!(
                "Stage {} is full, and a larger one is opened: {}. ",
                self.stages.len(),
                self.open()?
            );
        }
        let number = self.stages.len();
        let rows = self.stages.last_mut().map(|stage| {
            let positions = stage.positions(values);
            stage.keys += 1;
            says +=
                &format!("Insert {key} into stage {number} at {}, one bit in each slice.", and(&positions));
            stage.bits.set(key, &positions)
        });
        Ok(Step::new(says, rows.into_iter().collect()))
    }

    /// Queries the stages from the newest to the oldest, up to the first yes.
    fn query(&self, key: &str, values: &Values) -> Step {
        let (mut rows, mut parts, mut zeros) = (Vec::new(), Vec::new(), Vec::new());
        let mut answer = None;
        for (number, stage) in self.stages.iter().enumerate().rev() {
            let step = stage.bits.query(key, &stage.positions(values));
            rows.extend(step.rows);
            match step.answer {
                Some(Answer::No(refused) | Answer::FalseNegative(refused)) => {
                    parts.push(format!("stage {} says no", number + 1));
                    zeros.extend(refused);
                }
                yes => {
                    parts.push(format!("stage {} says yes", number + 1));
                    answer = yes;
                    break;
                }
            }
        }
        let verdict = match &answer {
            Some(Answer::FalsePositive(keys)) => {
                format!("One yes is enough, but {key} was never inserted: a false positive by {}.", and(keys))
            }
            Some(_) => "One yes is enough; the older stages are not asked.".to_string(),
            None => "Certainly not a member.".to_string(),
        };
        let says = format!("Ask for {key}, in the newest stage first: {}. {verdict}", parts.join(", "));
        Step { says, rows, answer: answer.or(Some(Answer::No(zeros))) }
    }
}

pub fn growing() -> Result<Vec<Step>> {
    let schedule = Schedule::new(1, 0.5, 0.5, 2)?;
    let mut filter = Growing { schedule, stages: Vec::new() };
    let first = filter.open()?;
    let mut steps = vec![Step::new(
        format!(
            "The rate must stay below 1/2, however many keys come. Each stage has twice the keys and \
             half the rate of the one before; {first}. The keys and their hash values are ours."
        ),
        vec![filter.stages[0].bits.row()],
    )];
    let b = [3, 8, 11, 6];
    for (key, values) in [("a", [7, 2, 9, 4]), ("b", b), ("c", [8, 5, 0, 3]), ("d", [5, 1, 10, 7])] {
        steps.push(filter.insert(key, &values)?);
    }
    steps.push(filter.query("b", &b));
    steps.push(filter.query("x", &[9, 1, 6, 2]));
    steps.push(filter.query("y", &[2, 3, 3, 8]));
    let rates = (0..LABELS.len()).map(|stage| format!("{}", schedule.stage_rate(stage)));
    steps.push(Step::new(
        format!(
            "A stranger is found if any stage finds it: 1 - (1 - 1/4)(1 - 1/8)(1 - 1/16) = {:.4}. \
             With more stages the rate rises, but never above 1/4 + 1/8 + 1/16 + ... = 1/2.",
            schedule.compound_rate(LABELS.len())
        ),
        vec![Row::new("rates", rates).under(LABELS)],
    ));
    Ok(steps)
}
