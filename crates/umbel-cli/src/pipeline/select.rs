//! The loop of all commands that print the lines a query selects: `check`, `map get`, `count get`,
//! `shard check`.

use crate::input::{InputArgs, Records};
use crate::pipeline;
use crate::terminal::exit;
use crate::terminal::output::Out;
use anyhow::Result;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// How selected lines are printed.
pub struct Select {
    /// Print each line as soon as it is found.
    pub line_buffered: bool,
    /// Print only the number of selected lines.
    pub count: bool,
    /// Print nothing, and stop at the first selected line.
    pub quiet: bool,
}

impl Select {
    /// Reads all lines and prints the selected ones in the order of the input. `query` returns the
    /// number of selected records of a block and their output; `verify` is called before the end
    /// and fails if the answers are not reliable.
    pub fn run(
        &self,
        input: &InputArgs,
        query: impl Fn(&Records) -> Result<(u64, Vec<u8>)> + Sync,
        verify: impl FnOnce() -> Result<()>,
    ) -> Result<ExitCode> {
        let mut out = Out::new(self.line_buffered)?;
        let mut selected = 0;
        pipeline::run(
            input.open()?.printing()?,
            input.threads(),
            |_, records| query(records),
            |(count, lines), info| {
                selected += count;
                if self.quiet && selected > 0 {
                    return Ok(ControlFlow::Break(()));
                }
                out.write(&lines, info.caught_up)?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        verify()?;
        if self.count {
            out.write(format!("{selected}\n").as_bytes(), true)?;
        }
        out.finish()?;
        Ok(exit::found(selected > 0))
    }
}
