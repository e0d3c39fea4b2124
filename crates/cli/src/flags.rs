//! Values of flags that several subcommands have, refused with one sentence.

/// More threads than this are a slip of the finger.
const MOST_THREADS: usize = 1024;

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
    number.ok_or_else(|| format!("a whole number from 1 to {MOST_THREADS} is expected"))
}

/// A membrane time constant.
pub fn tau(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|&tau: &f64| tau > 0.0);
    number.ok_or_else(|| "a number of steps above 0, or inf, is expected".to_owned())
}

/// Minutes between two checkpoints.
pub fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&minutes: &f64| minutes >= 0.0);
    number.ok_or_else(|| "a number of minutes, 0 or more, is expected".to_owned())
}
