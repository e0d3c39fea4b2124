//! HTML that is escaped by construction: a template is part of the program (`&'static str`), everything that
//! is inserted into it is escaped, and only [`Html`] itself is inserted unescaped. A run's name can therefore
//! neither break the page nor run a script.

use std::fmt;

/// A piece of well-formed HTML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Empty HTML.
    pub fn new() -> Self {
        Self::default()
    }

    /// Markup that is part of the program.
    pub fn markup(text: &'static str) -> Self {
        Html(text.to_owned())
    }

    /// Text, escaped.
    pub fn text(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        escape(text, &mut out);
        Html(out)
    }

    /// A template whose `{}` are replaced in order.
    ///
    /// ```
    /// use leaklab_report::html::Html;
    /// let html = Html::fill("<b title='{}'>{}</b>", &[&"a'b", &Html::markup("<i>x</i>")]);
    /// assert_eq!(html.as_str(), "<b title='a&#39;b'><i>x</i></b>");
    /// ```
    ///
    /// # Panics
    /// If the number of `{}` is not the number of pieces.
    pub fn fill(template: &'static str, pieces: &[&dyn Piece]) -> Self {
        assert_eq!(template.matches("{}").count(), pieces.len(), "template {template}");
        let mut out = String::with_capacity(template.len() + 32);
        let mut parts = template.split("{}");
        out.push_str(parts.next().unwrap_or_default());
        for (part, piece) in parts.zip(pieces) {
            piece.write(&mut out);
            out.push_str(part);
        }
        Html(out)
    }

    /// Appends another piece.
    pub fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    /// Appends a filled template, see [`Html::fill`].
    pub fn add(&mut self, template: &'static str, pieces: &[&dyn Piece]) {
        self.push(&Html::fill(template, pieces));
    }

    /// Concatenates pieces.
    pub fn join(pieces: impl IntoIterator<Item = Html>) -> Self {
        let mut out = Html::new();
        pieces.into_iter().for_each(|piece| out.push(&piece));
        out
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The markup.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value that can be inserted into a template.
pub trait Piece {
    /// Appends the piece's HTML.
    fn write(&self, out: &mut String);
}

impl Piece for Html {
    fn write(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}
impl Piece for str {
    fn write(&self, out: &mut String) {
        escape(self, out);
    }
}
impl Piece for &str {
    fn write(&self, out: &mut String) {
        escape(self, out);
    }
}
impl Piece for String {
    fn write(&self, out: &mut String) {
        escape(self, out);
    }
}
impl Piece for usize {
    fn write(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }
}

/// Escapes text for element content and for attribute values in either kind of quotes. Control characters,
/// which HTML does not allow, and characters that change the direction of the text after them become U+FFFD.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || changes_direction(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

fn changes_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON for a `<script>` element: no character of it can end the element or open a comment.
pub fn script_json(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let name = "</script><img src=x onerror='alert(1)'>\"&\u{0}é漢";
        let html = Html::fill("<a title=\"{}\">{}</a>", &[&name, &name.to_owned()]);
        let escaped = "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&quot;&amp;\u{fffd}é漢";
        assert_eq!(html.as_str(), format!("<a title=\"{escaped}\">{escaped}</a>"));
    }

    #[test]
    fn json_cannot_leave_its_element() {
        let value = serde_json::json!({ "</script><!--": "a&b\u{2028}" });
        let text = script_json(&value);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    #[should_panic(expected = "template")]
    fn counts_pieces() {
        Html::fill("{} {}", &[&"one"]);
    }
}
