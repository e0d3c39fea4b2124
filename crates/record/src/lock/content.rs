//! What a lock file contains, and the holder that it names.

use crate::atomic;
use crate::process::Process;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, SystemTime};

/// Bytes that are read of a lock file; every lock is shorter.
const MOST_BYTES: u64 = 4096;

/// Content of a lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Unique to each lock.
    pub token: Token,
    /// The process that holds the lock.
    #[serde(flatten)]
    pub process: Process,
}

impl Content {
    /// A new lock of this process.
    pub(super) fn new() -> Self {
        Content { token: Token::random(), process: Process::this() }
    }

    /// Reads the bytes of a lock file; `None` if they are not those of a lock.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Reads an open lock file; `None` if it is not a lock. A longer file is not one, and is not read to its
    /// end.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(Some(bytes)
            .filter(|bytes| (bytes.len() as u64) < MOST_BYTES)
            .and_then(|bytes| Self::parse(&bytes)))
    }
}

/// A number that identifies a lock, written as 16 hexadecimal digits. It becomes part of a file's name, and a
/// lock file may be untrusted, so no other text is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(u64);

impl Token {
    /// Stands for the token of a lock file that cannot be read.
    pub(super) const NONE: Token = Token(0);

    /// A new token.
    pub(super) fn random() -> Self {
        Token(atomic::random())
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl TryFrom<String> for Token {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = atomic::is_unique(&text).then(|| u64::from_str_radix(&text, 16));
        number.and_then(Result::ok).map(Token).ok_or("not 16 hexadecimal digits")
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        token.to_string()
    }
}

/// The holder of a lock, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process; `None` if the file is not a lock of LeakLab, or is still being written.
    pub process: Option<Process>,
    /// Its last heartbeat, by the file system's clock.
    pub beat: SystemTime,
    /// Age of that heartbeat.
    pub age: Duration,
    /// Whether the holder is known to have ended.
    pub stale: bool,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match &self.process {
            Some(process) => write!(f, "{process}")?,
            None => f.write_str("the lock file does not name it")?,
        }
        write!(f, ", last heartbeat {} s ago", self.age.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_16_hexadecimal_digits_and_nothing_else() {
        let content = Content { token: Token::random(), process: Process::elsewhere() };
        let text = serde_json::to_string(&content).unwrap();
        let token = content.token.to_string();
        assert_eq!(Content::parse(text.as_bytes()), Some(content));
        for other in ["", "/../precious", "0123456789abcde", "+123456789abcdef", "0123456789abcdef0"] {
            assert_eq!(Content::parse(text.replace(&token, other).as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_long_file_is_not_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let content = Content::new();
        let text = serde_json::to_string(&content).unwrap();
        for (blanks, expected) in [(0, Some(&content)), (MOST_BYTES as usize, None)] {
            std::fs::write(&path, text.clone() + &" ".repeat(blanks)).unwrap();
            assert_eq!(Content::read(&File::open(&path).unwrap()).unwrap().as_ref(), expected);
        }
    }
}
