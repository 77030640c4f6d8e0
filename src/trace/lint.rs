//! All that is wrong with a trace, line by line, and what spans lines: turns, times, sessions.
//!
//! Reading stops at the first bad row; this goes on, so that a file can be mended at one go. As many
//! faults are kept as were asked for, and all are counted.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;

use super::read::{Format, Input, ReadOptions, TraceError, walk};
use crate::units::Nanos;

/// Sessions whose turns are checked; beyond it that is left.
const SESSIONS_LIMIT: usize = 16 << 20;

/// What was found in a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The format, told or found.
    pub format: String,
    /// Rows that can be read.
    pub rows: u64,
    /// Faults in all.
    pub fault_count: u64,
    /// The first of them.
    pub faults: Vec<Finding>,
    /// Rows earlier than a row before them; they are sorted before they are sent.
    pub moved_rows: u64,
    /// Line of the first of these.
    pub first_moved_line: Option<u64>,
    /// Rows recorded with output 0.
    pub failed_rows: u64,
    /// Rows that ask for no completion length.
    pub natural_rows: u64,
    /// Rows with a prompt of 0 tokens.
    pub empty_prompts: u64,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The line, where it is known.
    pub line: Option<u64>,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// Last turn of a session, and its line.
struct LastTurn {
    turn: u32,
    line: u64,
}

/// Looks for faults, keeping the first `most` of them.
pub fn lint(input: &Input, options: &ReadOptions, most: usize) -> Result<Findings, TraceError> {
    let mut findings = Findings::default();
    let mut latest: Option<Nanos> = None;
    let mut sessions: HashMap<Arc<str>, LastTurn> = HashMap::new();
    let format: Format = walk(input, options, &mut |walked| {
        let (line, row) = match walked {
            Ok(found) => found,
            Err(error) => {
                findings.fault(error.line(), error.to_string(), most);
                return ControlFlow::Continue(());
            }
        };
        findings.rows += 1;
        findings.failed_rows += u64::from(row.output_tok == Some(0));
        findings.natural_rows += u64::from(row.output_tok.is_none());
        findings.empty_prompts += u64::from(row.input_tok == 0);
        if latest.is_some_and(|latest| row.at < latest) {
            findings.moved_rows += 1;
            findings.first_moved_line.get_or_insert(line);
        }
        latest = latest.max(Some(row.at));
        let (Some(session), Some(turn)) = (&row.session, row.turn) else {
            return ControlFlow::Continue(());
        };
        let room = sessions.len() < SESSIONS_LIMIT;
        match sessions.get_mut(session) {
            Some(last) if turn <= last.turn => {
                let problem = format!(
                    "turn {turn} of session `{session:.60}` comes after turn {} (line {}); number turns in \
                     the order of the file",
                    last.turn, last.line
                );
                findings.fault(Some(line), problem, most);
            }
            Some(last) => *last = LastTurn { turn, line },
            None if room => {
                sessions.insert(Arc::clone(session), LastTurn { turn, line });
            }
            None => {}
        }
        ControlFlow::Continue(())
    })?;
    findings.format = format.to_string();
    Ok(findings)
}

impl Findings {
    fn fault(&mut self, line: Option<u64>, problem: String, most: usize) {
        self.fault_count += 1;
        if self.faults.len() < most {
            self.faults.push(Finding { line, problem });
        }
    }
}
