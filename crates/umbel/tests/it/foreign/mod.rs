//! The filters of other programs: their bits are those of plain loops written from the documentation
//! of each format, files go through unchanged, and what is damaged is refused.

mod answers;
mod bad_files;
mod files;
mod golden;
mod naive;
mod originals;

use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options};

/// Makes an empty filter with the default funnel.
fn filter(format: Format, keys: u64, rate: f64) -> ForeignFilter {
    ForeignFilter::with_capacity(format, keys, rate, &options(format)).unwrap()
}

/// Options that suit a format.
fn options(format: Format) -> Options {
    let funnel = match format {
        Format::Guava => Some(Funnel::Utf8),
        // As text, the empty key would not be inserted.
        Format::DataSketches => Some(Funnel::Bytes),
        _ => None,
    };
    Options { funnel, ..Options::default() }
}

/// The facts that go with a file.
fn given(format: Format) -> Given {
    Given { format: Some(format), funnel: options(format).funnel }
}

/// Distinct keys of all lengths, so that every tail of every hash occurs; the first is empty.
fn keys(count: usize) -> Vec<Vec<u8>> {
    let key = |i: usize| format!("{i} ").bytes().cycle().take(if i == 0 { 0 } else { 6 + i % 67 }).collect();
    (0..count).map(key).collect()
}
