//! Hash functions that a user writes as formulas: `x mod 10, 2x+3 mod 10`.
//!
//! ```text
//! formulas = formula { "," formula }
//! formula  = sum [ ("mod" | "%") number ]       without mod: modulo the number of bits
//! sum      = product { ("+" | "-") product }
//! product  = power { ["*"] power }              2x is 2 * x
//! power    = ( number | "x" | "(" sum ")" ) [ "^" number ]
//! ```

use crate::{Error, Result};

/// The largest number of formulas, and of hash functions in general.
pub const MAX_HASHES: usize = 16;
/// The largest exponent.
const MAX_EXPONENT: u64 = 64;
/// The largest number of parentheses within each other.
const MAX_DEPTH: usize = 16;

/// A hash function: a formula of the key `x`, modulo a number.
///
/// ```
/// use umbel_lab::trace::Formula;
/// let formulas = Formula::parse_list("x mod 10, (2x + 3) mod 10, x^2", 8)?;
/// let positions: Vec<usize> = formulas.iter().map(|formula| formula.position(12)).collect();
/// assert_eq!(positions, [2, 7, 0]);
/// # Ok::<(), umbel_lab::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    text: String,
    value: Expression,
    modulus: u64,
}

/// Sums and products are lists, so only parentheses make the tree deeper.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Number(u64),
    Key,
    Sum(Vec<(Sign, Expression)>),
    Product(Vec<Expression>),
    Power(Box<Expression>, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Formula {
    /// Parses formulas with commas between them. A formula without `mod` is taken modulo
    /// `default_modulus`.
    ///
    /// # Errors
    ///
    /// [`Error::Formula`], with the place of the mistake.
    pub fn parse_list(text: &str, default_modulus: u64) -> Result<Vec<Formula>> {
        let mut parser = Parser { text, at: 0, depth: 0, follows_mod: false };
        let mut formulas = Vec::new();
        loop {
            if formulas.len() == MAX_HASHES {
                return Err(parser.error(format!("there are already {MAX_HASHES} formulas, the most")));
            }
            formulas.push(parser.formula(default_modulus)?);
            if parser.rest().is_empty() {
                return Ok(formulas);
            }
            if !parser.eat(",") {
                return Err(parser.error(match parser.follows_mod {
                    true => "mod ends a formula: a comma is expected",
                    false => "an operator (+ - * ^), mod or a comma is expected",
                }));
            }
        }
    }

    /// Returns the formula as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the modulus. Positions lie below it.
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// Returns the position of a key. All steps are computed modulo the modulus, so none of them
    /// overflows.
    pub fn position(&self, x: u64) -> usize {
        self.value.modulo(x, self.modulus) as usize
    }

    /// Returns the calculation for a key, such as `27 mod 10 = 7`. If the value before `mod` takes
    /// more than 128 bits, the formula itself stands for it.
    pub fn calculation(&self, x: u64) -> String {
        let (modulus, position) = (self.modulus, self.position(x));
        match self.value.exact(x) {
            Some(value) => format!("{value} mod {modulus} = {position}"),
            None => format!("{} = {position}", self.text),
        }
    }
}

impl Expression {
    fn modulo(&self, x: u64, modulus: u64) -> u64 {
        let product = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64;
        match self {
            Expression::Number(number) => number % modulus,
            Expression::Key => x % modulus,
            Expression::Sum(terms) => {
                let sum = terms.iter().fold(0u128, |sum, (sign, term)| {
                    let term = u128::from(term.modulo(x, modulus));
                    let term = if *sign == Sign::Plus { term } else { u128::from(modulus) - term };
                    (sum + term) % u128::from(modulus)
                });
                sum as u64
            }
            Expression::Product(factors) => {
                factors.iter().fold(1 % modulus, |so_far, factor| product(so_far, factor.modulo(x, modulus)))
            }
            Expression::Power(base, exponent) => {
                let base = base.modulo(x, modulus);
                (0..*exponent).fold(1 % modulus, |so_far, _| product(so_far, base))
            }
        }
    }

    /// Returns the value without `mod`, or `None` if it overflows.
    fn exact(&self, x: u64) -> Option<i128> {
        match self {
            Expression::Number(number) => Some(i128::from(*number)),
            Expression::Key => Some(i128::from(x)),
            Expression::Sum(terms) => terms.iter().try_fold(0i128, |sum, (sign, term)| match sign {
                Sign::Plus => sum.checked_add(term.exact(x)?),
                Sign::Minus => sum.checked_sub(term.exact(x)?),
            }),
            Expression::Product(factors) => {
                factors.iter().try_fold(1i128, |so_far, factor| so_far.checked_mul(factor.exact(x)?))
            }
            Expression::Power(base, exponent) => base.exact(x)?.checked_pow(u32::try_from(*exponent).ok()?),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte at which the rest of the text begins.
    at: usize,
    /// Number of open parentheses.
    depth: usize,
    /// Whether the last formula ended with `mod`.
    follows_mod: bool,
}

impl<'a> Parser<'a> {
    /// Skips blanks and returns the rest of the text.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    /// Skips a symbol or word, in upper or lower case, and returns whether it was there.
    fn eat(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().get(..symbol.len()).is_some_and(|next| next.eq_ignore_ascii_case(symbol));
        self.at += if is_next { symbol.len() } else { 0 };
        is_next
    }

    fn error(&mut self, problem: impl Into<String>) -> Error {
        self.rest();
        Error::Formula { text: self.text.into(), at: self.at, problem: problem.into() }
    }

    fn formula(&mut self, default_modulus: u64) -> Result<Formula> {
        self.rest();
        let start = self.at;
        let value = self.sum()?;
        self.follows_mod = self.eat("mod") || self.eat("%");
        let before = self.at;
        let modulus = if self.follows_mod { self.number()? } else { default_modulus };
        if modulus == 0 {
            self.at = before;
            return Err(self.error("nothing can be taken modulo 0"));
        }
        Ok(Formula { text: self.text[start..self.at].trim_end().into(), value, modulus })
    }

    fn sum(&mut self) -> Result<Expression> {
        let mut terms = vec![(Sign::Plus, self.product()?)];
        loop {
            let sign = match self.rest().as_bytes().first() {
                Some(b'+') => Sign::Plus,
                Some(b'-') => Sign::Minus,
                _ => return Ok(Expression::Sum(terms)),
            };
            self.at += 1;
            terms.push((sign, self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression> {
        let mut factors = vec![self.power()?];
        // A number must not follow without a sign: x2 could mean 2x or x^2.
        while self.eat("*") || self.rest().starts_with(['x', 'X', '(']) {
            factors.push(self.power()?);
        }
        Ok(Expression::Product(factors))
    }

    fn power(&mut self) -> Result<Expression> {
        let base = match self.rest().as_bytes().first() {
            Some(b'x' | b'X') => {
                self.at += 1;
                Expression::Key
            }
            Some(b'0'..=b'9') => Expression::Number(self.number()?),
            Some(b'(') => self.parentheses()?,
            _ => return Err(self.error("a number, x or ( is expected")),
        };
        if !self.eat("^") {
            return Ok(base);
        }
        let before = self.at;
        let exponent = self.number()?;
        if exponent > MAX_EXPONENT {
            self.at = before;
            return Err(self.error(format!("an exponent is at most {MAX_EXPONENT}")));
        }
        if self.rest().starts_with('^') {
            return Err(self.error("a power of a power needs parentheses, as in (x^2)^3"));
        }
        Ok(Expression::Power(base.into(), exponent))
    }

    fn parentheses(&mut self) -> Result<Expression> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("at most {MAX_DEPTH} parentheses may be open")));
        }
        self.at += 1;
        self.depth += 1;
        let inner = self.sum()?;
        self.rest();
        let before = self.at;
        if self.eat("mod") || self.eat("%") {
            self.at = before;
            return Err(self.error("mod belongs at the end of a formula, after all parentheses"));
        }
        if !self.eat(")") {
            return Err(self.error("an operator (+ - * ^) or ) is expected"));
        }
        self.depth -= 1;
        Ok(inner)
    }

    fn number(&mut self) -> Result<u64> {
        let rest = self.rest();
        let digits = &rest[..rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()];
        if digits.is_empty() {
            return Err(self.error("a whole number is expected"));
        }
        let number = digits.parse().map_err(|_| self.error(format!("a number is at most {}", u64::MAX)))?;
        self.at += digits.len();
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions of a key by formulas whose default modulus is 10.
    fn positions(text: &str, x: u64) -> Vec<usize> {
        let formulas = Formula::parse_list(text, 10).unwrap_or_else(|error| panic!("{error}"));
        formulas.iter().map(|formula| formula.position(x)).collect()
    }

    #[test]
    fn formulas_are_read_as_people_write_them() {
        assert_eq!(positions("x mod 10, 2x+3 mod 10, 3*x + 7", 12), [2, 7, 3]);
        assert_eq!(positions("(2x + 3) mod 10,X%7, 2(x+1)x", 12), [7, 5, 2]);
        assert_eq!(positions("x^2 mod 9, 2x^3 + x, 5 MOD 4, x - 3", 2), [4, 8, 1, 9]);
        let formulas = Formula::parse_list(" 2x+3  mod 10 , x ", 8).unwrap();
        assert_eq!((formulas[0].text(), formulas[1].text()), ("2x+3  mod 10", "x"));
        assert_eq!((formulas[0].modulus(), formulas[1].modulus()), (10, 8));
        assert_eq!(
            (&formulas[0].calculation(12)[..], &formulas[1].calculation(3)[..]),
            ("27 mod 10 = 7", "3 mod 8 = 3")
        );
    }

    #[test]
    fn nothing_overflows() {
        let most = u64::MAX;
        let product = (u128::from(most) * u128::from(most) + u128::from(most)) % 97;
        assert_eq!(positions(&format!("{most}x + {most} mod 97"), most), [product as usize]);
        let power = (0..64).fold(1u128, |power, _| power * u128::from(most) % 97);
        assert_eq!(positions("x^64 mod 97", most), [power as usize]);
        let formula = &Formula::parse_list("x^64 mod 97", 10).unwrap()[0];
        assert_eq!(formula.calculation(most), format!("x^64 mod 97 = {power}"));
        assert_eq!(
            positions("x mod 1, x^0 mod 1, 0 - x mod 18446744073709551615", 1),
            [0, 0, usize::MAX - 1]
        );
        // Long sums need no stack, and parentheses are limited.
        assert_eq!(positions(&["x"; 10_001].join("+"), 1), [1]);
        assert!(Formula::parse_list(&"(".repeat(100_000), 10).is_err());
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        for (text, at, problem) in [
            ("", 0, "a number, x or ("),
            ("x mod 10,", 9, "a number, x or ("),
            ("x mod 10, 2x+ mod 10", 14, "a number, x or ("),
            ("2y", 1, "an operator"),
            ("x2", 1, "an operator"),
            ("x mod", 5, "a whole number"),
            ("x mod 0", 6, "modulo 0"),
            ("x mod ten", 6, "a whole number"),
            ("(2x+3", 5, "or ) is expected"),
            ("(x mod 7) + 1", 3, "mod belongs at the end"),
            ("x^65", 2, "at most 64"),
            ("x^2^3", 3, "(x^2)^3"),
            ("-x", 0, "a number, x or ("),
            ("x mod 7 x", 8, "mod ends a formula"),
            ("2 3", 2, "an operator"),
            ("x)", 1, "an operator"),
            ("99999999999999999999", 0, "at most 18446744073709551615"),
            ("x mod 10 + 1", 9, "mod ends a formula"),
            ("x, ü", 3, "a number"),
        ] {
            let error = Formula::parse_list(text, 10).unwrap_err();
            let Error::Formula { at: found, problem: said, .. } = &error else { panic!("{error}") };
            assert!(*found == at && said.contains(problem), "{text}: {error}");
        }
        let error = Formula::parse_list("x, 2x+ mod 10", 10).unwrap_err().to_string();
        assert_eq!(error, "\"x, 2x+ mod 10\", character 8, at \"mod 10\": a number, x or ( is expected");
        let error = Formula::parse_list("x,", 10).unwrap_err().to_string();
        assert_eq!(error, "\"x,\", at its end: a number, x or ( is expected");
        assert!(Formula::parse_list(&["x"; 17].join(","), 10).is_err());
    }
}
