//! The files of the page. They are embedded in the program and need no token.

use std::borrow::Cow;

/// The texts of the page in its languages: for each name an object with `en` and `de`.
const TEXTS: &str = include_str!("page/texts.json");

/// The policy for the page: it runs only its own scripts, and loads only from this server.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the page.
pub struct Part {
    /// The path in its address.
    pub path: &'static str,
    pub content_type: &'static str,
    contents: &'static str,
}

/// All files of the page, the first of them itself.
const PARTS: [Part; 15] = [
    Part { path: "/", content_type: HTML, contents: include_str!("page/index.html") },
    Part { path: "/style.css", content_type: CSS, contents: include_str!("page/style.css") },
    Part { path: "/icon.svg", content_type: SVG, contents: include_str!("page/icon.svg") },
    Part { path: "/app.js", content_type: JAVASCRIPT, contents: include_str!("page/app.js") },
    Part { path: "/server.js", content_type: JAVASCRIPT, contents: include_str!("page/server.js") },
    Part { path: "/language.js", content_type: JAVASCRIPT, contents: include_str!("page/language.js") },
    Part { path: "/chart.js", content_type: JAVASCRIPT, contents: include_str!("page/chart.js") },
    Part { path: "/plan.js", content_type: JAVASCRIPT, contents: include_str!("page/plan.js") },
    Part { path: "/facts.js", content_type: JAVASCRIPT, contents: include_str!("page/facts.js") },
    Part { path: "/file.js", content_type: JAVASCRIPT, contents: include_str!("page/file.js") },
    Part { path: "/picture.js", content_type: JAVASCRIPT, contents: include_str!("page/picture.js") },
    Part { path: "/ask.js", content_type: JAVASCRIPT, contents: include_str!("page/ask.js") },
    Part { path: "/toy.js", content_type: JAVASCRIPT, contents: include_str!("page/toy.js") },
    Part { path: "/fill.js", content_type: JAVASCRIPT, contents: include_str!("page/fill.js") },
    Part { path: TEXTS_PATH, content_type: JAVASCRIPT, contents: TEXTS },
];

/// The module with the texts.
const TEXTS_PATH: &str = "/texts.js";

impl Part {
    /// Returns the file with this path.
    pub fn find(path: &str) -> Option<&'static Part> {
        PARTS.iter().find(|part| part.path == path)
    }

    /// Returns the contents. The texts become a module, which all browsers can import.
    pub fn contents(&self) -> Cow<'static, str> {
        match self.path {
            TEXTS_PATH => format!("export default {};\n", self.contents.trim_end()).into(),
            _ => self.contents.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn texts() -> serde_json::Map<String, Value> {
        serde_json::from_str(TEXTS).unwrap()
    }

    /// Returns the placeholders of a text, such as `{keys}`.
    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).collect()
    }

    #[test]
    fn every_text_is_there_in_both_languages() {
        for (name, text) in texts() {
            let languages: Vec<&String> = text.as_object().unwrap().keys().collect();
            assert_eq!(languages, ["de", "en"], "{name}");
            let [english, german] = ["en", "de"].map(|language| text[language].as_str().unwrap());
            assert!(!english.is_empty() && !german.is_empty(), "{name}");
            assert_eq!(placeholders(english), placeholders(german), "{name}");
        }
    }

    #[test]
    fn every_text_of_the_page_exists() {
        let texts = texts();
        let page = Part::find("/").unwrap().contents();
        let mut count = 0;
        for attribute in ["data-text=\"", "data-label=\""] {
            for name in page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(texts.contains_key(name), "{name}");
                count += 1;
            }
        }
        assert!(count > 10);
    }

    #[test]
    fn the_page_has_no_inline_script_or_style_and_loads_only_parts() {
        let page = Part::find("/").unwrap().contents();
        for forbidden in ["<style", " style=", " onclick", "javascript:", "https://", "http://"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        for script in page.split("<script").skip(1) {
            assert!(script.contains("src=\"") && script.contains("></script>"));
        }
        for attribute in ["src=\"", "href=\""] {
            for target in page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
                let is_part = Part::find(&format!("/{target}")).is_some();
                assert!(is_part || target.starts_with('#'), "{target}");
            }
        }
    }

    #[test]
    fn scripts_import_only_parts() {
        for part in PARTS.iter().filter(|part| part.content_type == JAVASCRIPT) {
            let contents = part.contents();
            for target in contents.split(" from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(Part::find(&format!("/{target}")).is_some(), "{}: {target}", part.path);
            }
        }
    }
}
