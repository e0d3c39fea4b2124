//! The program's sentences in Python's words: an option of the command line is an argument here.

/// What the program says, and what Python says in its place.
const WORDS: &[(&str, &str)] = &[
    ("choose another --out", "choose another out="),
    ("say where it is with --data-dir", "say where it is with data_dir="),
    ("name the .npz file with --data-dir", "name the .npz file with data_dir="),
    ("name it with --data-dir", "name it with data_dir="),
    ("name the folder that has it with --data-dir", "name the folder that has it with data_dir="),
    ("give --data-dir", "give data_dir="),
    ("without --best", "without best=True"),
    ("take these with --best", "take these with best=True"),
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
    ("run them all with `leaklab study`", "run them all with leaklab.study"),
];

/// A sentence for Python.
pub fn in_python(sentence: &str) -> String {
    let mut text = WORDS.iter().fold(sentence.to_owned(), |text, (from, to)| text.replace(from, to));
    // `leaklab train --resume RUN` is a call.
    while let Some(start) = text.find("`leaklab train --resume ") {
        let run = start + "`leaklab train --resume ".len();
        let Some(length) = text[run..].find('`') else { break };
        let call = format!("leaklab.resume(\"{}\")", &text[run..run + length]);
        text.replace_range(start..run + length + 1, &call);
    }
    text
}
