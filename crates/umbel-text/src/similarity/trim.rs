//! Removes surplus attributes from tags, and the rest of very long names, values and comments.
//!
//! The tokenizer compares each attribute of a tag with all others, so that some hundred thousand
//! attributes would take minutes, and it holds each name, value and comment in memory. This module
//! removes all attributes after the first few hundred, and all but the first bytes of the others,
//! before the tokenizer sees them. To find them, it has to follow comments and the text of scripts and similar
//! elements as the standard prescribes (WHATWG HTML, 13.2.5).

use memchr::memchr2;

/// The maximum number of attributes of a tag.
pub(super) const MAX_ATTRIBUTES: usize = 256;

/// The length above which the rest of a name, a value, a comment or a character reference is removed.
const MAX_PART_BYTES: usize = 64 << 10;

/// Returns whether the contents of an element are text, even if they look like tags, until its end
/// tag.
pub(super) fn is_raw(element: &str) -> bool {
    let raw = ["script", "style", "noscript", "iframe", "xmp", "noembed", "noframes", "title", "textarea"];
    raw.contains(&element)
}

/// Removes surplus attributes and long parts from a page, piece by piece.
pub(super) struct Trim {
    at: At,
    most: usize,
    /// The number of attributes of the current tag.
    attributes: usize,
    /// The name of the current tag in lower case; only the start of a long one.
    name: String,
    is_end: bool,
    /// The current element, if its contents are text.
    raw: Option<String>,
    script: Script,
    /// The length of the name, value, comment or reference so far.
    part_bytes: usize,
    /// Whether the rest of it is removed.
    is_cut: bool,
}

/// The position in the page.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Text,
    /// In the letters and digits after `&`.
    Reference,
    /// After `<`, `</`, `<!` and `<!-`.
    Open,
    EndOpen,
    Bang,
    BangDash,
    /// In markup that ends with the next `>`.
    Bogus,
    Comment(Dashes),
    Name,
    /// In a tag, where an attribute may begin.
    Between,
    Attribute,
    AfterAttribute,
    BeforeValue,
    /// In a value that ends with this byte; a space stands for any white space.
    Value(u8),
    /// In the text of an element, after `<`, after `</` and a name, after `<!`, after `<!-`, and
    /// after `<` and a name.
    RawOpen,
    RawEnd,
    RawBang,
    RawBangDash,
    RawName,
}

/// The preceding characters in a comment: its start, or dashes that could end it.
#[derive(Clone, Copy, PartialEq)]
enum Dashes {
    Start,
    StartDash,
    None,
    One,
    Two,
    Bang,
}

/// The state inside a script, where a comment hides the end tags of scripts in it.
#[derive(Clone, Copy, Default)]
struct Script {
    /// 1 in a comment, 2 in a script inside it.
    depth: u8,
    dashes: u8,
}

impl Trim {
    pub fn new(most: usize) -> Trim {
        Trim {
            at: At::Text,
            most,
            attributes: 0,
            name: String::new(),
            is_end: false,
            raw: None,
            script: Script::default(),
            part_bytes: 0,
            is_cut: false,
        }
    }

    /// Returns the next piece of the page without surplus attributes and long parts.
    pub fn piece(&mut self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut left = String::with_capacity(text.len());
        let (mut next, mut kept_to) = (0, 0);
        while let Some(&byte) = bytes.get(next) {
            let was_left_out = self.leaves_out();
            if self.at == At::Text && self.script.depth == 0 && !matches!(byte, b'<' | b'&') {
                next = memchr2(b'<', b'&', &bytes[next..]).map_or(bytes.len(), |length| next + length);
                continue;
            }
            let before = self.at;
            self.at = self.step(byte);
            self.count_part(before, byte);
            // Both cuts are at character boundaries: at the start of an attribute or of a character
            // of a long part, and at the byte that ends it, which is ASCII.
            match (was_left_out, self.leaves_out()) {
                (false, true) => left.push_str(&text[kept_to..next]),
                (true, false) => {
                    if let At::Comment(_) = before {
                        // The dashes before the `>` were removed.
                        left.push_str("--");
                    }
                    kept_to = next;
                }
                _ => {}
            }
            next += 1;
        }
        if !self.leaves_out() {
            left.push_str(&text[kept_to..]);
        }
        left
    }

