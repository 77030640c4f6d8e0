//! A run's own count of tokens against the servers' count of the same tokens.
//!
//! Two comparisons: the rate over the measured window, where the counter moves with the tokens, and the
//! totals from the reading before the start to the one after the end. The difference that is to be expected
//! is worked out beforehand (a step of all running requests at either end, the time that readings took,
//! streams that were cut); what goes beyond it has a cause, and the requests tell which. Pure.

use super::count::Count;
use super::rules::Moves;

/// A counter and its page may round: differences up to this share are none.
const ROUNDING: f64 = 0.001;
/// Tokens that a server may have made of a stream before it saw that it was cut.
const CUT_TOK: f64 = 16.0;

/// What the client counted.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Completion tokens by the second in which they arrived, from the run's start.
    pub tok_by_second: Vec<u64>,
    /// Requests that were sent.
    pub sent: u64,
    /// Of these, answered whole.
    pub ok: u64,
    /// Of these, cut by us while they ran.
    pub cut: u64,
    /// Sent again, beyond the first time.
    pub resent: u64,
}

impl Client {
    fn total_tok(&self) -> f64 {
        self.tok_by_second.iter().sum::<u64>() as f64
    }

    /// Tokens that arrived before `at_s`; within a second as if evenly.
    fn tok_before(&self, at_s: f64) -> f64 {
        let mut tok = 0.0;
        for (second, count) in self.tok_by_second.iter().enumerate() {
            let share = (at_s - second as f64).clamp(0.0, 1.0);
            if share <= 0.0 {
                break;
            }
            tok += *count as f64 * share;
        }
        tok
    }

    /// By how much [`Self::tok_before`] may be off for what it takes to be even.
    fn unevenness_tok(&self, at_s: f64) -> f64 {
        let share = at_s.fract().abs();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the length"
        )]
        let second = at_s.max(0.0) as usize;
        self.tok_by_second.get(second).map_or(0.0, |n| *n as f64 * share.min(1.0 - share))
    }
}

/// Both counts over the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    /// From the run's start.
    pub from_s: f64,
    /// From the run's start.
    pub to_s: f64,
    /// Counted here.
    pub client_tok: f64,
    /// Counted there.
    pub server_tok: f64,
    /// They may differ by so much without any cause.
    pub expected_tok: f64,
}

impl Sides {
    /// Whether they differ by no more than is to be expected.
    #[must_use]
    pub fn agree(&self) -> bool {
        let rounding = ROUNDING * self.client_tok.max(self.server_tok);
        (self.server_tok - self.client_tok).abs() <= self.expected_tok + rounding
    }

    /// The difference as a share of the server's count; `None` without any.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        (self.server_tok > 0.0).then(|| (self.server_tok - self.client_tok).abs() / self.server_tok)
    }
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// The same, within what is to be expected.
    Agree,
    /// A server restarted: its count has a hole.
    Restarted,
    /// The counter leaves out requests that were cut, and some were.
    CutUncounted,
    /// The servers answered so many requests that are not of this run.
    Foreign {
        /// Finished there; unknown where only running ones were seen.
        requests: Option<f64>,
    },
    /// Requests that were sent again were answered more than once.
    Resent,
    /// The same requests, more tokens.
    Hidden,
    /// Fewer requests than were answered.
    Elsewhere,
    /// The same requests, fewer tokens.
    Overcounted,
}

/// One count held against the other.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossCheck {
    /// Over the measured window; `None` where the counter does not move with the tokens, or no two
    /// readings lie inside.
    pub window: Option<Sides>,
    /// From before the start to after the end.
    pub whole: Sides,
    /// Requests answered whole: counted here, and there.
    pub finished: (u64, Option<f64>),
    /// What follows.
    pub finding: Finding,
}

/// Holds the counts against each other; `None` without a reading before the start and one after the end.
/// `window` is in seconds from the run's start.
#[must_use]
pub fn cross_check(
    client: &Client,
    counts: &[Count],
    window: (f64, f64),
    moves: Moves,
) -> Option<CrossCheck> {
    let first = counts.first().filter(|first| first.at_s <= 0.0)?;
    let last = counts.last().filter(|last| last.at_s >= client.tok_by_second.len() as f64 - 1.0)?;
    let cut = client.cut as f64;
    let whole = Sides {
        from_s: first.at_s,
        to_s: last.at_s,
        client_tok: client.total_tok(),
        server_tok: last.output_tok - first.output_tok,
        expected_tok: cut * CUT_TOK,
    };
    let finished = last.finished.zip(first.finished).map(|(last, first)| last - first);
    let window = (moves == Moves::PerStep).then(|| over(client, counts, window)).flatten();
    let mut check =
        CrossCheck { window, whole, finished: (client.ok, finished), finding: Finding::Agree };
    check.finding = finding(&check, client, (first, last), moves);
    Some(check)
}

fn over(client: &Client, counts: &[Count], (from_s, to_s): (f64, f64)) -> Option<Sides> {
    let first = counts.iter().find(|count| count.at_s >= from_s)?;
    let last = counts.iter().rev().find(|count| count.at_s <= to_s)?;
    let span_s = last.at_s - first.at_s;
    if span_s <= 0.0 {
        return None;
    }
    let server_tok = last.output_tok - first.output_tok;
    let steps = first.running? + last.running?;
    let stamps = server_tok / span_s * (first.half_width_s + last.half_width_s);
    let uneven = client.unevenness_tok(first.at_s) + client.unevenness_tok(last.at_s);
    Some(Sides {
        from_s: first.at_s,
        to_s: last.at_s,
        client_tok: client.tok_before(last.at_s) - client.tok_before(first.at_s),
        server_tok,
        expected_tok: steps + stamps + uneven,
    })
}

