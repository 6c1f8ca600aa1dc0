//! Addresses, and the lines of lists.
//!
//! No input may cause a panic. A parsed address is printable ASCII and parses to the same address
//! again, and so does the expression that would be listed for it. It has 1 to 30 expressions,
//! itself first, and is found through each of them that is listed.

use umbel_text::address::{Address, Confirm, Full, Screen, Verdict, sha256};

/// Tests any bytes, as an address and as lines of a list.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        Address::listed(line).into_iter().flatten().for_each(|address| hold(&address));
    }
}

/// Tries to parse an address, and returns whether it is one.
pub fn loads(bytes: &[u8]) -> bool {
    Address::parse(bytes).inspect(hold).is_ok()
}

fn hold(address: &Address) {
    let text = address.to_string();
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?} is printable");
    assert_eq!(Address::parse(text.as_bytes()).as_ref(), Ok(address), "{text} again");
    let own = address.expression();
    // A host without a dot is an address only after a scheme, which expressions leave out.
    let listed = Address::parse(format!("http://{own}").as_bytes()).map(|address| address.expression());
    assert_eq!(listed.as_ref(), Ok(&own), "{text} as it is listed");
    let expressions = address.expressions();
    assert!((1..=30).contains(&expressions.len()), "{expressions:?}");
    assert_eq!(expressions[0], own);
    for expression in [expressions.first(), expressions.last()].into_iter().flatten() {
        found(address, expression);
    }
}

/// Checks that a listed expression is never reported as clear.
fn found(address: &Address, expression: &str) {
    let hashes = [sha256(expression)];
    let screen = Screen::from_hashes(&hashes, Screen::PREFIX, 0.01, umbel::Hasher::default());
    let verdict = screen.expect("a filter of one hash").check(address, Some(&mut Listed(hashes[0])));
    assert_eq!(verdict.ok(), Some(Verdict::Unsafe(expression.into())));
}

/// A list with one entry.
struct Listed(Full);

impl Confirm for Listed {
    fn starting_with(&mut self, first: &[u8]) -> umbel_text::Result<Vec<Full>> {
        Ok(self.0.starts_with(first).then_some(self.0).into_iter().collect())
    }
}
