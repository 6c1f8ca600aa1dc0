//! A value in one of two layouts: that of this module, or that of RedisBloom, whose dumps can be
//! loaded.

use super::Persist;
use crate::error::{self, Error};
use crate::server::{Failure, Result, TypeHandle};
use std::ffi::CStr;
use std::io::Read;
use umbel::any::Stored;
use umbel::file::Storable;
use umbel::foreign::Dump;
use umbel::hash::HashId;
use umbel::memory::{Mover, Words};

/// A value in the layout of this module, or in that of RedisBloom.
#[derive(Debug)]
pub enum Layout<O, R> {
    /// In the layout of this module, as its commands create it.
    Own(O),
    /// In the layout of RedisBloom, loaded from a dump. It is dumped in that layout, too.
    RedisBloom(R),
}

fn foreign() -> Failure {
    Failure::new(
        "this filter was loaded from RedisBloom and has only the commands that RedisBloom has for it",
    )
}

impl<O, R> Layout<O, R> {
    /// Returns the value in the layout of this module.
    ///
    /// # Errors
    ///
    /// If it has that of RedisBloom.
    pub fn own(&self) -> Result<&O> {
        match self {
            Layout::Own(own) => Ok(own),
            Layout::RedisBloom(_) => Err(foreign()),
        }
    }
}

impl<O: Persist, R: Dump + Send + 'static> Persist for Layout<O, R> {
    const NAME: &'static CStr = O::NAME;

    const LOAD_COMMAND: &'static CStr = O::LOAD_COMMAND;

    fn type_handle() -> &'static TypeHandle {
        O::type_handle()
    }

    fn hash_id(&self) -> Option<HashId> {
        self.own().ok().and_then(O::hash_id)
    }

    fn numbers(&self) -> Vec<u64> {
        match self {
            Layout::Own(own) => own.numbers(),
            Layout::RedisBloom(value) => value.header().into_iter().map(u64::from).collect(),
        }
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        self.own().map_or_else(|_| Vec::new(), O::filters)
    }

    fn sections(&self) -> Vec<&Words> {
        match self {
            Layout::Own(own) => own.sections(),
            Layout::RedisBloom(value) => value.sections(),
        }
    }

    fn extra(&self) -> umbel::Result<Vec<u8>> {
        self.own().map_or_else(|_| Ok(Vec::new()), O::extra)
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, extra: &[u8]) -> error::Result<Self> {
        O::restore(numbers, filters, extra).map(Layout::Own)
    }

    fn redisbloom_bytes(header: &[u8]) -> error::Result<u64> {
        R::data_bytes(header).map_err(Error::from)
    }

    fn restore_redisbloom(header: &[u8], data: &mut dyn Read) -> error::Result<Self> {
        Ok(Layout::RedisBloom(R::load(header, data)?))
    }

    fn redisbloom(&self) -> Option<&dyn Dump> {
        match self {
            Layout::Own(_) => None,
            Layout::RedisBloom(value) => Some(value),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Layout::Own(own) => own.memory_bytes(),
            Layout::RedisBloom(value) => {
                let arrays = value.sections().into_iter().map(|words| size_of_val(words.lines()));
                size_of::<R>() + arrays.sum::<usize>()
            }
        }
    }

    fn copy(&self) -> umbel::Result<Self> {
        Ok(match self {
            Layout::Own(own) => Layout::Own(own.copy()?),
            Layout::RedisBloom(value) => Layout::RedisBloom(value.try_clone()?),
        })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        match self {
            Layout::Own(own) => own.relocate(mover),
            Layout::RedisBloom(value) => value.relocate(mover),
        }
    }
}