fn finding(
    check: &CrossCheck,
    client: &Client,
    (first, last): (&Count, &Count),
    moves: Moves,
) -> Finding {
    if last.restarts > first.restarts {
        return Finding::Restarted;
    }
    let whole = &check.whole;
    if whole.agree() && check.window.as_ref().is_none_or(Sides::agree) {
        return Finding::Agree;
    }
    let finished = check.finished.1;
    let (ok, sent) = (client.ok as f64, client.sent as f64);
    if whole.server_tok > whole.client_tok || whole.agree() {
        let busy = |count: &Count| count.running.is_some_and(|running| running >= 1.0);
        let beyond = finished.map(|finished| finished - sent).filter(|beyond| *beyond >= 1.0);
        return match beyond {
            Some(beyond) if beyond <= client.resent as f64 => Finding::Resent,
            Some(_) => Finding::Foreign { requests: finished.map(|finished| finished - ok) },
            // Ours have all ended: who runs before or after them is somebody else's.
            None if busy(first) || busy(last) => Finding::Foreign { requests: None },
            None => Finding::Hidden,
        };
    }
    if moves == Moves::PerFinished && client.cut > 0 {
        return Finding::CutUncounted;
    }
    match finished {
        Some(finished) if finished < ok => Finding::Elsewhere,
        _ => Finding::Overcounted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading at every second from just before the start, of a server that makes 100 tok/s for 10 s and
    /// finishes ten requests.
    fn counts() -> Vec<Count> {
        let count = |second: i32| {
            let at_s = f64::from(second) + 0.002;
            Count {
                at_s: if second < 0 { -0.1 } else { at_s },
                half_width_s: 0.001,
                output_tok: (100.0 * at_s).clamp(0.0, 1000.0),
                finished: Some(f64::from(second.clamp(0, 10))),
                running: Some(if (0..10).contains(&second) { 2.0 } else { 0.0 }),
                ..Count::default()
            }
        };
        (-1..12).map(count).collect()
    }

    fn client() -> Client {
        Client { tok_by_second: vec![100; 10], sent: 10, ok: 10, ..Client::default() }
    }

    fn check(client: &Client, counts: &[Count]) -> CrossCheck {
        cross_check(client, counts, (0.0, 9.0), Moves::PerStep).expect("readings at both ends")
    }

    #[test]
    fn the_same_tokens_agree_over_the_window_and_in_all() {
        let check = check(&client(), &counts());
        assert_eq!(check.finding, Finding::Agree);
        let window = check.window.expect("readings inside");
        assert!((window.client_tok - window.server_tok).abs() < 0.5, "{window:?}");
        assert!(window.expected_tok < 5.0, "two steps and little more: {window:?}");
        assert_eq!((check.whole.client_tok, check.whole.server_tok), (1000.0, 1000.0));
        assert_eq!(check.finished, (10, Some(10.0)));
    }

    #[test]
    fn what_differs_has_a_cause() {
        let with = |change: &dyn Fn(usize, &mut Count)| {
            let mut all = counts();
            all.iter_mut().enumerate().for_each(|(at, count)| change(at, count));
            all
        };
        let more = with(&|_, count| count.output_tok *= 1.2);
        assert_eq!(check(&client(), &more).finding, Finding::Hidden);
        let others = with(&|_, count| {
            count.output_tok *= 1.2;
            count.finished = count.finished.map(|n| n * 1.2);
        });
        assert_eq!(check(&client(), &others).finding, Finding::Foreign { requests: Some(2.0) });
        let again = Client { resent: 2, ..client() };
        assert_eq!(check(&again, &others).finding, Finding::Resent);
        let still = with(&|at, count| {
            count.output_tok *= 1.2;
            count.running = Some(if at == 12 { 1.0 } else { 0.0 });
        });
        assert_eq!(check(&client(), &still).finding, Finding::Foreign { requests: None });
        let half = with(&|_, count| {
            count.output_tok /= 2.0;
            count.finished = count.finished.map(|n| n / 2.0);
        });
        assert_eq!(check(&client(), &half).finding, Finding::Elsewhere);
        let fewer = with(&|_, count| count.output_tok *= 0.9);
        assert_eq!(check(&client(), &fewer).finding, Finding::Overcounted);
        let fell = with(&|at, count| count.restarts = u32::from(at > 5));
        assert_eq!(check(&client(), &fell).finding, Finding::Restarted);
    }

    #[test]
    fn a_count_of_finished_requests_is_held_against_the_whole_run_alone() {
        let fewer: Vec<Count> = counts()
            .iter()
            .map(|count| Count { output_tok: count.output_tok * 0.9, ..*count })
            .collect();
        let client = Client { cut: 1, ..client() };
        let check = cross_check(&client, &fewer, (0.0, 9.0), Moves::PerFinished).expect("ends");
        assert_eq!((check.window, check.finding), (None, Finding::CutUncounted));
    }

    #[test]
    fn without_both_ends_nothing_is_said() {
        let all = counts();
        assert_eq!(cross_check(&client(), &all[1..], (0.0, 9.0), Moves::PerStep), None);
        assert_eq!(cross_check(&client(), &all[..5], (0.0, 9.0), Moves::PerStep), None);
        assert_eq!(cross_check(&client(), &[], (0.0, 9.0), Moves::PerStep), None);
    }
}
