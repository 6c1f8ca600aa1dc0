//! The lines of shell, Rust and Python that build exactly the planned filter.

use umbel::sizing::Given;
use umbel::{Kind, Plan};

/// The file with the filter, in all three languages.
const FILE: &str = "keys.umbel";

/// Returns the command, with the parameters as the user wrote them.
pub fn command(options: &[[&str; 2]], kind: Kind) -> String {
    let options: Vec<String> = options.iter().map(|[name, value]| format!("{name} {value}")).collect();
    let has_hashes = options.iter().any(|option| option.starts_with("-k "));
    let kind = match kind {
        // The default of the command.
        Kind::Blocked if !has_hashes => String::new(),
        Kind::Standard if has_hashes => String::new(),
        Kind::Literature => " --kind literature --hash murmur3".to_string(),
        kind => format!(" --kind {kind}"),
    };
    format!("umbel build {}{kind} -o {FILE} keys.txt", options.join(" "))
}

/// Returns an expression in Rust. Its type is that of the planned kind, which may be another one than
/// the kind asked for.
pub fn rust(given: &Given, plan: &Plan) -> String {
    let Some(name) = rust_type(plan.kind) else {
        return format!("let filter = umbel::file::load(\"{FILE}\", &Default::default())?.filter;");
    };
    if let Given { n: Some(n), p: Some(p), m: None, k: None } = *given {
        return format!("let mut filter = umbel::{name}::with_capacity({}, {p})?;", grouped(n));
    }
    let mut calls = String::new();
    let mut call = |method: &str, value: Option<String>| {
        if let Some(value) = value {
            calls += &format!(".{method}({value})");
        }
    };
    call("capacity", given.n.map(grouped));
    call("rate", given.p.map(|rate| rate.to_string()));
    call("bits", given.m.map(grouped));
    call("hashes", given.k.map(|hashes| hashes.to_string()));
    format!("let mut filter = umbel::{name}::builder(){calls}.build()?;")
}

fn rust_type(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Standard => "Bloom::<umbel::Standard>",
        Kind::Partitioned => "Bloom::<umbel::Partitioned>",
        Kind::Blocked => "Bloom::<umbel::Blocked>",
        Kind::Counting => "Counting",
        Kind::VariableIncrement => "VariableIncrement",
        Kind::Deletable => "Deletable",
        Kind::Scalable => "Scalable",
        Kind::Aging => "Aging",
        Kind::Floom => "floom::Floom",
        Kind::Cuckoo => "Cuckoo",
        Kind::Quotient => "Quotient",
        _ => return None,
    })
}

/// Returns a statement in Python, whose classes plan with keys and a rate only. Filters of other
/// parameters are opened after the command has built them.
pub fn python(given: &Given, plan: &Plan) -> String {
    let class = match plan.kind {
        Kind::Blocked | Kind::Standard | Kind::Partitioned => Some("Bloom"),
        Kind::Counting | Kind::VariableIncrement | Kind::Deletable => Some("Counting"),
        Kind::Scalable => Some("Scalable"),
        Kind::Aging => Some("Aging"),
        Kind::Cuckoo => Some("Cuckoo"),
        Kind::Quotient => Some("Quotient"),
        _ => None,
    };
    let kind = match plan.kind {
        Kind::Standard | Kind::Partitioned | Kind::VariableIncrement | Kind::Deletable => {
            format!(", kind=\"{}\"", plan.kind)
        }
        _ => String::new(),
    };
    match (class, given) {
        (Some(class), Given { n: Some(n), p: Some(p), m: None, k: None }) => {
            format!("seen = umbel.{class}({}, {p}{kind})", grouped(*n))
        }
        _ => format!("seen = umbel.open(\"{FILE}\")"),
    }
}

/// Formats a number with groups of three digits, as both languages read it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}
