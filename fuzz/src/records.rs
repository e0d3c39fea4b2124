//! Targets for the user's settings and the files of a run: notation, settings, checkpoints, metrics, health,
//! machines, TensorBoard events, locks, passes, tables.

use leaklab_engine::{Architecture, Leak, Network, Tau};
use leaklab_lab::analysis::pass::{Frame, Pass};
use leaklab_lab::analysis::stimulus::PassKey;
use leaklab_lab::config::{RunConfig, Settings, StudyConfig};
use leaklab_record::checkpoint::{self, Checkpoint};
use leaklab_record::lock::Content;
use leaklab_record::tables::{ClaimRow, CorrectnessRow, PlanRow, RobustnessRow};
use leaklab_record::{Rows, Stimulus, Table, events, health, machine, metrics};
use std::path::Path;
use std::sync::OnceLock;

/// Checks that an error has a message.
pub(crate) fn refused(message: &impl ToString) -> bool {
    let message = message.to_string();
    assert!(message.len() > 8, "{message:?}");
    false
}

/// The paper's network notation. A network is the same after it is written and read again.
pub fn notation(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match Architecture::parse(text) {
        Ok(network) => {
            assert_eq!(Architecture::parse(&network.to_string()).as_ref(), Ok(&network));
            let weights: usize = network.parameters().iter().map(|parameter| parameter.len).sum();
            assert_eq!(weights, network.parameter_count());
            true
        }
        Err(error) => refused(&error),
    }
}

/// A settings file, read as that of a run and as that of a study.
pub fn settings(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let path = Path::new("fuzz.toml");
    let settings = match Settings::from_toml(text, path) {
        Ok(settings) => settings,
        Err(error) => return refused(&error),
    };
    let run = match RunConfig::resolve(settings.clone()) {
        Ok(run) => {
            let text = run.to_toml();
            let again = Settings::from_toml(&text, path).and_then(RunConfig::resolve);
            assert!(
                again.ok().as_ref() == Some(&run),
                "the run differs after it was written and read again:\n{text}"
            );
            true
        }
        Err(error) => refused(&error),
    };
    let study = match StudyConfig::resolve(settings, "fuzz") {
        Ok(study) => {
            let text = study.to_toml();
            let again = Settings::from_toml(&text, path).and_then(|s| StudyConfig::resolve(s, "fuzz"));
            assert!(
                again.ok().as_ref() == Some(&study),
                "the study differs after it was written and read again:\n{text}"
            );
            assert!(!study.runs().is_empty());
            true
        }
        Err(error) => refused(&error),
    };
    run || study
}

/// A checkpoint, as it is and with a corrected checksum.
pub fn checkpoint(bytes: &[u8]) -> bool {
    let path = Path::new("fuzz.safetensors");
    let read = |bytes: Vec<u8>| match Checkpoint::from_bytes(bytes, path) {
        Ok(found) => {
            // The bytes may differ: a file may have more entries in its header, or tensors in another order.
            let again = Checkpoint::from_bytes(found.to_bytes(), path).unwrap();
            assert_eq!(again.tensors.len(), found.tensors.len());
            assert_eq!(again.header.position, found.header.position);
            true
        }
        Err(error) => refused(&error),
    };
    let mut signed = bytes.to_vec();
    let signed = checkpoint::sign(&mut signed).then_some(signed);
    read(bytes.to_vec()) | signed.is_some_and(read)
}

/// The metrics of a run; its epochs must be 1, 2, 3 and so on.
pub fn metrics(bytes: &[u8]) -> bool {
    match metrics::parse(bytes, Path::new("metrics.jsonl")) {
        Ok(epochs) => {
            assert!(epochs.iter().zip(1..).all(|(line, number)| line.epoch == number));
            !epochs.is_empty()
        }
        Err(error) => refused(&error),
    }
}

/// The health notices of a run, which are the same after they are written and read again.
pub fn health(bytes: &[u8]) -> bool {
    let parse = |bytes: &[u8]| health::parse(bytes, Path::new("health.jsonl"));
    match parse(bytes) {
        Ok(notices) => {
            assert_eq!(parse(&lines(notices.iter().map(serde_json::to_string).collect())).unwrap(), notices);
            !notices.is_empty()
        }
        Err(error) => refused(&error),
    }
}

