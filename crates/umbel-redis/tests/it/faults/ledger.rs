//! All that the cluster has acknowledged, the clients that add to it, and the check.

use super::Chance;
use super::router::Router;
use crate::support::{Answer, wait_for};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, RwLock};
use std::thread::sleep;
use std::time::Duration;

/// The number of keys of each type that are checked; older ones are deleted.
const MAX_KEYS: usize = 12;

/// A type of values that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Bloom,
    Cuckoo,
    Counting,
    Sketch,
}

impl Type {
    const ALL: [Type; 4] = [Type::Bloom, Type::Cuckoo, Type::Counting, Type::Sketch];

    /// Returns the commands that create, add, remove and ask, without the key and the items.
    fn commands(self) -> [&'static str; 4] {
        match self {
            Type::Bloom => ["BF.RESERVE KEY 0.001 100", "BF.MADD KEY", "", "BF.MEXISTS KEY"],
            Type::Cuckoo => {
                ["CF.RESERVE KEY 500", "CF.INSERT KEY NOCREATE ITEMS", "CF.DEL KEY", "CF.MEXISTS KEY"]
            }
            Type::Counting => [
                "UMBEL.RESERVE KEY counting 20000 0.001",
                "UMBEL.ADD KEY",
                "UMBEL.REMOVE KEY",
                "UMBEL.EXISTS KEY",
            ],
            Type::Sketch => ["CMS.INITBYDIM KEY 2000 4", "CMS.INCRBY KEY", "", "CMS.QUERY KEY"],
        }
    }
}

/// Returns a command with its key and items.
fn with_items(command: &str, key: &str, items: &[String]) -> Vec<Vec<u8>> {
    let words = command.split(' ').map(|word| if word == "KEY" { key } else { word });
    words.chain(items.iter().map(String::as_str)).map(|word| word.as_bytes().to_vec()).collect()
}

fn slices(command: &[Vec<u8>]) -> Vec<&[u8]> {
    command.iter().map(Vec::as_slice).collect()
}

/// A value, and the acknowledged items in it with their counts.
struct Known {
    key: String,
    value_type: Type,
    items: BTreeMap<String, u64>,
}

/// What has happened so far.
#[derive(Default)]
pub struct Counts {
    pub acknowledged: AtomicU64,
    pub uncertain: AtomicU64,
    pub removed: AtomicU64,
    pub asked: AtomicU64,
}

/// All that the servers have acknowledged.
#[derive(Default)]
pub struct Ledger {
    known: RwLock<Vec<Mutex<Known>>>,
    pub counts: Counts,
}

impl Ledger {
    /// Creates a value of each type, and deletes the oldest ones.
    pub fn create(&self, router: &mut Router, round: u64) {
        for value_type in Type::ALL {
            let key = format!("{value_type:?}{round}");
            let command = with_items(value_type.commands()[0], &key, &[]);
            wait_for("a new value", || match router.write(&slices(&command)) {
                Ok(answer) => answer == Answer::Word("OK".into()),
                // An earlier attempt has succeeded.
                Err(error) => error.to_string().contains("exists"),
            });
            let known = Known { key, value_type, items: BTreeMap::new() };
            self.known.write().unwrap().push(Mutex::new(known));
        }
        let mut known = self.known.write().unwrap();
        while known.len() > MAX_KEYS * Type::ALL.len() {
            let oldest = known.remove(0).into_inner().unwrap();
            let _ = router.call(&[b"DEL", oldest.key.as_bytes()]);
        }
    }

    pub fn any_key(&self, chance: &mut Chance) -> String {
        let known = self.known.read().unwrap();
        known[chance.below(known.len() as u64) as usize].lock().unwrap().key.clone()
    }

    /// Asks for every acknowledged item.
    pub fn check(&self, router: &mut Router, after: &str) {
        // The writers wait.
        for known in self.known.write().unwrap().iter_mut() {
            let Known { key, value_type, items } = known.get_mut().unwrap();
            let items: Vec<(&String, &u64)> = items.iter().collect();
            for part in items.chunks(1000) {
                let names: Vec<String> = part.iter().map(|(item, _)| (*item).clone()).collect();
                let command = with_items(value_type.commands()[3], key, &names);
                let mut found = Vec::new();
                wait_for("an answer", || match router.call(&slices(&command)) {
                    Ok((_, answer)) => {
                        found = answer.integers();
                        true
                    }
                    Err(_) => false,
                });
                let lost: Vec<&String> = part
                    .iter()
                    .zip(&found)
                    .filter(|((_, count), found)| **found < **count as i64)
                    .map(|((item, _), _)| *item)
                    .collect();
                assert!(
                    lost.is_empty(),
                    "{} of {} items of {key} are lost after {after}: {lost:?}",
                    lost.len(),
                    part.len()
                );
                self.counts.asked.fetch_add(part.len() as u64, Relaxed);
            }
        }
    }
}

/// Adds and removes items until it is stopped.
pub fn write(ledger: &Ledger, stop: &AtomicBool, mut router: Router, mut chance: Chance) {
    let (writer, mut next) = (chance.0, 0u64);
    let counts = &ledger.counts;
    while !stop.load(Relaxed) {
        // The check may have failed.
        let Ok(all) = ledger.known.read() else { return };
        if all.is_empty() {
            drop(all);
            sleep(Duration::from_millis(10));
            continue;
        }
        // Mostly the newest values.
        let choice = if chance.below(4) > 0 { all.len().saturating_sub(4) as u64 } else { 0 };
        let known = &all[(choice + chance.below(all.len() as u64 - choice)) as usize];
        let (key, value_type) = {
            let known = known.lock().unwrap();
            (known.key.clone(), known.value_type)
        };
        let [_, add, remove, _] = value_type.commands();
        let mut new = || {
            next += 1;
            format!("{writer}-{next}")
        };
        if !remove.is_empty() && chance.below(10) == 0 {
            // From now on, the item may be there or not. It is removed at most once: another removal
            // would take the fingerprint of another item.
            let item = known.lock().unwrap().items.pop_first();
            let Some((item, _)) = item else { continue };
            let removed = router.write(&slices(&with_items(remove, &key, &[item])));
            if removed.is_ok() { &counts.removed } else { &counts.uncertain }.fetch_add(1, Relaxed);
            continue;
        }
        let items: Vec<String> = match value_type {
            // The same few items again and again.
            Type::Sketch => vec![format!("item{}", chance.below(50))],
            _ => (0..1 + chance.below(5)).map(|_| new()).collect(),
        };
        let words = match value_type {
            Type::Sketch => vec![items[0].clone(), "1".to_owned()],
            _ => items.clone(),
        };
        match router.write(&slices(&with_items(add, &key, &words))) {
            Ok(answer) => {
                let mut known = known.lock().unwrap();
                for (item, answer) in items.into_iter().zip(answer.array()) {
                    let is_added = match answer {
                        Answer::Integer(number) => *number >= 0,
                        Answer::Error(text) => panic!("{key}: {text}"),
                        _ => false,
                    };
                    if is_added {
                        *known.items.entry(item).or_default() += 1;
                        counts.acknowledged.fetch_add(1, Relaxed);
                    }
                }
            }
            Err(_) => {
                counts.uncertain.fetch_add(items.len() as u64, Relaxed);
                drop(all);
                sleep(Duration::from_millis(20));
            }
        }
    }
}
