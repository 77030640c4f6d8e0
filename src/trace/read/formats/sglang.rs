//! `SGLang`'s request log: a JSON line when a request came and one when it was finished.
//!
//! The two are joined by their id: the first has the time, the second the lengths. A request whose
//! beginning is not in the file is placed by its end and its latency. Words are never taken from a log.

use std::collections::HashMap;

use super::super::date::DateReader;
use super::super::error::Fault;
use super::super::json::{JsonRow, text};
use super::super::number::TimeUnit;
use super::super::reader::{Definition, ReadRow, Reader};
use super::super::row::Parsed;
use crate::trace::Request;

const LINE: [&str; 4] = ["timestamp", "event", "rid", "out"];
const OUT: [&str; 1] = ["meta_info"];
const META: [&str; 3] = ["prompt_tokens", "completion_tokens", "e2e_latency"];
/// Requests that may be unfinished at a time.
const OPEN_LIMIT: usize = 1 << 20;

pub(super) const FORMAT: Definition = Definition {
    name: "sglang",
    signs: &[&["event", "rid"]],
    unit: None,
    has_blocks: false,
    ..Definition::new(Reader::Rows(|_| Ok(Box::new(SgLang::default()))))
};

/// Reads rows of one file.
#[derive(Default)]
struct SgLang {
    /// Arrival of each request that is not finished yet.
    open: HashMap<String, i64>,
    dates: DateReader,
}

impl ReadRow for SgLang {
    fn needs_earlier_rows(&self) -> bool {
        true
    }

    fn remarks(&self) -> Vec<String> {
        let open = self.open.len();
        let remark = format!("{open} requests are not finished in the file and are left out");
        (open > 0).then_some(remark).into_iter().collect()
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Parsed>, Fault> {
        let row = JsonRow::read(line, &LINE, &mut Vec::new())?;
        let kind = row.word(1)?.ok_or_else(|| row.missing(1))?;
        let stamp = text(row.slots[0].ok_or_else(|| row.missing(0))?, LINE[0])?;
        let at_ns =
            self.dates.read_alike(stamp.as_bytes()).map_err(|what| Fault::at(LINE[0], what))?;
        let id = row.word(2)?.ok_or_else(|| row.missing(2))?.into_owned();
        match &*kind {
            "request.received" => {
                if self.open.len() >= OPEN_LIMIT {
                    let what = format!("more than {OPEN_LIMIT} requests are not finished");
                    return Err(Fault::at(LINE[2], what + "; cut the file into parts"));
                }
                self.open.insert(id, at_ns);
                Ok(None)
            }
            "request.finished" => {
                let out = JsonRow::nested(row.slots[3], LINE[3], &OUT)?;
                let meta = JsonRow::nested(out.slots[0], OUT[0], &META)?;
                let came = self.open.remove(&id);
                let latency_ns = meta.time_if_any(2, TimeUnit::S)?.unwrap_or(0);
                let request = Request {
                    input_tok: meta.tokens(0)?,
                    output_tok: Some(meta.tokens(1)?),
                    ..Request::default()
                };
                Ok(Some(Parsed {
                    at_ns: came.unwrap_or(at_ns.saturating_sub(latency_ns)),
                    request,
                }))
            }
            _ => Ok(None),
        }
    }
}
