//! The words of an answer, kept only on demand, to see whether they are garbage.
//!
//! Bounded: a stream that never ends must not fill memory. Deliberately absent: the file.

/// Bytes kept of each kind of text.
const LIMIT_BYTES: usize = 1 << 20;

/// What an answer said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedText {
    /// Content, text and refusals.
    pub text: String,
    /// Reasoning.
    pub reasoning: String,
    /// Names and arguments of tool calls, one a line.
    pub tool: String,
    /// More came than is kept.
    pub is_cut: bool,
}

impl SavedText {
    /// Cuts what has grown beyond the limit.
    pub fn clip(&mut self) {
        for text in [&mut self.text, &mut self.reasoning, &mut self.tool] {
            if text.len() > LIMIT_BYTES {
                let end = (0..=LIMIT_BYTES).rev().find(|at| text.is_char_boundary(*at));
                text.truncate(end.unwrap_or(0));
                self.is_cut = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_end_is_cut_between_characters() {
        let mut saved = SavedText { text: "é".repeat(LIMIT_BYTES), ..SavedText::default() };
        saved.text.insert(0, 'a');
        saved.clip();
        assert_eq!((saved.text.len(), saved.is_cut), (LIMIT_BYTES - 1, true));
    }
}
