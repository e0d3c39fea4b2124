//! The program's sentences in Python's words: an option of the command line is an argument here, and a
//! command a call.

/// What the program says, and what Python says in its place.
const WORDS: &[(&str, &str)] = &[
    (
        "say --dataset digits, or put it in the file; `leaklab data list` shows all",
        "add \"dataset\": \"digits\"",
    ),
    (
        "say --tau 30, or --tau inf for no leak, or put it in the file",
        "add \"tau\": 30, or float(\"inf\") for no leak",
    ),
    ("say it in the file or with --set", "add it to the settings:"),
    (
        "add --tau 30, or run them all with `leaklab study`",
        "give one number, or run them all with leaklab.study",
    ),
    (
        "add --seed 1, or run them all with `leaklab study`",
        "give one number, or run them all with leaklab.study",
    ),
    ("take its own file: leaklab study ", "take its own file: "),
    ("`leaklab train --out` makes one", "leaklab.train makes one"),
    ("`leaklab study --out` makes one", "leaklab.study makes one"),
    ("`leaklab study`", "leaklab.study"),
];

/// Options that are arguments, and how these are written in a sentence.
const OPTIONS: &[(&str, &str)] = &[
    ("--baseline", "baseline="),
    ("--best", "best=True"),
    ("--data-dir", "data_dir="),
    ("--dt", "dt="),
    ("--if-r", "if_r="),
    ("--integrate-output", "integrate_output=True"),
    ("--out", "out="),
    ("--tau", "tau="),
];

/// A sentence for Python.
pub fn in_python(sentence: &str) -> String {
    let text = WORDS.iter().fold(sentence.to_owned(), |text, (from, to)| text.replace(from, to));
    // What stands in backquotes is a command: a call here, or left as it is.
    let pieces: Vec<&str> = text.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return text;
    }
    let piece = |(i, piece): (usize, &&str)| match i % 2 {
        0 => options(piece),
        _ => call(piece).unwrap_or_else(|| format!("`{piece}`")),
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// Options outside of commands.
fn options(text: &str) -> String {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = OPTIONS.iter().find(|(option, _)| rest.strip_prefix(option).is_some_and(ends));
        let (length, word) = known.map_or((2, "--"), |(option, word)| (option.len(), word));
        out.push_str(word);
        rest = &rest[length..];
    }
    out + rest
}

/// The call that does what a command does, if there is one.
fn call(command: &str) -> Option<String> {
    if let Some(run) = command.strip_prefix("leaklab train --resume ") {
        return Some(format!("leaklab.resume({run:?})"));
    }
    let (run, rest) = command.strip_prefix("leaklab analyse ")?.split_once(" robustness --images ")?;
    Some(format!("leaklab.analyse({run:?}, \"robustness\", images={rest})"))
}