    /// Returns whether the current position is removed.
    fn leaves_out(&self) -> bool {
        self.attributes > self.most || self.is_cut
    }

    /// Counts the byte that led to the current position.
    fn count_part(&mut self, before: At, byte: u8) {
        let goes_on = match self.at {
            At::Comment(_) => matches!(before, At::Comment(_)),
            At::Reference
            | At::Bogus
            | At::Name
            | At::Attribute
            | At::Value(_)
            | At::RawEnd
            | At::RawName => before == self.at,
            _ => false,
        };
        self.part_bytes = if goes_on { self.part_bytes + 1 } else { 0 };
        let starts_character = byte & 0xc0 != 0x80;
        self.is_cut = goes_on && (self.is_cut || self.part_bytes > MAX_PART_BYTES && starts_character);
    }

    fn step(&mut self, byte: u8) -> At {
        match self.at {
            At::Text if byte == b'&' && self.script.depth == 0 => At::Reference,
            At::Reference if byte.is_ascii_alphanumeric() => At::Reference,
            At::Reference => {
                self.at = At::Text;
                self.step(byte)
            }
            At::Text if self.raw.is_some() => self.raw(byte),
            At::Text if byte == b'<' => At::Open,
            At::Text => At::Text,
            At::Open => match byte {
                b'!' => At::Bang,
                b'/' => At::EndOpen,
                b'?' => At::Bogus,
                b'<' => At::Open,
                _ if byte.is_ascii_alphabetic() => self.tag(byte, false),
                _ => At::Text,
            },
            At::EndOpen => match byte {
                b'>' => At::Text,
                _ if byte.is_ascii_alphabetic() => self.tag(byte, true),
                _ => At::Bogus,
            },
            At::Bang if byte == b'-' => At::BangDash,
            At::BangDash if byte == b'-' => At::Comment(Dashes::Start),
            At::Bang | At::BangDash | At::Bogus => {
                if byte == b'>' {
                    At::Text
                } else {
                    At::Bogus
                }
            }
            At::Comment(before) => comment(before, byte),
            At::Name if !ends_name(byte) => {
                self.call(byte);
                At::Name
            }
            At::Name | At::Between => self.between(byte),
            At::Attribute | At::AfterAttribute if byte == b'=' => At::BeforeValue,
            At::Attribute if byte.is_ascii_whitespace() => At::AfterAttribute,
            At::Attribute if !ends_name(byte) => At::Attribute,
            At::AfterAttribute if byte.is_ascii_whitespace() => At::AfterAttribute,
            At::Attribute | At::AfterAttribute => self.between(byte),
            At::BeforeValue => match byte {
                b'"' | b'\'' => At::Value(byte),
                b'>' => self.end_tag(),
                _ if byte.is_ascii_whitespace() => At::BeforeValue,
                _ => At::Value(b' '),
            },
            At::Value(b' ') => match byte {
                b'>' => self.end_tag(),
                _ if byte.is_ascii_whitespace() => At::Between,
                _ => At::Value(b' '),
            },
            At::Value(quote) => {
                if byte == quote {
                    At::Between
                } else {
                    At::Value(quote)
                }
            }
            At::RawOpen => match byte {
                b'/' => {
                    self.name.clear();
                    At::RawEnd
                }
                b'!' if self.is_script() && self.script.depth == 0 => At::RawBang,
                _ if self.script.depth == 1 && byte.is_ascii_alphabetic() => {
                    self.name.clear();
                    self.call(byte);
                    At::RawName
                }
                _ => self.raw(byte),
            },
            At::RawEnd | At::RawName if byte.is_ascii_alphabetic() => {
                self.call(byte);
                self.at
            }
            At::RawEnd if ends_name(byte) && self.raw.as_ref() == Some(&self.name) => {
                if self.script.depth == 2 {
                    self.script.depth = 1;
                    return At::Text;
                }
                (self.is_end, self.attributes) = (true, 0);
                self.between(byte)
            }
            At::RawName if ends_name(byte) => {
                if self.name == "script" {
                    self.script.depth = 2;
                }
                At::Text
            }
            At::RawBang if byte == b'-' => At::RawBangDash,
            At::RawBangDash if byte == b'-' => {
                self.script = Script { depth: 1, dashes: 2 };
                At::Text
            }
            At::RawEnd | At::RawName | At::RawBang | At::RawBangDash => self.raw(byte),
        }
    }

