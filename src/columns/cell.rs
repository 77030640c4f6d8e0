//! The text of a cell: how each type of value is written, and read back.
//!
//! Deliberately absent: which column a value stands in.

use std::io::Write as _;
use std::sync::Arc;

use super::words;
use crate::units::{NS_PER_MS, NS_PER_S, Nanos};

/// What is wrong with a cell of which nothing better can be said.
pub const NO_SUCH_VALUE: &str = "no such value";

words! {
    /// What figures are counted in; of a time also how it is written.
    #[derive(Default)]
    pub enum Unit {
        /// Words, yes or no, plain counts.
        #[default]
        Plain = "",
        /// Seconds; a time carries nine decimals.
        S = "s",
        /// Milliseconds; a time carries six decimals.
        Ms = "ms",
        /// Nanoseconds.
        Ns = "ns",
        /// Squared nanoseconds.
        Ns2 = "ns²",
        /// Tokens.
        Tok = "tok",
        /// Tokens per second.
        TokS = "tok/s",
        /// Requests per second.
        ReqS = "req/s",
        /// A share of one.
        Share = "share",
        /// A count, where the unit is told in a column of its own.
        Count = "count",
        /// Cores of the processor.
        Cores = "cores",
        /// Millions of bytes.
        Mb = "MB",
    }
}

/// No unit, as a parameter of [`WriteCell`].
pub const PLAIN: u8 = Unit::Plain as u8;

/// A value as the cell of a column in a [`Unit`], told by its number.
pub trait WriteCell<const UNIT: u8> {
    /// Appends its text, in quotes where CSV needs them.
    fn write(&self, line: &mut Vec<u8>);
}

/// A value that can be read back from a cell; the error completes "`3` is …".
pub trait ReadCell<const UNIT: u8>: Sized {
    /// Reads the cell's text.
    fn read(text: &str) -> Result<Self, &'static str>;
}

/// An enumeration whose values are words; `words!` defines one.
pub trait Word: Copy + 'static {
    /// Its values, in order.
    const ALL: &'static [Self];
    /// What any other word is.
    const NONE: &'static str;

    /// The word.
    #[must_use]
    fn word(self) -> &'static str;

    /// Reads it back.
    #[must_use]
    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == word)
    }
}

impl<const U: u8, T: Word> WriteCell<U> for T {
    fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.word().as_bytes());
    }
}

impl<const U: u8, T: Word> ReadCell<U> for T {
    fn read(text: &str) -> Result<Self, &'static str> {
        T::parse(text).ok_or(T::NONE)
    }
}

impl<const U: u8, T: WriteCell<U>> WriteCell<U> for Option<T> {
    fn write(&self, line: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(line);
        }
    }
}

impl<const U: u8, T: ReadCell<U>> ReadCell<U> for Option<T> {
    fn read(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }
}

impl<const U: u8> WriteCell<U> for &str {
    fn write(&self, line: &mut Vec<u8>) {
        text(self, line);
    }
}

macro_rules! cells {
    ($($type:ty: |$value:ident, $line:ident| $write:expr, $read:expr;)+) => { $(
        impl<const U: u8> WriteCell<U> for $type {
            fn write(&self, $line: &mut Vec<u8>) {
                let $value = self;
                $write;
            }
        }

        impl<const U: u8> ReadCell<U> for $type {
            fn read(text: &str) -> Result<Self, &'static str> {
                $read(text)
            }
        }
    )+ };
}
cells! {
    String: |value, line| text(value, line), |text: &str| Ok(text.to_owned());
    Arc<str>: |value, line| text(value, line), |text: &str| Ok(text.into());
    bool: |value, line| shown(value, line), read_value;
    u16: |value, line| number((*value).into(), 1, line), read_value;
    u32: |value, line| number((*value).into(), 1, line), read_value;
    u64: |value, line| number(*value, 1, line), read_value;
    usize: |value, line| number(*value as u64, 1, line), read_value;
    u128: |value, line| shown(value, line), read_value;
    f64: |value, line| shown(value, line), read_value;
    Nanos: |value, line| In::<U>::write(*value, line), In::<U>::read;
}

/// A time in a unit.
struct In<const UNIT: u8>;

impl<const UNIT: u8> In<UNIT> {
    /// Nanoseconds in one of the unit, its decimals, and what any other text is.
    const FORM: (u64, u32, &'static str) = match UNIT {
        unit if unit == Unit::S as u8 => (NS_PER_S, 9, "no number of seconds"),
        unit if unit == Unit::Ms as u8 => (NS_PER_MS, 6, "no number of milliseconds"),
        unit if unit == Unit::Ns as u8 => (1, 0, "no number of nanoseconds"),
        _ => panic!("the column of a time needs a unit of time"),
    };

    fn write(time: Nanos, line: &mut Vec<u8>) {
        let (ns, decimals, _) = Self::FORM;
        number(time.0 / ns, 1, line);
        if decimals > 0 {
            line.push(b'.');
            number(time.0 % ns, decimals as usize, line);
        }
    }

    fn read(text: &str) -> Result<Nanos, &'static str> {
        let (_, decimals, problem) = Self::FORM;
        Nanos::parse_decimal(text, decimals).map_err(|_| problem)
    }
}

/// Reads a value that has no empty form.
pub(crate) fn read_value<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| if text.is_empty() { "empty" } else { NO_SUCH_VALUE })
}

/// Appends a value as it prints itself, which needs no quotes.
pub(crate) fn shown(value: impl std::fmt::Display, line: &mut Vec<u8>) {
    write!(line, "{value}").expect("a vector grows");
}

/// Appends decimal digits, with zeros before them up to `width`: without the formatting machinery, since a
/// plan's row may have hundreds of block ids and a stream thousands of events.
pub(crate) fn number(mut value: u64, width: usize, line: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).expect("a digit");
        value /= 10;
    }
    line.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

/// Appends text, in quotes where CSV needs them.
pub(super) fn text(text: &str, line: &mut Vec<u8>) {
    if !text.bytes().any(|byte| b",\"\r\n".contains(&byte)) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}
