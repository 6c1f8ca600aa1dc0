//! The filter after which another one is planned, `umbel plan --like`.

use super::FormatArg;
use crate::report::{ForeignReport, percent, size};
use crate::system::signals;
use anyhow::{Context, Result};
use std::fmt;
use std::path::Path;
use umbel::{Kind, file};

/// The keys and the rate of a filter, of umbel or of another program.
pub struct Model {
    name: String,
    /// The kind or the format.
    form: String,
    /// The kind of a filter of umbel.
    pub kind: Option<Kind>,
    pub capacity: u64,
    pub rate: f64,
    bytes: u64,
}

impl Model {
    /// Reads a filter.
    pub fn open(path: &Path, format: FormatArg) -> Result<Model> {
        signals::watch_mapped(path);
        let name = path.display().to_string();
        let unknown =
            || format!("{name} does not show for how many keys and which rate it was made: give -n and -p");
        let stats = match file::examine(path).map_err(anyhow::Error::new) {
            Ok(examined) => examined.stats(),
            Err(error) => {
                let report = ForeignReport::new(&format.load_instead(path, error)?);
                let (capacity, rate) = report.design().with_context(unknown)?;
                let (form, bytes) = (report.format, report.bytes);
                return Ok(Model { name, form, kind: None, capacity, rate, bytes });
            }
        };
        format.check_own(path)?;
        let (capacity, rate) = stats.capacity.zip(stats.rate_target).with_context(unknown)?;
        let (form, kind) = (stats.kind.to_string(), Some(stats.kind));
        Ok(Model { name, form, kind, capacity, rate, bytes: stats.bytes })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Model { name, form, capacity, rate, bytes, .. } = self;
        let (rate, size) = (percent(*rate), size(*bytes));
        writeln!(f, "like {name}: {form}, {capacity} keys, {rate}, {size}")
    }
}
