//! Lines that an answer selects: asked for by many threads, printed in the order of the input, and counted.

use crate::engine;
use crate::input::{InputArgs, Records};
use crate::terminal::exit::found;
use crate::terminal::output::Out;
use anyhow::Result;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// How lines are told about.
pub struct Selecting {
    /// Each as soon as it is found.
    pub line_buffered: bool,
    /// Only how many there are.
    pub count: bool,
    /// Only by the exit code, at the first one.
    pub quiet: bool,
}

impl Selecting {
    /// Asks for all lines. `ask` tells how many of a lot are selected and what is printed for them; `check` has the last
    /// word on whether the answers can be relied on.
    pub fn run(
        &self,
        input: &InputArgs,
        ask: impl Fn(&Records) -> Result<(u64, Vec<u8>)> + Sync,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<ExitCode> {
        let mut out = Out::new(self.line_buffered)?;
        let mut selected = 0;
        engine::run(
            input.open()?.printing()?,
            input.threads(),
            |_, records| ask(records),
            |(count, lines), turn| {
                selected += count;
                if self.quiet && selected > 0 {
                    return Ok(ControlFlow::Break(()));
                }
                out.write(&lines, turn.caught_up)?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        check()?;
        if self.count {
            out.write(format!("{selected}\n").as_bytes(), true)?;
        }
        out.finish()?;
        Ok(found(selected > 0))
    }
}
