//! Trace files in, [`crate::trace::Request`]s out, in time order.
//!
//! [`open()`] tells the format and the compression from the content, looks at every row of a file once
//! (order, faults, counts) and answers with a [`Trace`], whose [`Trace::rows`] streams them as often as
//! needed. Memory stays flat whatever the file's length. Times become integer nanoseconds without ever
//! being floating point.
//!
//! Deliberately absent: knowledge of when rows will be sent, of prompts' words, of what spans rows (turns
//! in order), of a clock, and of guessing: a row that cannot be read exactly is an error that says where.

mod blocks;
mod date;
mod documents;
mod error;
mod facts;
mod formats;
mod held;
mod json;
mod lines;
mod notices;
mod number;
mod open;
mod options;
mod order;
mod reader;
mod row;
mod rows;
mod scan;
mod sniff;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod unit_question;
mod walk;

pub use self::error::{TraceError, UnknownWord, value_of, word_of};
pub use self::facts::{Facts, TraceClock};
pub use self::formats::Format;
pub use self::number::TimeUnit;
pub use self::open::{open, open_with_progress};
pub use self::options::{Failed, Input, ReadOptions};
pub use self::source::read_whole;
pub use self::trace::Trace;
pub use self::walk::{Walked, walk};
