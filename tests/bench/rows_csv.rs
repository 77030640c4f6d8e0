//! Rows of `requests.csv`, from a record to bytes in memory. Limit: the same number of decimals written
//! by `write!` into a buffer. Budget: 5 times that, about 5 µs, half a percent of a core at 1,000
//! requests a second.
//!
//! `cargo bench --bench rows_csv`

mod ratio;

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;

use ratio::{Budgets, cpu_of, in_turn};
use underfire::record::csv::RowWriter;
use underfire::record::{Kind, Outcome, Row, StreamRecord};
use underfire::units::Nanos;

const ROWS: u64 = 20_000;
/// Cells of a usual row that hold a time.
const TIMES: u64 = 16;

fn main() -> ExitCode {
    let rows: Vec<Row> = (0..64).map(|row| Row::of(&record(row), Nanos::ZERO)).collect();
    let figures = in_turn(
        || {
            let mut writer = RowWriter::new(Vec::with_capacity(8 << 20), false).expect("memory");
            cpu_of(|| {
                for row in (0..ROWS / 64).flat_map(|_| &rows) {
                    writer.write(black_box(row)).expect("memory");
                }
                writer.flush().expect("memory");
            }) / ROWS as f64
        },
        || {
            let mut out = Vec::with_capacity(8 << 20);
            cpu_of(|| {
                for row in 0..ROWS {
                    for cell in 0..TIMES {
                        let ns = black_box(row * 1_000_003 + cell);
                        write!(out, "{}.{:06},", ns / 1_000_000, ns % 1_000_000).expect("memory");
                    }
                    out.extend_from_slice(b",,,measured,0,,true,usage,stop,ok,200,chatcmpl-0\n");
                }
                black_box(&out);
            }) / ROWS as f64
        },
    );
    let budgets = Budgets::default();
    budgets.tell("a row", "ns", figures, 5.0);
    budgets.end()
}

/// An answer of 200 tokens.
fn record(row: u64) -> StreamRecord {
    let due = Nanos::from_millis(row * 10);
    let mut record = StreamRecord {
        row,
        due,
        sent: Some(due + Nanos(40_123)),
        http_status: Some(200),
        outcome: Outcome::Ok,
        request_id: Some(format!("chatcmpl-7c52c7a4e1f94a2c{row:04}")),
        ..StreamRecord::default()
    };
    for token in 0..200 {
        record.tokens.push(due + Nanos(50_000_000 + token * 20_017_013), Kind::Content, None);
    }
    record.close = record.tokens.last();
    record
}
