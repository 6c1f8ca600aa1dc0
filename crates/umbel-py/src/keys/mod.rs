//! The keys in Python objects: single objects, and many at once from lists, iterators, numpy arrays
//! and Arrow columns.
//!
//! [`Encoder`] turns one object into a digest. [`Source`] tells how an object holds many keys: as
//! [columns](Column) in memory, which are hashed without the interpreter, or as objects that
//! Python hands out one by one.

mod arrow;
mod c_data;
mod column;
mod items;
mod numbers;
mod object;
mod source;

pub use column::{CHUNK, Column};
pub use items::for_each;
pub use object::Encoder;
pub use source::{Columns, Origin, Source};
