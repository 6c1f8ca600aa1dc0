//! Plans: all kinds of sets side by side, as `umbel plan --compare` computes them, and the code that
//! builds one of them.

use super::{Context, arguments, code, fields};
use crate::args::number;
use crate::commands::plan;
use crate::filters::SizeArgs;
use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};
use umbel::Kind;
use umbel::sizing::Given;

/// The parameters of a plan, as the user writes them; an empty text is a parameter that is not given.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    n: String,
    p: String,
    m: String,
    k: String,
    /// The kind whose numbers and code are shown; by default the one that `umbel plan` chooses.
    kind: String,
}

/// The letter of a parameter, its text, its option and its check.
type Parameter<'a> = (&'static str, &'a str, &'static str, fn(&str) -> Result<(), String>);

impl Question {
    fn parameters(&self) -> [Parameter<'_>; 4] {
        [
            ("n", self.n.trim(), "-n", |text| number::count(text).map(drop)),
            ("p", self.p.trim(), "-p", |text| number::rate(text).map(drop)),
            ("m", self.m.trim(), "-m", |text| number::bits(text).map(drop)),
            ("k", self.k.trim(), "-k", |text| hashes(text).map(drop)),
        ]
    }

    /// Returns the first parameter that is not a number, and why.
    pub fn mistake(&self) -> Option<Value> {
        self.parameters()
            .into_iter()
            .filter(|(_, text, ..)| !text.is_empty())
            .find_map(|(input, text, _, check)| Some(json!({"input": input, "error": check(text).err()?})))
    }

    /// Returns the options of `umbel plan` and `umbel build` for the given parameters.
    pub fn options(&self) -> Vec<[&str; 2]> {
        let given = self.parameters().into_iter().filter(|(_, text, ..)| !text.is_empty());
        given.map(|(_, text, option, _)| [option, text]).collect()
    }

    /// Returns the given parameters as numbers.
    pub fn given(&self) -> Result<Given> {
        fn number<T>(text: &str, parse: fn(&str) -> Result<T, String>) -> Result<Option<T>> {
            let text = text.trim();
            if text.is_empty() { Ok(None) } else { parse(text).map(Some).map_err(|error| anyhow!(error)) }
        }
        Ok(Given {
            n: number(&self.n, number::count)?,
            p: number(&self.p, number::rate)?,
            m: number(&self.m, number::bits)?,
            k: number(&self.k, hashes)?,
        })
    }

    /// Returns the kind whose numbers and code are shown.
    pub fn chosen(&self) -> Result<Kind> {
        if self.kind.is_empty() {
            let hashes = self.given()?.k;
            return Ok(SizeArgs { bits: None, hashes }.default_kind());
        }
        Ok(self.kind.parse()?)
    }
}

fn hashes(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "not a whole number: write it as 7".to_string())
}

/// Plans all kinds, and says how the chosen one is built.
pub fn plan(_: &Context, asked: &Value) -> Result<Value> {
    let question: Question = fields(asked)?;
    if let Some(mistake) = question.mistake() {
        return Ok(mistake);
    }
    let chosen = question.chosen()?;
    let options: Vec<String> =
        question.options().iter().map(|[name, value]| format!("{name}{value}")).collect();
    let plans = arguments::<plan::Args>(&options)?.all_kinds()?;
    let found = plans.iter().find(|(kind, _)| *kind == chosen);
    let given = question.given()?;
    let size = SizeArgs { bits: given.m, hashes: given.k };
    let code = found.and_then(|(_, plan)| plan.as_ref().ok()).map(|(plan, _)| match size.check_for(chosen) {
        // It can be compared with the others, but not built in this way.
        Err(error) => json!({"error": error.to_string()}),
        Ok(()) => json!({
            "command": code::command(&question.options(), chosen),
            "rust": code::rust(&given, plan),
            "python": code::python(&given, plan),
        }),
    });
    let kinds: Vec<Value> = plans.into_iter().map(|(kind, plan)| row(kind, plan)).collect();
    Ok(json!({"chosen": chosen.to_string(), "kinds": kinds, "code": code}))
}

/// Returns the report of a kind or why it has none, with the kind that was asked for.
fn row(kind: Kind, plan: Result<(umbel::Plan, crate::report::PlanReport)>) -> Value {
    let mut row = match plan {
        Ok((_, report)) => json!(report),
        Err(error) => json!({"kind": kind.to_string(), "error": format!("{error:#}")}),
    };
    row["asked"] = kind.to_string().into();
    row
}
