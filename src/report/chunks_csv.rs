//! `chunks.csv`: one line per token event, for whoever asks for it.
//!
//! Lines of a stream stand together, in order, when it has ended. Deliberately absent: the text of anything.

use super::line_file::{LineFile, RecorderError};
use crate::columns::{CsvRow, csv_row};
use crate::record::{Kind, Row, StreamRecord};
use crate::units::Nanos;

csv_row! {
    /// A line: one token event.
    #[derive(Debug)]
    pub struct ChunkRow {
        /// Its request, by the `row` of `requests.csv`.
        pub row: u64 => "row",
        /// Arrival, from the start of the run.
        pub t: Nanos => "t_ms" in Ms,
        /// How long it lay in the kernel before it was read. Empty: the kernel does not tell.
        pub rx_delay: Option<Nanos> => "rx_delay_ms" in Ms,
        /// Tokens in it. Empty: the server does not let them be known.
        pub tokens: Option<u32> => "tokens" in Tok,
        /// What it carried: `content`, `reasoning` or `tool`. Empty: more events came than are told apart.
        pub kind: Option<Kind> => "kind",
    }
}

/// Writes the token events of a stream.
pub(super) fn write_chunks(
    file: &mut LineFile,
    row: &Row,
    record: &StreamRecord,
) -> Result<(), RecorderError> {
    let tokens = &record.tokens;
    let one_each = row.has_token_per_event(record);
    let mut steps = tokens.running_steps();
    let mut kinds = tokens.kinds();
    let mut delays = tokens.rx_delays();
    for t in tokens.arrivals() {
        let chunk = ChunkRow {
            row: row.row,
            t,
            rx_delay: delays.next().flatten(),
            tokens: match &mut steps {
                Some(steps) => steps.next(),
                None => one_each.then_some(1),
            },
            kind: kinds.next(),
        };
        file.write_row(ChunkRow::COLUMNS, &chunk)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, TokenTimes, Usage};

    fn lines(usage: Option<u64>, running: &[Option<u64>]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chunks.csv");
        let mut file = LineFile::create(path.clone(), ChunkRow::COLUMNS).expect("space");
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
        write_chunks(&mut file, &Row::of(&record, Nanos::ZERO), &record).expect("space");
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
