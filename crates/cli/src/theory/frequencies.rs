//! Parser of frequencies: a list, or a range with a number of points.

/// Largest number of points: more than any figure needs, and few enough to fit into memory.
const MOST: usize = 1_000_000;

/// Reads `0.1,1,10`, `START:STOP:N` or `START:STOP:N:log`; `flag` is the name of the flag, for messages.
pub fn parse(flag: &str, text: &str) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let wrong = |reason: String| crate::usage(format!("{flag} {text}: {reason}"));
    let number = |part: &str| match part.trim().parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
        _ => Err(wrong(format!("\"{part}\" is not a frequency; it must be a finite number, 0 or more"))),
    };
    if !text.contains(':') {
        return text.split(',').map(number).collect();
    }
    let parts: Vec<&str> = text.split(':').collect();
    let logarithmic = match parts.len() {
        3 => false,
        4 if parts[3] == "log" => true,
        _ => {
            return Err(wrong(
                "a range is START:STOP:N or START:STOP:N:log, such as 0.01:100:200:log".into(),
            ));
        }
    };
    let (start, stop) = (number(parts[0])?, number(parts[1])?);
    let n = match parts[2].trim().parse::<usize>() {
        Ok(n) if (1..=MOST).contains(&n) => n,
        _ => {
            return Err(wrong(format!(
                "\"{}\" points; it must be a whole number from 1 to {MOST}",
                parts[2]
            )));
        }
    };
    if start > stop || (n > 1 && start == stop) {
        return Err(wrong(format!("the range is empty: it must end above its start {start}")));
    }
    if logarithmic && start == 0.0 {
        return Err(wrong("a logarithmic range cannot start at 0".into()));
    }
    let last = (n - 1).max(1) as f64;
    Ok((0..n)
        .map(|k| match k as f64 / last {
            _ if k > 0 && k + 1 == n => stop,
            part if logarithmic => start * (stop / start).powf(part),
            part => start + (stop - start) * part,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lists_and_ranges() {
        assert_eq!(parse("--omega", "0.5, 2,1e3").unwrap(), [0.5, 2.0, 1000.0]);
        assert_eq!(parse("--omega", "0:2:5").unwrap(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(parse("--omega", "3:3:1").unwrap(), [3.0]);
        let decades = parse("--omega", "0.01:100:5:log").unwrap();
        for (ours, exact) in decades.iter().zip([0.01, 0.1, 1.0, 10.0, 100.0]) {
            assert!((ours / exact - 1.0).abs() < 1e-12, "{ours}");
        }
        assert_eq!(decades[4], 100.0);
    }

    #[test]
    fn one_sentence_for_each_mistake() {
        for (text, word) in [
            ("", "not a frequency"),
            ("1,,2", "not a frequency"),
            ("-1", "not a frequency"),
            ("nan", "not a frequency"),
            ("1:2", "START:STOP:N"),
            ("1:2:3:lin", "START:STOP:N"),
            ("1:2:0", "whole number"),
            ("1:2:1.5", "whole number"),
            ("1:2:99999999999", "whole number"),
            ("2:1:10", "empty"),
            ("2:2:10", "empty"),
            ("0:1:10:log", "start at 0"),
        ] {
            let message = parse("--omega", text).unwrap_err().to_string();
            assert!(
                message.contains(word) && message.starts_with("--omega") && !message.contains('\n'),
                "{message}"
            );
        }
    }
}
