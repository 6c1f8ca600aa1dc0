//! Extracts the text of an HTML page that a reader sees.
//!
//! The page is read as a stream of tags without building a tree. Text that a style sheet or a
//! script hides or adds is not known.

use super::trim::{MAX_ATTRIBUTES, Trim, is_raw};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};

/// Returns whether a file that starts with these bytes is an HTML page.
pub fn is_html(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let is =
        |tag: &str| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    is("<!doctype html") || is("<html")
}

/// Calls `show` with the visible text of a page, piece by piece. Scripts, styles and comments are
/// skipped, and so are elements that are hidden by one of the first 256 attributes of their tag.
///
/// ```
/// let page = b"<title>Bees</title><p>B<b>ee</b>s hum.<script>if (a < b) {}</script><p hidden>Wasps<p>&amp; sting";
/// let mut text = String::new();
/// umbel_text::similarity::visible_text(&page[..], |part| text += part)?;
/// assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["Bees", "Bees", "hum.", "&", "sting"]);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Returns the error of the reader.
pub fn visible_text(mut page: impl Read, show: impl FnMut(&str)) -> io::Result<()> {
    let reader = Page { show: RefCell::new(show), hidden: RefCell::default() };
    let tokenizer = Tokenizer::new(reader, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let mut piece = vec![0; 64 << 10];
    let mut held: Vec<u8> = Vec::new();
    let mut trim = Trim::new(MAX_ATTRIBUTES);
    loop {
        let length = match page.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            length => length?,
        };
        held.extend_from_slice(&piece[..length]);
        // The last character may be incomplete.
        let cut = match str::from_utf8(&held) {
            Err(error) if length > 0 && error.error_len().is_none() => error.valid_up_to(),
            _ => held.len(),
        };
        queue.push_back(StrTendril::from(trim.piece(&String::from_utf8_lossy(&held[..cut]))));
        held.drain(..cut);
        // The tokenizer pauses only for scripts, and only if the sink requests it, which this one
        // never does.
        let _ = tokenizer.feed(&queue);
        if length == 0 {
            tokenizer.end();
            return Ok(());
        }
    }
}

/// Shows the text of tokens as they arrive.
struct Page<F> {
    show: RefCell<F>,
    /// The element that hides its contents, and the number of open elements with its name.
    hidden: RefCell<Option<(String, usize)>>,
}

/// Elements without an end tag.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Elements whose text is not shown.
const HIDDEN: [&str; 5] = ["script", "style", "template", "noscript", "iframe"];

/// Elements inside a line of text, whose tags do not separate words.
const INLINE: [&str; 16] = [
    "a", "abbr", "b", "bdi", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u",
    "wbr",
];

/// Elements that end where another of the same name begins, even without an end tag.
const ENDS_EARLY: [&str; 5] = ["p", "li", "dt", "dd", "option"];

impl<F: FnMut(&str)> Page<F> {
    fn tag(&self, tag: &Tag) {
        let name: &str = &tag.name;
        let mut hidden = self.hidden.borrow_mut();
        if let Some((hiding, open)) = hidden.as_mut() {
            let same = hiding == name;
            let early = same && ENDS_EARLY.contains(&name);
            match tag.kind {
                TagKind::EndTag if same => *open -= 1,
                TagKind::StartTag if early => *open = 0,
                TagKind::StartTag if same => *open += 1,
                _ => {}
            }
            if *open == 0 {
                *hidden = None;
            }
            if hidden.is_some() || tag.kind == TagKind::EndTag {
                return;
            }
        }
        if tag.kind == TagKind::StartTag && !VOID.contains(&name) && hides(tag) {
            *hidden = Some((name.to_owned(), 1));
        }
        if !INLINE.contains(&name) {
            (self.show.borrow_mut())("\n");
        }
    }
}

fn hides(tag: &Tag) -> bool {
    let name: &str = &tag.name;
    HIDDEN.contains(&name)
        || tag.attrs.iter().any(|attribute| match &*attribute.name.local {
            "hidden" => true,
            "style" => {
                let style: String = attribute.value.chars().filter(|c| !c.is_whitespace()).collect();
                style.to_ascii_lowercase().contains("display:none")
            }
            _ => false,
        })
}

/// Returns how the tokenizer continues after a tag. In some elements, tags are text until the end
/// tag of the element.
pub(super) fn contents_of(tag: &Tag) -> TokenSinkResult<()> {
    if tag.kind == TagKind::EndTag || !is_raw(&tag.name) {
        return TokenSinkResult::Continue;
    }
    TokenSinkResult::RawData(match &*tag.name {
        "script" => RawKind::ScriptData,
        "title" | "textarea" => RawKind::Rcdata,
        _ => RawKind::Rawtext,
    })
}

impl<F: FnMut(&str)> TokenSink for Page<F> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if self.hidden.borrow().is_none() => (self.show.borrow_mut())(&text),
            Token::TagToken(tag) => {
                self.tag(&tag);
                return contents_of(&tag);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}
