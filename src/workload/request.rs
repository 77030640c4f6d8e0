//! `[request]`: free keys that go into every request, as JSON.
//!
//! Names are passed on as they are (`temperature`, `top_p`, whatever the server knows); only what JSON
//! cannot say is refused, with its place. Deliberately absent: any knowledge of the keys.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use toml::de::{DeTable, DeValue};

use super::WorkloadError;
use super::keys::Keys;

/// How deep tables may be nested.
const DEPTH: usize = 32;

/// The section as a JSON object; keys come in TOML's order of names.
pub(super) fn read(keys: &Keys<'_>) -> Result<Box<RawValue>, WorkloadError> {
    let mut json = String::from("{");
    for field in keys.all() {
        if json.len() > 1 {
            json.push(',');
        }
        write_text(&mut json, field.name());
        json.push(':');
        write_value(&mut json, field.value(), DEPTH).map_err(|why| field.fail(why))?;
    }
    json.push('}');
    Ok(RawValue::from_string(json).expect("values were written as JSON one by one"))
}

fn write_value(json: &mut String, value: &DeValue<'_>, depth: usize) -> Result<(), String> {
    if depth == 0 {
        return Err(format!("has tables nested more than {DEPTH} deep"));
    }
    match value {
        DeValue::String(text) => write_text(json, text),
        DeValue::Boolean(truth) => {
            let _ = write!(json, "{truth}");
        }
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => {
                let _ = write!(json, "{number}");
            }
            Err(_) => return Err(format!("is {number}; no whole number that JSON can say")),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(float) if float.is_finite() => {
                let number = serde_json::Number::from_f64(float).expect("it is finite");
                let _ = write!(json, "{number}");
            }
            _ => return Err(format!("is {number}; JSON has no such number")),
        },
        DeValue::Datetime(_) => {
            return Err("is a date, which JSON has not; put it in quotes".to_owned());
        }
        DeValue::Array(items) => {
            json.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                write_value(json, item.get_ref(), depth - 1)?;
            }
            json.push(']');
        }
        DeValue::Table(table) => write_table(json, table, depth)?,
    }
    Ok(())
}

fn write_table(json: &mut String, table: &DeTable<'_>, depth: usize) -> Result<(), String> {
    json.push('{');
    for (at, (key, value)) in table.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_text(json, key.get_ref());
        json.push(':');
        write_value(json, value.get_ref(), depth - 1)?;
    }
    json.push('}');
    Ok(())
}

fn write_text(json: &mut String, text: &str) {
    json.push_str(&serde_json::to_string(text).expect("a string always is JSON"));
}