    fn is_script(&self) -> bool {
        self.raw.as_deref() == Some("script")
    }

    /// Handles a byte of the text of an element.
    fn raw(&mut self, byte: u8) -> At {
        let Script { depth, dashes } = &mut self.script;
        match byte {
            b'-' if *depth > 0 => *dashes = (*dashes + 1).min(2),
            b'>' if *dashes == 2 => self.script = Script::default(),
            _ => *dashes = 0,
        }
        if byte == b'<' { At::RawOpen } else { At::Text }
    }

    fn tag(&mut self, byte: u8, is_end: bool) -> At {
        self.name.clear();
        self.call(byte);
        (self.is_end, self.attributes) = (is_end, 0);
        At::Name
    }

    fn call(&mut self, byte: u8) {
        // No relevant name is longer.
        if self.name.len() < 16 {
            self.name.push(char::from(byte.to_ascii_lowercase()));
        }
    }

    fn between(&mut self, byte: u8) -> At {
        match byte {
            b'>' => self.end_tag(),
            b'/' => At::Between,
            _ if byte.is_ascii_whitespace() => At::Between,
            _ => {
                self.attributes += 1;
                At::Attribute
            }
        }
    }

    fn end_tag(&mut self) -> At {
        self.attributes = 0;
        self.script = Script::default();
        self.raw = (!self.is_end && is_raw(&self.name)).then(|| self.name.clone());
        At::Text
    }
}

/// Returns whether this byte ends the name of a tag or an attribute.
fn ends_name(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'/' || byte == b'>'
}

