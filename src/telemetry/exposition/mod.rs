//! The text that `/metrics` answers: Prometheus' exposition format (0.0.4, 1.0.0) and `OpenMetrics`.
//!
//! Pure: bytes in, samples out, nothing kept but the one page. A page is taken whole or refused with the
//! line at fault, since a line that is skipped may be the one that counts. Timestamps and exemplars are
//! read over: samples are stamped by who scrapes. Deliberately absent: what any metric means, and the
//! binary formats.

mod line;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use line::ExpositionLine;

/// How much a page may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the page.
    pub bytes: usize,
    /// Samples.
    pub samples: usize,
    /// Labels of one sample.
    pub labels: usize,
}

impl Default for Limits {
    /// vLLM's page is 60 kB and about 600 samples; a fleet behind one page is well within these.
    fn default() -> Self {
        Self { bytes: 8 << 20, samples: 100_000, labels: 64 }
    }
}

/// One line of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// As written, with its `_total`, `_bucket`, `_sum` or `_count`.
    pub name: Cow<'a, str>,
    /// In the order of the line.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// May be NaN or infinite.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_ref())
    }
}

/// What `# TYPE` says of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the format")]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    /// Anything else.
    Other,
}

/// A page, read.
#[derive(Clone, Debug, Default)]
pub struct Exposition<'a> {
    /// In the order of the page.
    pub samples: Vec<Sample<'a>>,
    /// By the name that `# TYPE` gives.
    pub kinds: HashMap<&'a str, Kind>,
}

/// Why a page cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// Longer than allowed.
    #[error("the page is longer than {limit_bytes} bytes")]
    TooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// More samples than allowed.
    #[error("line {line}: more than {limit} samples on one page")]
    TooManySamples {
        /// From 1.
        line: usize,
        /// The limit.
        limit: usize,
    },
    /// A line that the format does not know.
    #[error("line {line}: {fault}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not UTF-8.
    #[error("not UTF-8 text")]
    Encoding,
    /// Does not begin with a name.
    #[error("no metric name at the beginning of {0:?}")]
    Name(String),
    /// `{` without its `}`.
    #[error("the labels of `{0}` have no end")]
    OpenLabels(String),
    /// Something that is no `name="value"`.
    #[error("a label of `{0}` is not written as name=\"value\"")]
    Label(String),
    /// A quoted text that does not end on its line.
    #[error("a label value of `{0}` has no closing quote on its line")]
    OpenQuote(String),
    /// Too many labels.
    #[error("`{name}` has more than {limit} labels")]
    TooManyLabels {
        /// The metric.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// No value.
    #[error("`{0}` has no value")]
    NoValue(String),
    /// Not a number.
    #[error("the value of `{name}` is {text:?}, which is no number")]
    Value {
        /// The metric.
        name: String,
        /// As written, cut.
        text: String,
    },
    /// Something after the value that is neither a timestamp nor an exemplar.
    #[error("what follows the value of `{name}` is {text:?}, which is no timestamp")]
    Tail {
        /// The metric.
        name: String,
        /// As written, cut.
        text: String,
    },
}

/// Reads a page.
pub fn parse(page: &[u8], limits: Limits) -> Result<Exposition<'_>, ExpositionError> {
    if page.len() > limits.bytes {
        return Err(ExpositionError::TooLong { limit_bytes: limits.bytes });
    }
    let mut read = Exposition::default();
    for (at, bytes) in page.split(|byte| *byte == b'\n').enumerate() {
        let at_fault = |fault| ExpositionError::Line { line: at + 1, fault };
        let text = std::str::from_utf8(bytes).map_err(|_| at_fault(Fault::Encoding))?;
        match line::read(text, limits.labels).map_err(at_fault)? {
            ExpositionLine::Nothing => {}
            ExpositionLine::Kind(name, kind) => {
                read.kinds.insert(name, kind);
            }
            ExpositionLine::Sample(_) if read.samples.len() >= limits.samples => {
                let limit = limits.samples;
                return Err(ExpositionError::TooManySamples { line: at + 1, limit });
            }
            ExpositionLine::Sample(sample) => read.samples.push(sample),
            ExpositionLine::End => break,
        }
    }
    Ok(read)
}
