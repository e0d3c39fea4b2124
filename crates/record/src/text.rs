//! Makes untrusted text (names of runs, classes and files) harmless for CSV files and terminals, and puts
//! numbers into words.

use std::borrow::Cow;

/// A text for a cell of a CSV file. A spreadsheet interprets a cell that begins with `=`, `+`, `-`, `@` or a
/// control character as a formula. Such a cell gets a `'` in front, which spreadsheets read as "this is
/// text". Numbers stay as they are.
pub fn for_csv(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err();
    if formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// A text for a terminal. Control characters, except for newline and tab, and characters that change the
/// direction of text are written as in Rust, such as `\u{1b}`, so that a name cannot change colours, move the
/// cursor or hide text.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (c.is_control() && c != '\n' && c != '\t') || direction
    };
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// A number with its noun, such as `1 epoch` or `2 epochs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A number in three digits and a power of ten, such as `1.59 × 10⁹`.
pub fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{mantissa} × 10{}", superscript(exponent)),
        None => text,
    }
}

/// The digits and signs of a whole number in superscript.
pub fn superscript(number: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.chars().map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let words: Vec<String> = (0..3).map(|number| counted(number, "epoch")).collect();
        assert_eq!(words, ["0 epochs", "1 epoch", "2 epochs"]);
    }

    #[test]
    fn rounding_may_raise_the_power() {
        assert_eq!(scientific(1.59e9), "1.59 × 10⁹");
        assert_eq!(scientific(9.996e9), "1.00 × 10¹⁰");
        assert_eq!(scientific(-7.18e-10), "-7.18 × 10⁻¹⁰");
    }

    #[test]
    fn formulas_become_text_and_numbers_stay() {
        for formula in ["=HYPERLINK(\"http://x\")", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"] {
            assert_eq!(for_csv(formula), format!("'{formula}"));
        }
        for text in ["-0.5", "+3", "-inf", "digits_tau-30", "", "a=b"] {
            assert_eq!(for_csv(text), text);
        }
    }

    #[test]
    fn escapes_are_shown_and_not_obeyed() {
        assert_eq!(for_terminal("a\u{1b}[31mred\u{7}\n\tb é"), "a\\u{1b}[31mred\\u{7}\n\tb é");
        assert_eq!(for_terminal("x\u{202e}gpj.exe\r"), "x\\u{202e}gpj.exe\\u{d}");
        assert!(matches!(for_terminal("plain"), Cow::Borrowed("plain")));
    }
}
