//! `docs/columns.md` against the definitions that the files are written by.

use std::fmt::Write as _;
use std::path::Path;

use underfire::cli::watch_columns;
use underfire::columns::{Column, CsvRow, Word};
use underfire::record::Row;
use underfire::report::{ChunkRow, IntervalRow, SERVER_COLUMNS, SUMMARY_COLUMNS, TIMELINE_COLUMNS};
use underfire::schedule::PLAN_COLUMNS;
use underfire::sim::truth::TruthRow;

const HEAD: &str = "\
# Columns

Every CSV file that underfire writes, column by column. Times are exact: milliseconds carry six decimals, seconds
nine. **An empty cell is a value that does not apply**: never 0, NaN or infinity. Columns may be added at the end;
find them by name.

This page is made from the definitions in the source: `UNDERFIRE_DOCS=write cargo test --test it columns` writes it anew.
";

/// A section of the page.
fn section<F>(page: &mut String, file: &str, what: &str, columns: &[Column<F>]) {
    write!(page, "\n## {file}\n\n{what}\n\n").expect("memory takes text");
    page.push_str("| column | unit | meaning | empty where |\n|---|---|---|---|\n");
    for column in columns {
        let (meaning, empty) = (column.meaning(), column.empty().trim_end_matches('.'));
        assert!(meaning.ends_with('.'), "{file}: `{}` has no sentence: {meaning}", column.name);
        let meaning = meaning.trim_end_matches('.');
        writeln!(page, "| `{}` | {} | {meaning} | {empty} |", column.name, column.unit.word())
            .expect("memory takes text");
    }
}

#[test]
fn the_page_of_columns_is_what_the_definitions_say() {
    let mut page = HEAD.to_owned();
    let rows = "A row per request that fell due, in order of ending.";
    section(&mut page, "requests.csv", rows, Row::COLUMNS);
    let lines = "A line per metric and scope, its figures in its `unit`. The README says what each metric is.";
    section(&mut page, "summary.csv", lines, SUMMARY_COLUMNS);
    section(&mut page, "timeline.csv", "A line per second of the run.", TIMELINE_COLUMNS);
    let pieces = "What rows do not tell, per 10 s, class and phase. Lines of the same key add up.";
    section(&mut page, "intervals.csv", pieces, IntervalRow::COLUMNS);
    section(&mut page, "chunks.csv", "A line per token event (`--chunks`).", ChunkRow::COLUMNS);
    let figures = "What the servers' metrics pages said while the run went on, one figure a line.";
    section(&mut page, "server.csv", figures, SERVER_COLUMNS);
    let windows = "A line per window of `underfire watch`. Where nothing could be measured, it has no figures.";
    section(&mut page, "watch.csv", windows, &watch_columns());
    section(&mut page, "plan (`--plan FILE`)", "A line per row of the plan.", PLAN_COLUMNS);
    let truth = "The simulated server's own log (`--truth FILE`): a line per request, on the machine's \
                 monotonic clock.";
    section(&mut page, "truth.csv", truth, TruthRow::COLUMNS);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/columns.md");
    if std::env::var("UNDERFIRE_DOCS").is_ok_and(|wish| wish == "write") {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &page).expect("space");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/columns.md is not what the definitions give\nhint: write it anew with \
         UNDERFIRE_DOCS=write cargo test --test it columns"
    );
}
