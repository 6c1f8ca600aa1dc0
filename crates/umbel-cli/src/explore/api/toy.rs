//! A filter small enough to see, with the steps of `umbel lab trace --bits`.

use super::{Context, fields};
use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use umbel::Kind;
use umbel_lab::trace::{Answer, Formula, Operation, OwnHash, OwnKeys, Step, Touch};

/// The largest number of cells that the page can draw.
const MAX_CELLS: usize = 256;

/// The filter as the user describes it, and everything done with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    m: String,
    k: String,
    /// Formulas, or nothing for the hash of the library.
    hash: String,
    kind: String,
    /// The names of the operations and their keys.
    steps: Vec<(String, String)>,
}

impl Question {
    fn own_keys(&self) -> Result<OwnKeys> {
        let bits = self.m.trim().parse().ok().filter(|bits| (1..=MAX_CELLS).contains(bits));
        let Some(bits) = bits else { bail!("m is a whole number from 1 to {MAX_CELLS}") };
        let hash = match self.hash.trim() {
            "" => match self.k.trim().parse() {
                Ok(hashes) => OwnHash::Library(hashes),
                Err(_) => bail!("k is a whole number, such as 3"),
            },
            formulas => OwnHash::Formulas(Formula::parse_list(formulas, bits as u64)?),
        };
        let operations = self.steps.iter().map(|(name, key)| {
            if key.contains(',') {
                bail!("a key of the toy cannot contain a comma");
            }
            let key = key.clone();
            Ok(match &name[..] {
                "insert" => Operation::Insert(key),
                "delete" => Operation::Remove(key),
                "ask" => Operation::Ask(key),
                _ => bail!("a step inserts, deletes or asks"),
            })
        });
        let kind: Kind = self.kind.parse()?;
        Ok(OwnKeys { kind, bits, hash, operations: operations.collect::<Result<_>>()? })
    }
}

/// Returns the filter after all steps, and why the last one had its result.
pub fn toy(_: &Context, asked: &Value) -> Result<Value> {
    let question: Question = fields(asked)?;
    let own = question.own_keys()?;
    let trace = match own.run() {
        Ok(trace) => trace,
        Err(error) => return Ok(refused(own, &error)),
    };
    // The first step shows the empty filter, and the last one sums up.
    let (first, played) = (&trace.steps[0], &trace.steps[1..=own.operations.len()]);
    let shown = played.last().unwrap_or(first);
    let cells: Vec<Value> = shown.rows.iter().flat_map(|row| &row.cells).map(cell).collect();
    let answers: Vec<_> = played.iter().map(|step| step.answer.as_ref().map(name)).collect();
    let last = match own.operations.last() {
        Some(operation) => Some(last(&own, operation, &trace.steps[..=own.operations.len()])?),
        None => None,
    };
    let members = members(&own.operations, played);
    Ok(
        json!({"cells": cells, "answers": answers, "last": last, "members": members, "hashes": own.hash.count()}),
    )
}

/// Returns the error, and the number of the last step if the filter works without it.
fn refused(own: OwnKeys, error: &umbel_lab::Error) -> Value {
    let mut answer = json!({"error": error.to_string()});
    let count = own.operations.len();
    let mut before = own;
    if before.operations.pop().is_some() && before.run().is_ok() {
        answer["step"] = (count - 1).into();
    }
    answer
}

fn cell(cell: &umbel_lab::trace::Cell) -> Value {
    let keys: Vec<&str> = cell.keys.split(',').filter(|key| !key.is_empty()).collect();
    let touch = cell.mark.as_ref().map(|mark| match mark.touch {
        Touch::Set => "set",
        Touch::Found => "found",
        Touch::Refused => "refused",
        Touch::Cleared => "cleared",
    });
    json!({"value": cell.value.parse::<u64>().unwrap_or(0), "keys": keys, "touch": touch})
}

fn name(answer: &Answer) -> &'static str {
    match answer {
        Answer::Member => "yes",
        Answer::FalsePositive(_) => "false-positive",
        Answer::No(_) => "no",
        Answer::FalseNegative(_) => "false-negative",
    }
}

/// Explains the last of these steps, of which the first shows the empty filter.
fn last(own: &OwnKeys, operation: &Operation, steps: &[Step]) -> Result<Value> {
    let (step, before) = (&steps[steps.len() - 1], &steps[steps.len().saturating_sub(2)]);
    let positions = own.positions(operation.key())?;
    let mut explained = json!({"key": operation.key(), "positions": positions, "done": !is_refused(step)});
    explained["act"] = match operation {
        Operation::Insert(_) => "insert",
        Operation::Remove(_) => "delete",
        Operation::Ask(_) => "ask",
    }
    .into();
    let marks = || step.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.mark.as_ref());
    explained["changed"] = marks().filter(|mark| mark.touch == Touch::Set).count().into();
    if let Operation::Remove(key) = operation {
        let cells = before.rows.iter().flat_map(|row| positions.iter().filter_map(|at| row.cells.get(*at)));
        let mut others: Vec<&str> = cells
            .flat_map(|cell| cell.keys.split(','))
            .filter(|other| !other.is_empty() && other != key)
            .collect();
        others.sort_unstable();
        others.dedup();
        explained["blame"] = json!(others);
    }
    if let Some(answer) = &step.answer {
        explained["answer"] = name(answer).into();
        match answer {
            Answer::Member => {}
            Answer::FalsePositive(keys) => explained["blame"] = json!(keys),
            Answer::No(cells) => explained["refused"] = json!(cells),
            Answer::FalseNegative(cells) => {
                explained["refused"] = json!(cells);
                explained["blame"] = json!(removers(own, &steps[1..], cells)?);
            }
        }
    }
    Ok(explained)
}

/// Returns the keys that were removed and use one of these cells.
fn removers(own: &OwnKeys, steps: &[Step], cells: &[usize]) -> Result<Vec<String>> {
    let mut keys: Vec<String> = Vec::new();
    for (operation, step) in own.operations.iter().zip(steps) {
        let Operation::Remove(key) = operation else { continue };
        let shares = own.positions(key)?.iter().any(|position| cells.contains(position));
        if shares && !is_refused(step) && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    Ok(keys)
}

/// Returns the keys in the set, in the order in which they were inserted.
fn members(operations: &[Operation], steps: &[Step]) -> Vec<String> {
    let mut members: Vec<String> = Vec::new();
    for (operation, step) in operations.iter().zip(steps) {
        match operation {
            Operation::Insert(key) => members.push(key.clone()),
            Operation::Remove(key) if !is_refused(step) => {
                if let Some(place) = members.iter().position(|member| member == key) {
                    members.remove(place);
                }
            }
            _ => {}
        }
    }
    let mut seen = std::collections::HashSet::new();
    members.retain(|key| seen.insert(key.clone()));
    members
}

/// Returns whether a cell refused a removal.
fn is_refused(step: &Step) -> bool {
    let mut marks = step.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.mark.as_ref());
    step.answer.is_none() && marks.any(|mark| mark.touch == Touch::Refused)
}
