//! The values that a setting accepts. They are checked when a setting is read, stated in the message that
//! refuses it, and passed to editors as JSON Schema.

use leaklab_engine::Tau;
use serde_json::{Value as Json, json};
use std::fmt::Display;
use std::str::FromStr;
use toml::Value;

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number in a range.
    Whole {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A whole number of 1 or more, or a list of them.
    WholeList,
    /// A finite number above 0.
    Positive,
    /// A finite number of 0 or more.
    NotNegative,
    /// A number from 0 to below 1.
    Fraction,
    /// A membrane time constant.
    Tau,
    /// Time constants by the name of the hidden layer.
    TauByLayer,
    /// A list of noises.
    NoiseList,
    /// Eight levels for each noise.
    LevelsByNoise,
    /// The conditions of a study, or the name of one condition.
    Conditions,
}

impl Kind {
    /// A whole number of 1 or more.
    pub const AT_LEAST_1: Kind = Kind::Whole { least: 1, most: 1 << 48 };

    /// Whether the setting is a table whose members have values of their own.
    pub fn has_members(self) -> bool {
        match self {
            Kind::TauByLayer | Kind::LevelsByNoise => true,
            Kind::Text
            | Kind::Choice(_)
            | Kind::Flag
            | Kind::Whole { .. }
            | Kind::WholeList
            | Kind::Positive
            | Kind::NotNegative
            | Kind::Fraction
            | Kind::Tau
            | Kind::NoiseList
            | Kind::Conditions => false,
        }
    }

    /// The part of an error message that states what is expected.
    pub fn expected(self) -> String {
        match self {
            Kind::Text => "a text in quotes is expected".to_owned(),
            Kind::Choice(words) => format!("one of {} is expected", words.join(", ")),
            Kind::Flag => "true or false is expected".to_owned(),
            Kind::Whole { least, most } if most >= 1 << 32 => {
                format!("a whole number of {least} or more is expected")
            }
            Kind::Whole { least, most } => format!("a whole number from {least} to {most} is expected"),
            Kind::WholeList => "a list of whole numbers is expected".to_owned(),
            Kind::Positive => "a number above 0 is expected".to_owned(),
            Kind::NotNegative => "a number of 0 or more is expected".to_owned(),
            Kind::Fraction => "a number from 0 to below 1 is expected".to_owned(),
            Kind::Tau | Kind::TauByLayer => "a number of steps (1/64 or more) or inf is expected".to_owned(),
            Kind::NoiseList => "a list of noises such as gaussian/pixel is expected".to_owned(),
            Kind::LevelsByNoise => "a list of eight levels (severities 1 to 8) is expected".to_owned(),
            Kind::Conditions => "[[condition]] tables are expected in a study, a name in a run".to_owned(),
        }
    }

    /// Whether a value has the right type and range.
    pub(super) fn check(self, value: &Value) -> Result<(), String> {
        let good = match self {
            Kind::Text | Kind::Choice(_) => value.is_str(),
            Kind::Flag => value.is_bool(),
            Kind::Whole { least, most } => whole(value).is_ok_and(|n| (least..=most).contains(&n)),
            Kind::WholeList => list(value).iter().all(|n| whole(n).is_ok()),
            Kind::Positive => number(value).is_ok_and(positive),
            Kind::NotNegative => number(value).is_ok_and(|x| x >= 0.0 && x.is_finite()),
            Kind::Fraction => return fraction(value).map(|_| ()),
            Kind::Tau | Kind::TauByLayer => tau(value).is_ok(),
            Kind::NoiseList => list(value).iter().all(Value::is_str),
            Kind::LevelsByNoise => list(value).len() == 8,
            Kind::Conditions => value.is_str(),
        };
        if good {
            return Ok(());
        }
        // The manual omits an upper limit that nobody reaches; whoever exceeds it must learn it.
        Err(if let Kind::Whole { least, most } = self {
            format!("a whole number from {least} to {most} is expected")
        } else {
            self.expected()
        })
    }

    /// The kind as JSON Schema.
    pub(super) fn schema(self) -> Json {
        let tau = json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "const": "inf" }] });
        match self {
            Kind::Text => json!({ "type": "string" }),
            Kind::Choice(words) => json!({ "enum": words }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::WholeList => {
                json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } })
            }
            Kind::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
            Kind::NotNegative => json!({ "type": "number", "minimum": 0 }),
            Kind::Fraction => json!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1 }),
            Kind::Tau => tau,
            Kind::TauByLayer => json!({ "type": "object", "additionalProperties": tau }),
            Kind::NoiseList => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::LevelsByNoise => json!({
                "type": "object",
                "additionalProperties": {
                    "type": "array", "items": { "type": "number" }, "minItems": 8, "maxItems": 8
                }
            }),
            Kind::Conditions => json!({ "type": "string" }),
        }
    }
}

/// The values of a list; a single value is treated as a list of one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| Kind::Text.expected())
}

pub(super) fn whole(value: &Value) -> Result<u64, String> {
    let number = value.as_integer().and_then(|n| u64::try_from(n).ok());
    number.ok_or_else(|| "a whole number of 0 or more is expected".to_owned())
}

/// A number, whole or not. Strings such as "inf" and "30" are accepted too, since JSON and shells have no
/// other way to write infinity.
pub(super) fn number(value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        Value::String(text) => text.parse().ok(),
        Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    };
    number.ok_or_else(|| "a number is expected".to_owned())
}

pub(super) fn positive(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

/// A number that is still accepted after rounding to single precision, with which the network computes.
pub(super) fn in_single(value: &Value, accept: fn(f64) -> bool) -> Result<f32, String> {
    let given = number(value)?;
    let x = given as f32;
    // A number that becomes 0 would switch off what it sets.
    if accept(f64::from(x)) && x.is_finite() && (x != 0.0 || given == 0.0) {
        Ok(x)
    } else {
        Err(format!("a number that single precision can hold is expected, and this one becomes {x}"))
    }
}

pub(super) fn fraction(value: &Value) -> Result<f32, String> {
    let below_1 = |x: f64| (0.0..1.0).contains(&x);
    number(value).ok().filter(|&x| below_1(x)).ok_or_else(|| Kind::Fraction.expected())?;
    in_single(value, below_1)
}

pub(super) fn tau(value: &Value) -> Result<Tau, String> {
    number(value).ok().and_then(|steps| Tau::new(steps).ok()).ok_or_else(|| Kind::Tau.expected())
}

pub(super) fn choice<T: FromStr<Err: Display>>(value: &Value) -> Result<T, String> {
    text(value)?.parse().map_err(|e: T::Err| e.to_string())
}
