//! `chunks.csv`: one line per token event, for whoever asks for it.
//!
//! `t_ms` is milliseconds from the run's `t0` to the event's arrival, with six decimals; `tokens` is
//! empty where the server does not let them be known. Lines of a stream stand together, in order, when
//! it has ended. Deliberately absent: the text of anything.

use std::path::PathBuf;

use super::line_file::LineFile;
use super::recorder_error::RecorderError;
use crate::record::{Kind, Row, StreamRecord, TokenSource};
use crate::units::{NS_PER_MS, Nanos};

/// The columns, in order.
pub const CHUNKS_HEADER: [&str; 5] = ["row", "t_ms", "rx_delay_ms", "tokens", "kind"];

/// The file.
#[derive(Debug)]
pub(super) struct ChunksFile(LineFile);

impl ChunksFile {
    pub(super) fn create(path: PathBuf) -> Result<Self, RecorderError> {
        LineFile::create(path, &CHUNKS_HEADER).map(Self)
    }

    /// Writes the token events of a stream.
    pub(super) fn write(&mut self, row: &Row, record: &StreamRecord) -> Result<(), RecorderError> {
        let tokens = &record.tokens;
        let number = row.row.to_string();
        // One token each where the server's own count is the number of events.
        let counted = row.token_source.is_some_and(|source| source != TokenSource::Events);
        let one_each = counted && row.output_tok == Some(tokens.count());
        let mut steps = tokens.running_steps();
        let mut kinds = tokens.kinds();
        let mut delays = tokens.rx_delays();
        let ms = |ns: Nanos| format!("{}.{:06}", ns.0 / NS_PER_MS, ns.0 % NS_PER_MS);
        for at in tokens.arrivals() {
            let step = match &mut steps {
                Some(steps) => steps.next(),
                None => one_each.then_some(1),
            };
            let t_ms = ms(at);
            let delay = delays.next().flatten().map_or_else(String::new, ms);
            let step = step.map_or_else(String::new, |step| step.to_string());
            let kind = kinds.next().map_or("", kind_word);
            self.0.write(&[number.as_str(), &t_ms, &delay, &step, kind])?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), RecorderError> {
        self.0.flush()
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Content => "content",
        Kind::Reasoning => "reasoning",
        Kind::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, TokenTimes, Usage};
    use crate::units::Nanos;

    fn lines(usage: Option<u64>, running: &[Option<u64>]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chunks.csv");
        let mut file = ChunksFile::create(path.clone()).expect("space");
        let mut record = StreamRecord {
            row: 7,
            http_status: Some(200),
            outcome: Outcome::Ok,
            tokens: TokenTimes::keeping_kinds(),
            usage: usage.map(|n| Usage { output_tok: Some(n), ..Usage::default() }),
            ..StreamRecord::default()
        };
        let kinds = [Kind::Reasoning, Kind::Content, Kind::Tool];
        for ((i, kind), running) in kinds.into_iter().enumerate().zip(running) {
            record.tokens.push(Nanos(1_500_000 * (i as u64 + 1)), kind, *running);
        }
        file.write(&Row::of(&record, Nanos::ZERO), &record).expect("space");
        file.flush().expect("space");
        let text = std::fs::read_to_string(path).expect("the file");
        text.lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn tokens_of_an_event_are_told_where_they_are_known() {
        assert_eq!(
            lines(Some(3), &[None; 3]),
            ["7,1.500000,,1,reasoning", "7,3.000000,,1,content", "7,4.500000,,1,tool"]
        );
        assert_eq!(lines(Some(9), &[None; 3])[0], "7,1.500000,,,reasoning");
        assert_eq!(lines(None, &[None; 3])[0], "7,1.500000,,,reasoning");
        assert_eq!(lines(Some(9), &[Some(4), Some(5), Some(9)])[2], "7,4.500000,,4,tool");
    }
}
