//! Bodies made ahead of their time: prompt and JSON, on one core. Budget: 2 million prompt tokens a
//! second, so that one core keeps ahead of 2,000 requests/s of 1,000 tokens.
//!
//! `cargo bench --bench bodies`

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;

use serde_json::value::RawValue;
use underfire::client::dialect::Api;
use underfire::clock::monotonic;
use underfire::prompt::{COMMON_IDS, Prompter, Vocabulary};
use underfire::replay::job::BodyMaker;
use underfire::schedule::Planned;
use underfire::trace::{Prefix, Request};

const BUDGET_TOK_S: f64 = 2e6;
const ROWS: u64 = 4_000;

fn main() {
    let ids: Vec<u32> = COMMON_IDS.collect();
    let ids = Vocabulary::ids(&ids).expect("64 ids");
    let extra = RawValue::from_string(r#"{"temperature":0.7,"top_p":0.9}"#.to_owned());
    let extra = Arc::<RawValue>::from(extra.expect("JSON"));
    println!("budget {BUDGET_TOK_S:.0} prompt tokens/s on one core");
    for (what, api, vocabulary, extra, blocks) in [
        ("chat, words", Api::Chat, Vocabulary::default(), None, 0),
        ("chat, words, 2 blocks of 256", Api::Chat, Vocabulary::default(), None, 2),
        ("chat, words, --extra", Api::Chat, Vocabulary::default(), Some(extra), 0),
        ("completions, token ids", Api::Completions, ids, None, 0),
    ] {
        let prompter = Prompter::new(0, "bench").with_vocabulary(vocabulary);
        let models = vec![Some("model".to_owned())];
        let maker = BodyMaker { models, extra, ..BodyMaker::new(api, prompter) };
        let start = monotonic();
        let (mut tokens, mut bytes) = (0_u64, 0);
        for row in 0..ROWS {
            let planned = planned(row, blocks);
            tokens += u64::from(planned.request.input_tok);
            bytes += maker.job(planned).expect("a body").body.len();
        }
        let took = monotonic().since(start).as_secs_f64();
        let rate = tokens as f64 / took;
        let times = rate / BUDGET_TOK_S;
        println!(
            "{what}: {rate:.0} tokens/s, {:.0} MB/s, {times:.0} times the budget",
            bytes as f64 / took / 1e6
        );
        assert!(times >= 1.0, "below the budget");
    }
}

/// Rows of 100 to 2,000 tokens.
fn planned(row: u64, blocks: u64) -> Planned {
    let input_tok = 100 + u32::try_from(row * 37 % 1_900).expect("below 1,900");
    let ids: Box<[u64]> = (0..blocks).map(|block| row % 10 + block).collect();
    let prefix = (blocks > 0).then(|| Box::new(Prefix { blocks: ids, block_tok: 256 }));
    let request = Request { row, input_tok, output_tok: Some(100), prefix, ..Request::default() };
    Planned { index: row, due: None, request }
}
