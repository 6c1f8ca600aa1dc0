//! `Lookup`: many keys looked up in a set, which every class of sets does in the same way.

use crate::answers::Collected;
use crate::keys::Work;
use crate::storage::Storage;
use umbel::foreign::ForeignFilter;
use umbel::{Answers, Batch, Result, Sharded};

/// A set that answers many keys at once.
pub trait Members {
    fn members<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers>;
}

impl Members for Storage {
    fn members<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        self.contains_batch(keys)
    }
}

impl Members for ForeignFilter {
    fn members<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        self.contains_batch(keys)
    }
}

impl Members for Sharded {
    fn members<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        self.contains_batch(keys)
    }
}

/// Looks up the keys of a column in a set.
pub struct Lookup<'a, S> {
    pub set: &'a S,
    pub answers: &'a mut Collected,
}

impl<S: Members> Work for Lookup<'_, S> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        self.answers.push(&self.set.members(keys)?);
        Ok(())
    }
}