/// The machines of a run, which are the same after they are written and read again.
pub fn machines(bytes: &[u8]) -> bool {
    let parse = |bytes: &[u8]| machine::parse(bytes, Path::new("machines.jsonl"));
    match parse(bytes) {
        Ok(machines) => {
            assert_eq!(
                parse(&lines(machines.iter().map(serde_json::to_string).collect())).unwrap(),
                machines
            );
            assert!(machines.iter().all(|trainer| !trainer.machine.to_string().is_empty()));
            !machines.is_empty()
        }
        Err(error) => refused(&error),
    }
}

/// One text per line.
fn lines(texts: serde_json::Result<Vec<String>>) -> Vec<u8> {
    texts.unwrap().iter().flat_map(|text| [text, "\n"].concat().into_bytes()).collect()
}

/// A TensorBoard file of two steps, as it is and, as the data of one record, with corrected checksums. The
/// records that are kept are complete without what follows them.
pub fn tensorboard(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8], last: u64| match events::kept_length(bytes, last) {
        Ok(kept) => {
            assert_eq!(events::kept_length(&bytes[..kept], last), Ok(kept));
            assert!(last == 0 || events::kept_length(bytes, last - 1).is_ok_and(|fewer| fewer < kept));
            true
        }
        Err(place) => {
            assert!(place <= bytes.len());
            false
        }
    };
    read(&events::frame(bytes), 0);
    read(bytes, u64::MAX);
    read(bytes, 2)
}

/// A lock. Its token becomes part of a file's name, so it has 16 hexadecimal digits.
pub fn lock(bytes: &[u8]) -> bool {
    let Some(content) = Content::parse(bytes) else { return false };
    assert_eq!(Content::parse(&serde_json::to_vec(&content).unwrap()).as_ref(), Some(&content));
    let token = content.token.to_string();
    assert!(token.len() == 16 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
    true
}

/// Fingerprint of the passes of the corpus.
pub const FINGERPRINT: &str = "0123456789abcdef";
/// Number of images and steps of the passes of the corpus.
pub const PASS_SIZE: (usize, usize) = (3, 8);

/// The network of the passes of the corpus.
pub fn pass_network() -> &'static Network {
    static NETWORK: OnceLock<Network> = OnceLock::new();
    NETWORK.get_or_init(|| {
        let network = Architecture::parse("1x4x4-2C3-2P-3FC-2o").unwrap();
        Network::initialised(network, Leak::uniform(Tau::INFINITE), 1.0, 1).unwrap()
    })
}

/// A stored pass, as it is and with a corrected digest.
pub fn passes(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let ((images, steps), key) = (PASS_SIZE, PassKey::first(Stimulus::Clean));
    let frame = Frame { network: pass_network(), steps, key, images };
    let content = serde_json::from_str::<serde_json::Value>(text).ok().and_then(|stored| {
        let pass: Pass = serde_json::from_value(stored.get("content")?.clone()).ok()?;
        Some(pass.to_text(FINGERPRINT.to_owned()))
    });
    let sealed = content.and_then(|text| Pass::of_text(&text, FINGERPRINT, &frame));
    if let Some(pass) = &sealed {
        assert!(pass.images() == images as u64 && (0.0..=1.0).contains(&pass.accuracy()));
        assert!(pass.spectrum.is_some() && pass.activity.is_some());
    }
    let read = Pass::of_text(text, FINGERPRINT, &frame);
    assert!(read.is_none() || read == sealed);
    read.is_some()
}

/// A table. It must be the same after it is written and read again; as CSV, each record has a cell for each
/// column, and there are no formulas.
pub fn tables(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let path = Path::new("table.json");
    let table = match Table::parse(text, path) {
        Ok(table) => table,
        Err(error) => return refused(&error),
    };
    assert_eq!(Table::parse(&table.to_json(), path).unwrap(), table);
    for record in csv_records(&table.to_csv()) {
        assert_eq!(record.len(), table.columns.len().max(1), "{record:?}");
        for cell in &record {
            let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
            assert!(!formula || cell.parse::<f64>().is_ok(), "{cell:?} is a formula");
        }
    }
    let typed = [
        Rows::<RobustnessRow>::from_table(&table).is_ok(),
        Rows::<CorrectnessRow>::from_table(&table).is_ok(),
        Rows::<ClaimRow>::from_table(&table).is_ok(),
        Rows::<PlanRow>::from_table(&table).is_ok(),
    ];
    typed.contains(&true)
}

/// The records of a CSV text (RFC 4180).
fn csv_records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            (c, _) => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && record.is_empty(), "an incomplete record: {text:?}");
    records
}
