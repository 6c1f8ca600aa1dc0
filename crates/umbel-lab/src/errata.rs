//! What the textbooks get wrong: slips of the sources, and what is right.
//!
//! A [`Criterion`](crate::Criterion) of an experiment may show one of them; the report's page `textbooks.html` puts both side by
//! side.

/// A slip in a source.
#[derive(Clone, Copy, Debug)]
pub struct Erratum {
    /// By which criteria refer to it.
    pub number: &'static str,
    /// Where it stands.
    pub source: &'static str,
    /// What is said there, in other words.
    pub says: &'static str,
    /// What is so.
    pub truth: &'static str,
}

/// All of them, in the order of the sources.
pub const ERRATA: &[Erratum] = &[];
