//! The formats that are known, and what sets them apart beyond their rows.
//!
//! One table: name, unit of bare times, and how rows hang together. Which content means which format
//! is [`super::sniff`]'s; what a row says is each reader's own.

use std::fmt;
use std::str::FromStr;

use super::error::TraceError;
use super::{TimeUnit, unknown_word};

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

/// Names as `--format` takes them.
const NAMES: [(&str, Format); 15] = [
    ("native", Format::Native),
    ("azure", Format::Azure),
    ("burstgpt", Format::BurstGpt),
    ("mooncake", Format::Mooncake),
    ("timed-trace", Format::TimedTrace),
    ("bailian", Format::Bailian),
    ("ragpulse", Format::RagPulse),
    ("weka", Format::Weka),
    ("tracelab", Format::TraceLab),
    ("tracelab-replay", Format::TraceLabReplay),
    ("lengths", Format::Lengths),
    ("otel", Format::Otel),
    ("litellm", Format::LiteLlm),
    ("dynamo", Format::Dynamo),
    ("sglang", Format::SgLang),
];
const WORDS: &str = "native, azure, burstgpt, mooncake, timed-trace, bailian, ragpulse, weka, tracelab, \
                     tracelab-replay, lengths, otel, litellm, dynamo, sglang";

impl Format {
    /// The unit of times that are bare numbers; `None` where rows hold dates.
    pub(super) fn unit(self) -> Option<TimeUnit> {
        match self {
            Self::Azure | Self::TraceLab | Self::Otel | Self::LiteLlm | Self::SgLang => None,
            Self::Mooncake | Self::TraceLabReplay | Self::Dynamo => Some(TimeUnit::Ms),
            _ => Some(TimeUnit::S),
        }
    }

    /// Whether rows are spread over the file, which is then read as a whole.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Weka | Self::Otel)
    }

    /// Whether times count from the trace's own zero; all else counts from its earliest row.
    pub(super) fn has_own_zero(self) -> bool {
        matches!(self, Self::Native | Self::Weka | Self::TraceLabReplay)
    }

    /// Whether rows name sessions, but not the turn.
    pub(super) fn wants_turns(self) -> bool {
        matches!(
            self,
            Self::BurstGpt
                | Self::Mooncake
                | Self::TimedTrace
                | Self::RagPulse
                | Self::LiteLlm
                | Self::Dynamo
                | Self::Otel
                | Self::Weka
        )
    }

    /// Whether rows can hold ids of prefix blocks.
    pub(super) fn has_blocks(self) -> bool {
        !matches!(
            self,
            Self::Azure
                | Self::BurstGpt
                | Self::Lengths
                | Self::Otel
                | Self::LiteLlm
                | Self::SgLang
        )
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(word: &str) -> Result<Self, TraceError> {
        let known = NAMES.iter().find(|(name, _)| *name == word);
        known.map(|(_, format)| *format).ok_or_else(|| unknown_word("trace format", word, WORDS))
    }
}

crate::units::serialize_as_text!(Format);

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, format)| format == self).map_or("", |(name, _)| *name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_listed() {
        assert_eq!(NAMES.map(|(name, _)| name).join(", "), WORDS);
        for (name, format) in NAMES {
            assert_eq!(
                (name.parse::<Format>().unwrap(), format.to_string()),
                (format, name.into())
            );
        }
        let message = "burst-gpt".parse::<Format>().unwrap_err().to_string();
        assert!(message.contains("`burst-gpt`") && message.contains("burstgpt"), "{message}");
    }
}
