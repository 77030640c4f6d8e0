//! What is left of a text once measured figures are taken out of it.

use std::fmt::Write as _;

use serde_json::Value;

/// Columns of `requests.csv` that a run in real time decides by itself.
const MEASURED: [&str; 21] = [
    "scheduled_s",
    "lag_ms",
    "connect_ms",
    "conn_reused",
    "headers_ms",
    "first_event_ms",
    "ttft_ms",
    "ttft_send_ms",
    "ttfo_ms",
    "tpot_ms",
    "gap_p50_ms",
    "gap_p99_ms",
    "gap_max_ms",
    "stall_ms",
    "stalls",
    "e2e_ms",
    "e2e_send_ms",
    "close_ms",
    "rx_delay_ms",
    "request_id",
    "attempts",
];

/// The rows in order, without what was measured.
pub(super) fn plain_cells(text: &str) -> String {
    let mut file = csv::Reader::from_reader(text.as_bytes());
    let header = file.headers().expect("a header").clone();
    let mut rows: Vec<csv::StringRecord> = file.records().collect::<Result<_, _>>().expect("rows");
    rows.sort_by_key(|row| row[0].parse::<u64>().expect("a row"));
    let mut plain = header.iter().collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let cells = header.iter().zip(&row);
        let kept = cells.map(|(name, cell)| match MEASURED.contains(&name) {
            // A connection that is there already has none.
            true if cell.is_empty() && name != "connect_ms" => "",
            true => "#",
            false => cell,
        });
        plain.push_str(&(kept.collect::<Vec<_>>().join(",") + "\n"));
    }
    plain
}

/// Metric, scope, unit and basis of every line.
pub(super) fn figures(text: &str) -> String {
    let kept = |line: &str| line.split(',').take(4).collect::<Vec<_>>().join(",") + "\n";
    header(text) + "\n" + &text.lines().skip(1).map(kept).collect::<String>()
}

pub(super) fn header(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Numbers become `#`, columns one space; warnings and what depends on the machine's load are left out.
pub(super) fn masked(text: &str) -> String {
    let mut plain = String::new();
    let is_json = text.contains("\n--- stdout\n{") || text.contains("--- stdout\n{");
    for line in text.lines() {
        let varies = ["warning:", "client  ", "note: the server's own count", "– too few"];
        if varies.iter().any(|start| line.starts_with(start)) || (is_json && line.starts_with(' '))
        {
            continue;
        }
        let words: Vec<String> = line.split_whitespace().map(digits).collect();
        // Spans are told in the unit that suits them.
        let _ = writeln!(plain, "{}", words.join(" ").replace("# ms", "# s"));
    }
    plain
}

/// Each run of digits, dots and commas between digits, as one `#`; so is a figure that is not there.
fn digits(word: &str) -> String {
    let mut plain = String::new();
    for c in word.chars() {
        let is_number =
            c.is_ascii_digit() || c == '–' || (matches!(c, '.' | ',') && plain.ends_with('#'));
        match (is_number, plain.ends_with('#')) {
            (true, true) => {}
            (true, false) => plain.push('#'),
            (false, _) => plain.push(c),
        }
    }
    plain
}

/// Names and kinds of everything in a JSON text; words stay where they hold no figure.
pub(super) fn shape(text: &str) -> String {
    let mut plain = String::new();
    describe(&serde_json::from_str(text).expect("JSON"), "", &mut plain);
    plain
}

fn describe(value: &Value, path: &str, plain: &mut String) {
    // What a machine tells of itself, and what a loaded one is warned of.
    let varies = [
        "/notices",
        "/machine",
        "/verdicts/client/figures",
        "/verdicts/client/warnings",
        "/verdicts/client/limited",
        "/verdicts/client/verdict",
        "/verdicts/server",
    ];
    if varies.contains(&path) {
        let _ = writeln!(plain, "{path} …");
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                describe(field, &format!("{path}/{name}"), plain);
            }
        }
        Value::Array(items) => {
            for item in items {
                describe(item, &format!("{path}[]"), plain);
            }
        }
        Value::String(text) => {
            let _ = writeln!(plain, "{path} {:?}", digits(text));
        }
        Value::Number(_) | Value::Null => {
            let _ = writeln!(plain, "{path} #");
        }
        Value::Bool(is) => {
            let _ = writeln!(plain, "{path} {is}");
        }
    }
}
