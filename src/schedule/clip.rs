//! Rows that ask for more than they may: clipped to a length of their own, and held to what a server takes in all,
//! which is found before anything is sent, or cut to fit.
//!
//! The prompt is cut first, since the length of an answer decides how long it loads the server; only
//! an answer that leaves no room for any prompt is cut too. Deliberately absent: what a chat template
//! adds to a prompt, which only the server knows.

use crate::trace::Request;

/// The most that a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLength {
    /// Prompt and completion together, in tokens; at least 2.
    pub tok: u64,
    /// Cut rows to fit.
    pub clip: bool,
}

/// How a row stands to a server's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthCheck {
    /// As it is.
    Fits,
    /// After cutting.
    Clipped,
    /// It does not.
    TooLong,
}

impl ServerLength {
    /// Holds a row to the length. A prompt in the trace's own words cannot be cut.
    pub(super) fn apply(self, request: &mut Request) -> LengthCheck {
        if total_tok(request) <= self.tok {
            return LengthCheck::Fits;
        }
        if !self.clip {
            return LengthCheck::TooLong;
        }
        let most = |tok: u64| u32::try_from(tok).unwrap_or(u32::MAX);
        let most_output_tok = most(self.tok.saturating_sub(1)).max(1);
        let output_tok = request.output_tok.map(|tok| tok.min(most_output_tok));
        let room_tok = self.tok.saturating_sub(least_tok(output_tok)).max(1);
        clip_input(request, Some(most(room_tok)));
        request.output_tok = output_tok;
        if total_tok(request) <= self.tok { LengthCheck::Clipped } else { LengthCheck::TooLong }
    }
}

/// Prompt and completion together.
pub(super) fn total_tok(request: &Request) -> u64 {
    u64::from(request.input_tok) + least_tok(request.output_tok)
}

/// The room that an answer needs; one that ends by itself has at least a token.
fn least_tok(output_tok: Option<u32>) -> u64 {
    u64::from(output_tok.unwrap_or(1))
}

/// Clips the completion. One that ends by itself is not to be longer either, so it is asked for with the
/// limit.
pub(super) fn clip_output(request: &mut Request, max_tok: Option<u32>) -> bool {
    let Some(max_tok) = max_tok.filter(|&max| request.output_tok.is_none_or(|tok| tok > max))
    else {
        return false;
    };
    request.output_tok = Some(max_tok);
    true
}

/// Clips the prompt, and the prefix with it. A prompt that the trace gives in words is sent whole, so
/// its length stands.
pub(super) fn clip_input(request: &mut Request, max_tok: Option<u32>) -> bool {
    let Some(max_tok) = max_tok.filter(|&max_tok| request.input_tok > max_tok) else {
        return false;
    };
    if request.has_literal_prompt() {
        return false;
    }
    request.input_tok = max_tok;
    if let Some(prefix) = &mut request.prefix {
        let blocks = max_tok.div_ceil(prefix.block_tok.max(1));
        let kept = usize::try_from(blocks).unwrap_or(usize::MAX).min(prefix.blocks.len());
        prefix.blocks = prefix.blocks[..kept].into();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Content;

    #[test]
    fn the_prompt_gives_way_and_then_the_answer() {
        let check = |input_tok: u32, output_tok: u32, fit: LengthCheck, expect: (u32, u32)| {
            let output_tok = Some(output_tok);
            let mut request = Request { input_tok, output_tok, ..Request::default() };
            assert_eq!(ServerLength { tok: 100, clip: true }.apply(&mut request), fit);
            assert_eq!((request.input_tok, request.output_tok), (expect.0, Some(expect.1)));
            let mut request = Request { input_tok, output_tok, ..Request::default() };
            let fit = if fit == LengthCheck::Fits { fit } else { LengthCheck::TooLong };
            assert_eq!(ServerLength { tok: 100, clip: false }.apply(&mut request), fit);
            assert_eq!((request.input_tok, request.output_tok), (input_tok, output_tok));
        };
        check(60, 40, LengthCheck::Fits, (60, 40));
        check(61, 40, LengthCheck::Clipped, (60, 40));
        check(5_000, 99, LengthCheck::Clipped, (1, 99));
        check(5, 5_000, LengthCheck::Clipped, (1, 99));
        check(u32::MAX, u32::MAX, LengthCheck::Clipped, (1, 99));
    }

    #[test]
    fn an_answer_that_ends_by_itself_needs_room_for_a_token() {
        let mut request = Request { input_tok: 99, ..Request::default() };
        assert_eq!(ServerLength { tok: 100, clip: false }.apply(&mut request), LengthCheck::Fits);
        let mut request = Request { input_tok: 100, ..Request::default() };
        assert_eq!(
            ServerLength { tok: 100, clip: false }.apply(&mut request),
            LengthCheck::TooLong
        );
        assert_eq!(ServerLength { tok: 100, clip: true }.apply(&mut request), LengthCheck::Clipped);
        assert_eq!((request.input_tok, request.output_tok), (99, None));
    }

    #[test]
    fn words_of_the_trace_stand() {
        let content = Content { prompt: Some("as it is".into()), ..Content::default() };
        let content = Some(Box::new(content));
        let mut request =
            Request { input_tok: 500, output_tok: Some(10), content, ..Request::default() };
        assert_eq!(ServerLength { tok: 100, clip: true }.apply(&mut request), LengthCheck::TooLong);
        assert_eq!(request.input_tok, 500);
    }
}
