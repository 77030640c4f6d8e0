//! Real prompts from a file, one for each row in turn.
//!
//! JSON Lines, or one JSON array, of objects in any of these forms, told apart one by one by their keys:
//! `prompt` (text), `messages` (a chat), `conversations` (`ShareGPT`: turns with `from` and `value`, asked
//! up to the last human turn), or `body` with one of the first two (`OpenAI` batch input, whose other keys
//! go into the request, but for what the run itself decides). Row `r` gets entry `r mod n`, so that a
//! row is the same whatever else is sent. Deliberately absent: any count of tokens, and streaming: a
//! file is held in memory, up to a limit.

mod entry;

use std::io;
use std::path::Path;

use serde_json::value::RawValue;

use self::entry::{Fault, entry};
use crate::random::Random;
use crate::trace::Content;
use crate::trace::read::read_whole;

/// The largest file of prompts.
const LIMIT_BYTES: u64 = 2 << 30;

/// A file of prompts that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It cannot be read.
    #[error("read prompts {file}: {source}")]
    Read {
        /// As the user wrote it.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is too large.
    #[error("read prompts {file}: the file is larger than {} GiB; cut it to the prompts that are needed", LIMIT_BYTES >> 30)]
    TooLarge {
        /// As the user wrote it.
        file: String,
    },
    /// It has no prompt.
    #[error("read prompts {file}: there is no prompt in it")]
    Empty {
        /// As the user wrote it.
        file: String,
    },
    /// An entry that is no prompt.
    #[error("read prompts {file}, line {line}{field}: {problem}")]
    Entry {
        /// As the user wrote it.
        file: String,
        /// 1-based line.
        line: usize,
        /// ``, key `x` `` or nothing.
        field: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Chats for an API that takes none.
    #[error(
        "read prompts {file}, line {line}, key `messages`: messages cannot be sent to the completions \
         API; use --api chat, or give `prompt`"
    )]
    MessagesToCompletions {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the first one.
        line: usize,
    },
}

/// Prompts for rows.
#[derive(Debug)]
pub struct Corpus {
    file: String,
    entries: Vec<Content>,
    /// Entry of each place, where they are shuffled.
    order: Option<Vec<u32>>,
    left_out: usize,
    first_messages_line: Option<usize>,
}

impl Corpus {
    /// The same text for every row.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let content = Content { prompt: Some(text.to_owned()), ..Content::default() };
        Self {
            file: String::new(),
            entries: vec![content],
            order: None,
            left_out: 0,
            first_messages_line: None,
        }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, CorpusError> {
        let file = path.display().to_string();
        let bytes = read_whole(path, LIMIT_BYTES)
            .map_err(|source| CorpusError::Read { file: file.clone(), source })?
            .ok_or_else(|| CorpusError::TooLarge { file: file.clone() })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let packed =
                matches!(error.as_bytes(), [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let remedy = if packed { "unpack it first" } else { "save the file as UTF-8" };
            let problem = format!("it is not UTF-8; {remedy}");
            CorpusError::Entry { file: file.clone(), line, field: String::new(), problem }
        })?;
        Self::parse(&text, &file)
    }

    /// Parses a file's text; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, CorpusError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut corpus = Self { file: file.to_owned(), entries: Vec::new(), ..Self::of_text("") };
        if text.trim_start().starts_with('[') {
            let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
            let array: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
                corpus.fault(error.line(), Fault::whole(format!("is no JSON array: {error}")))
            })?;
            for element in array {
                // The element is a part of the text, so its address tells its place.
                let offset = element.get().as_ptr() as usize - text.as_ptr() as usize;
                corpus.add(element.get(), || line_at(offset))?;
            }
        } else {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                corpus.add(line, || at + 1)?;
            }
        }
        if corpus.entries.is_empty() {
            return Err(CorpusError::Empty { file: file.to_owned() });
        }
        Ok(corpus)
    }

    fn fault(&self, line: usize, fault: Fault) -> CorpusError {
        let field = fault.key.map(|key| format!(", key `{key}`")).unwrap_or_default();
        CorpusError::Entry { file: self.file.clone(), line, field, problem: fault.problem }
    }

    fn add(&mut self, json: &str, line: impl Fn() -> usize) -> Result<(), CorpusError> {
        match entry(json).map_err(|fault| self.fault(line(), fault))? {
            Some(content) => {
                if content.messages.is_some() && self.first_messages_line.is_none() {
                    self.first_messages_line = Some(line());
                }
                self.entries.push(content);
            }
            None => self.left_out += 1,
        }
        Ok(())
    }

    /// The same prompts in an order drawn from `seed`.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        let mut random = Random::seeded(seed);
        for last in (1..order.len()).rev() {
            // The bias of the remainder is below 2^-32.
            let pick = random.next_u64() % (last as u64 + 1);
            order.swap(last, usize::try_from(pick).unwrap_or(last));
        }
        self.order = Some(order);
        self
    }

    /// Refuses chats where only plain prompts can be sent.
    pub fn without_messages(self) -> Result<Self, CorpusError> {
        match self.first_messages_line {
            Some(line) => Err(CorpusError::MessagesToCompletions { file: self.file, line }),
            None => Ok(self),
        }
    }

    /// How many prompts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Entries that ask nothing: conversations without a human turn.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What row `row` says.
    #[must_use]
    pub fn of_row(&self, row: u64) -> &Content {
        let place = usize::try_from(row % self.entries.len() as u64).unwrap_or(0);
        let at = self.order.as_ref().map_or(place, |order| order[place] as usize);
        &self.entries[at]
    }
}

#[cfg(test)]
mod tests;
