//! Descriptions of the settings: the reference table of the manual, and a JSON Schema for editors.

use super::keys::{Group, KEYS};
use super::kind::Kind;
use super::study::SHARED;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A JSON Schema of study and run files, for editors that complete and check TOML.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for key in KEYS {
        let mut value = key.kind.schema();
        value["description"] = key.help.into();
        match key.name.split_once('.') {
            Some((table, member)) => {
                let table = properties.entry(table).or_insert_with(
                    || json!({ "type": "object", "additionalProperties": false, "properties": {} }),
                );
                table["properties"][member] = value;
            }
            None => drop(properties.insert(key.name.to_owned(), value)),
        }
    }
    // In a study, `tau` may be a list and `condition` is a list of tables; in a run, both are single values.
    let tau = Kind::Tau.schema();
    properties["tau"]["anyOf"] = json!([tau, { "type": "array", "items": tau, "minItems": 1 }]);
    let mut condition = properties.clone();
    for shared in SHARED {
        condition.remove(shared);
    }
    condition["tau"] = tau;
    properties["condition"] = json!({
        "description": properties["condition"]["description"],
        "anyOf": [
            { "type": "string" },
            {
                "type": "array",
                "items": { "type": "object", "additionalProperties": false, "properties": condition }
            }
        ]
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "LeakLab study or run",
        "type": "object",
        "additionalProperties": false,
        "properties": properties
    })
}

/// The reference table of the manual, in Markdown.
pub fn reference() -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let _ = write!(text, "\n| {} | values | meaning |\n| --- | --- | --- |\n", group.name());
        for key in KEYS.iter().filter(|key| key.group == group) {
            let expected = key.kind.expected();
            let values = expected.strip_suffix(" is expected").or(expected.strip_suffix(" are expected"));
            let values = values
                .unwrap_or(&expected)
                .replace(" are expected in a study, a name in a run", ", or a name");
            let _ = writeln!(text, "| `{}` | {values} | {} |", key.name, key.help);
        }
    }
    text
}