fn comment(before: Dashes, byte: u8) -> At {
    At::Comment(match (before, byte) {
        (Dashes::Start | Dashes::StartDash | Dashes::Two | Dashes::Bang, b'>') => return At::Text,
        (Dashes::Start, b'-') => Dashes::StartDash,
        (Dashes::None | Dashes::Bang, b'-') => Dashes::One,
        (_, b'-') => Dashes::Two,
        (Dashes::Two, b'!') => Dashes::Bang,
        _ => Dashes::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::visible::contents_of;
    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::{BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer};
    use proptest::prelude::*;
    use std::cell::RefCell;

    /// The tags that the tokenizer sees, and the text between them.
    #[derive(Default)]
    struct Seen(RefCell<Vec<(String, Option<Tag>)>>);

    impl TokenSink for Seen {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            let mut seen = self.0.borrow_mut();
            match token {
                Token::CharacterTokens(text) => match seen.last_mut() {
                    Some((before, None)) => before.push_str(&text),
                    _ => seen.push((text.to_string(), None)),
                },
                Token::TagToken(tag) => {
                    let next = contents_of(&tag);
                    seen.push((tag.name.to_string(), Some(tag)));
                    return next;
                }
                _ => {}
            }
            TokenSinkResult::Continue
        }
    }

    fn seen(pieces: &[String]) -> Vec<(String, Option<Tag>)> {
        let tokenizer = Tokenizer::new(Seen::default(), Default::default());
        let queue = BufferQueue::default();
        for piece in pieces {
            queue.push_back(StrTendril::from(&**piece));
            let _ = tokenizer.feed(&queue);
        }
        tokenizer.end();
        tokenizer.sink.0.take()
    }

    #[test]
    fn long_parts_end_where_they_ended_before() {
        let end = |part: &str| part.repeat(2 * MAX_PART_BYTES / part.len());
        for part in ["x", "-x", "é", "--é!", "x--!"] {
            let long = end(part);
            let parts = [
                format!("<!--{long}-->"),
                format!("<!--{long}--!>"),
                format!("<!--{long}--->"),
                format!("<!doctype {long}>"),
                format!("<?{long}>"),
                format!("</{long}>"),
                format!("<p {long}=1>"),
                format!("<p {long}>"),
                format!("<p a='{long}'>"),
                format!("<p a=\"{long}\" b=c>"),
                format!("<p a={long}>"),
                format!("<title></{long}</title>"),
                format!("<script><!--<script></{long}--></script>"),
                format!("<x{long}></x{long}>"),
            ];
            // In a title or a script, only what may be the name of an end tag is a part; the rest is
            // text, which is not held back.
            let is_name = part.bytes().all(|byte| byte.is_ascii_alphabetic());
            for page in parts {
                let is_text = !is_name && (page.starts_with("<title>") || page.starts_with("<script>"));
                let page = format!("before<b>{page}<i>after</i> the end");
                for length in [page.len(), 1 << 10] {
                    let mut trim = Trim::new(MAX_ATTRIBUTES);
                    let pieces = page.as_bytes().chunks(length).map(String::from_utf8_lossy);
                    if part.contains('é') && length < page.len() {
                        continue;
                    }
                    let trimmed: Vec<String> = pieces.map(|piece| trim.piece(&piece)).collect();
                    let start: String = page.chars().take(30).collect();
                    let is_cut = trimmed.concat().len() < page.len() - MAX_PART_BYTES / 2;
                    assert!(is_cut || is_text, "{start}");
                    let texts = |pieces: &[String]| {
                        let visible = |(text, tag): (String, Option<Tag>)| {
                            (text.len() < 1000).then_some((text, tag.is_some()))
                        };
                        seen(pieces).into_iter().map(visible).collect::<Vec<_>>()
                    };
                    assert_eq!(texts(&trimmed), texts(std::slice::from_ref(&page)), "{start}");
                }
            }
        }
        let mut trim = Trim::new(MAX_ATTRIBUTES);
        let reference = trim.piece(&format!("&{};<p>x", end("z")));
        assert!(reference.len() < MAX_PART_BYTES + 100 && reference.ends_with("z;<p>x"));
    }

    const PARTS: [&str; 44] = [
        "<",
        ">",
        "/",
        "!",
        "-",
        "--",
        "-->",
        "--!>",
        "<!",
        "<!--",
        "<!-->",
        "<!--->",
        "<?",
        "</",
        "</>",
        "<!doctype ",
        "<a ",
        "<p",
        "</p",
        "</ ",
        "<script>",
        "<script ",
        "</script",
        "</script>",
        "<SCRIPT",
        "<style>",
        "</style ",
        "<title ",
        "</title",
        "<title>",
        " a",
        " b=",
        " c='",
        "'",
        "\"",
        "=",
        " d=e",
        " f=\"",
        " ",
        "\n",
        "é",
        "&amp;",
        "x",
        " g/",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// Uses the tokenizer as the oracle: with fewer attributes it must see the same tags and
        /// texts.
        #[test]
        fn only_attributes_are_removed(parts in prop::collection::vec(0..PARTS.len(), 0..60), most in 0usize..4) {
            let pieces: Vec<String> = parts.chunks(3).map(|parts| parts.iter().map(|part| PARTS[*part]).collect()).collect();
            let mut trim = Trim::new(most);
            let trimmed: Vec<String> = pieces.iter().map(|piece| trim.piece(piece)).collect();
            let (whole, less) = (seen(&pieces), seen(&trimmed));
            prop_assert_eq!(whole.len(), less.len(), "{:?}: {:?}", &pieces, &trimmed);
            for ((text, tag), (other_text, other_tag)) in whole.iter().zip(&less) {
                prop_assert_eq!(text, other_text, "{:?}", &pieces);
                prop_assert_eq!(tag.is_some(), other_tag.is_some());
                if let (Some(tag), Some(other)) = (tag, other_tag) {
                    prop_assert!(other.attrs.len() <= most, "{:?}: {:?}", &pieces, other);
                    prop_assert_eq!(&tag.attrs[..other.attrs.len()], &other.attrs[..]);
                }
            }
        }
    }
}
