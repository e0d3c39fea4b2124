//! Symbols as a reader expects them. Tables are plain text (`tau`, `D_I`, `10^4`); on the page this becomes
//! τ, D with a subscript, and 10⁴.

use super::number::superscript;
use crate::html::Html;

/// A symbol, its letter and its subscript.
const SYMBOLS: [(&str, &str, &str); 10] = [
    ("tau", "τ", ""),
    ("Tau", "τ", ""),
    ("tau_m", "τ", "m"),
    ("lambda", "λ", ""),
    ("omega", "ω", ""),
    ("pi", "π", ""),
    ("D_I", "D", "I"),
    ("O_in", "O", "in"),
    ("v_th", "v", "th"),
    ("V_th", "V", "th"),
];

/// A piece of a text.
enum Piece<'a> {
    Text(&'a str),
    Symbol(&'static str, &'static str),
    Power(i32),
    Infinity,
    /// Text between backticks: a command, as it is typed.
    Code(&'a str),
}

/// Text with its symbols typeset.
pub fn html(text: &str) -> Html {
    Html::join(pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => Html::text(text),
        Piece::Symbol(letter, "") => Html::markup(letter),
        Piece::Symbol(letter, below) => Html::fill("{}<sub>{}</sub>", &[&letter, &below]),
        Piece::Power(n) => Html::text(&superscript(n)),
        Piece::Infinity => Html::markup("∞"),
        Piece::Code(text) => Html::fill("<code>{}</code>", &[&text]),
    }))
}

/// Like [`html`], where no markup is possible, as in a picture.
pub fn plain(text: &str) -> String {
    let pieces = pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Symbol(letter, "") => letter.to_owned(),
        Piece::Symbol(letter, below) => format!("{letter}_{below}"),
        Piece::Power(n) => superscript(n),
        Piece::Infinity => "∞".to_owned(),
        Piece::Code(text) => text.to_owned(),
    });
    pieces.collect()
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = prefix(rest, |c| c.is_alphanumeric() || c == '_');
        if word.is_empty() {
            let power = rest.strip_prefix('^').and_then(power);
            if let Some((n, length)) = power {
                found.push(Piece::Power(n));
                rest = &rest[1 + length..];
                continue;
            }
            if let Some((code, after)) = rest.strip_prefix('`').and_then(|text| text.split_once('`')) {
                found.push(Piece::Code(code));
                rest = after;
                continue;
            }
            let between = prefix(rest, |c| !(c.is_alphanumeric() || "_^`".contains(c)));
            let between = if between.is_empty() { &rest[..1] } else { between };
            found.push(Piece::Text(between));
            rest = &rest[between.len()..];
            continue;
        }
        match SYMBOLS.iter().find(|(name, ..)| *name == word) {
            Some((_, letter, below)) => found.push(Piece::Symbol(letter, below)),
            None if word == "inf" => found.push(Piece::Infinity),
            None => found.push(Piece::Text(word)),
        }
        rest = &rest[word.len()..];
    }
    found
}

fn prefix(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    &text[..end]
}

/// A whole number at the beginning, and its length in bytes.
fn power(text: &str) -> Option<(i32, usize)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let length = text.len() - digits.len() + prefix(digits, |c| c.is_ascii_digit()).len();
    Some((text[..length].parse().ok()?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_stand_where_words_stood() {
        let text = "At D_I = 0.1 and R = 10^4, tau = RC; tau inf < tau 30, (p - onehot)^2 ^x, taus <b>";
        assert_eq!(plain(text), "At D_I = 0.1 and R = 10⁴, τ = RC; τ ∞ < τ 30, (p - onehot)² ^x, taus <b>");
        assert_eq!(html("D_I, v_th <b>").as_str(), "D<sub>I</sub>, v<sub>th</sub> &lt;b&gt;");
        assert_eq!(plain("10^-3, tau = inf, é^"), "10⁻³, τ = ∞, é^");
        assert_eq!(html("Tau 30: `a --tau <b>` `").as_str(), "τ 30: <code>a --tau &lt;b&gt;</code> `");
    }
}
