//! The formats that are known, a file each.
//!
//! To add one: its file with a [`Definition`], a [`Format`], and a line in [`FORMATS`]. The words of `--format`,
//! what tells formats apart, the list that a person is given and the readers all come from there.

mod aiperf;
mod azure;
mod bailian;
mod burstgpt;
mod dynamo;
mod lengths;
mod litellm;
mod mooncake;
mod native;
mod otel;
mod ragpulse;
mod sglang;
mod tracelab;
mod weka;

use std::fmt;
use std::str::FromStr;

use super::error::{UnknownWord, value_of};
use super::number::TimeUnit;
use super::reader::Definition;

/// A format of trace rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// underfire's own, CSV or JSONL.
    Native,
    /// Azure's public LLM traces of 2023, 2024 and 2025, CSV.
    Azure,
    /// `BurstGPT`'s public traces, CSV.
    BurstGpt,
    /// Mooncake's public traces, and what `AIPerf` adds to them, JSONL.
    Mooncake,
    /// The same keys as vLLM's `timed_trace` benchmark reads them: seconds, blocks of 16.
    TimedTrace,
    /// Qwen-Bailian's public traces, JSONL.
    Bailian,
    /// `RAGPulse`'s public trace, JSONL.
    RagPulse,
    /// Claude Code sessions of WEKA's kv-cache-tester, JSON or JSONL, a file or a folder of them.
    Weka,
    /// `TraceLab`'s rounds, JSONL.
    TraceLab,
    /// `TraceLab`'s replay files, CSV.
    TraceLabReplay,
    /// Lengths, with arrival times (vidur) or without (vidur, etalon, sarathi), CSV.
    Lengths,
    /// OpenTelemetry spans of generative AI, JSON or JSONL.
    Otel,
    /// `LiteLLM`'s spend logs, JSONL or CSV.
    LiteLlm,
    /// Dynamo's request traces, JSONL.
    Dynamo,
    /// `SGLang`'s request log, JSONL.
    SgLang,
}

/// All of them, in the order in which they are listed.
pub(super) const FORMATS: [(Format, &Definition); 15] = [
    (Format::Native, &native::FORMAT),
    (Format::Azure, &azure::FORMAT),
    (Format::BurstGpt, &burstgpt::FORMAT),
    (Format::Mooncake, &mooncake::FORMAT),
    (Format::TimedTrace, &mooncake::TIMED_TRACE),
    (Format::Bailian, &bailian::FORMAT),
    (Format::RagPulse, &ragpulse::FORMAT),
    (Format::Weka, &weka::FORMAT),
    (Format::TraceLab, &tracelab::FORMAT),
    (Format::TraceLabReplay, &tracelab::REPLAY_FORMAT),
    (Format::Lengths, &lengths::FORMAT),
    (Format::Otel, &otel::FORMAT),
    (Format::LiteLlm, &litellm::FORMAT),
    (Format::Dynamo, &dynamo::FORMAT),
    (Format::SgLang, &sglang::FORMAT),
];

impl Format {
    pub(super) fn definition(self) -> &'static Definition {
        let own = FORMATS.iter().find(|(format, _)| *format == self);
        own.expect("every format is in the list, as a test makes sure").1
    }

    /// The unit of times that are bare numbers; `None` where rows hold dates.
    pub(super) fn unit(self) -> Option<TimeUnit> {
        self.definition().unit
    }
}

impl FromStr for Format {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let words = FORMATS.map(|(format, definition)| (definition.name, format));
        value_of("trace format", &words, word)
    }
}

crate::units::serialize_as_text!(Format);

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.definition().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_listed_once_and_read_back() {
        // The last of the enumeration: those before it are as many as the list has.
        assert_eq!(Format::SgLang as usize + 1, FORMATS.len());
        for (place, (format, definition)) in FORMATS.iter().enumerate() {
            assert_eq!(*format as usize, place);
            assert_eq!(definition.name.parse::<Format>().unwrap(), *format);
            assert_eq!(format.to_string(), definition.name);
        }
    }
}
