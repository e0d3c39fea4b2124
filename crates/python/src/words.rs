//! Translates messages of the program for Python users: an option of the command line becomes an argument,
//! and a command becomes a call.

/// Text in messages of the program, and its replacement in Python.
const WORDS: &[(&str, &str)] = &[
    (
        "set it in the file, or with --set dataset=digits; `leaklab data list` shows all",
        "add \"dataset\": \"digits\"",
    ),
    (
        "add --tau 30, or --tau inf for no leak, or set it in the file",
        "add \"tau\": 30, or float(\"inf\") for no leak",
    ),
    ("set it in the file or with --set", "add it to the settings:"),
    (
        "add --tau 30, or run them all with `leaklab study`",
        "give one number, or run them all with leaklab.study",
    ),
    (
        "add --seed 1, or run them all with `leaklab study`",
        "give one number, or run them all with leaklab.study",
    ),
    ("or continue this one with `leaklab study --out ", "or continue this one with its own study.toml: `"),
    ("`leaklab train --out` makes one", "leaklab.train makes one"),
    ("`leaklab study --out` makes one", "leaklab.study makes one"),
    ("`leaklab study`", "leaklab.study"),
];

/// Options that are arguments in Python, and how these are written in a message.
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

/// A message for Python users.
pub fn in_python(message: &str) -> String {
    let text = WORDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to));
    // Text in backquotes is a command. It becomes a call if there is one, and is not changed otherwise.
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

/// Replaces options outside of commands.
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

/// The call that is equivalent to a command, if there is one.
fn call(command: &str) -> Option<String> {
    if let Some(run) = command.strip_prefix("leaklab train --resume ") {
        return Some(format!("leaklab.resume({run:?})"));
    }
    let (run, rest) = command.strip_prefix("leaklab analyse ")?.split_once(" robustness --images ")?;
    Some(format!("leaklab.analyse({run:?}, \"robustness\", images={rest})"))
}
