//! `--tokenizer`: answers counted where the server does not, and prompts whose words are checked by the
//! model's own file. The files here are made by hand: a word is one token, or one a letter.

use serde_json::{Map, Value, json};
use underfire::record::{Outcome, TokenSource};

use crate::program::{Place, small_trace};
use crate::sockets::Sim;

/// A `tokenizer.json` in which exactly these words are one token; others are one a letter.
pub(crate) fn file_with(words: &[&str]) -> String {
    let mut vocab = Map::new();
    let letters = ('a'..='z').flat_map(|letter| [letter.to_string(), format!("##{letter}")]);
    for piece in ["[UNK]".to_owned()].into_iter().chain(letters) {
        vocab.insert(piece, json!(vocab.len()));
    }
    for word in words {
        vocab.insert((*word).to_owned(), json!(vocab.len()));
    }
    let pieces = json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0 },
        "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab },
    });
    pieces.to_string()
}

/// The words of the simulated server's answers.
const WORDS: [&str; 32] = [
    "the", "of", "and", "to", "in", "is", "was", "for", "on", "are", "with", "they", "be", "at",
    "one", "have", "this", "from", "by", "hot", "word", "but", "what", "some", "we", "can", "out",
    "other", "were", "all", "there", "when",
];

#[test]
fn answers_that_the_server_does_not_count_are_counted_by_the_file() {
    let place = Place::new();
    place.write("t.csv", small_trace(9, 20).replace(",10,4", ",10,21"));
    place.write("tokenizer.json", file_with(&WORDS));
    // Four tokens a chunk, so that events are no count; some reason, and one is cut.
    let faults = ["group=4", "no-usage@rows=0-5", "reasoning=8@rows=1,2", "cut=end,6@rows=3"];
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", *fault]).collect();
    let run = |sim: &Sim, out: &str, more: &[&str]| {
        let fixed = ["run", "t.csv", "--url", &sim.url, "--out", out, "--no-preflight"];
        place.run(&[&fixed[..], more].concat()).expect(0);
        place.rows(out)
    };
    let sim = Sim::start(&place, &faults);
    let options = ["--running-usage", "off", "--tokenizer", "tokenizer.json"];
    let rows = run(&sim, "run", &options);
    let truth = sim.end(&place);
    assert_eq!((rows.len(), truth.len()), (9, 9));
    for row in &rows {
        let told = truth.iter().find(|told| Some(&told.request_id) == row.request_id.as_ref());
        let told = told.expect("the server logs every request");
        assert_eq!(row.output_tok, Some(told.output_tok), "{row:?}");
        let source = if row.row < 6 { TokenSource::Tokenizer } else { TokenSource::Usage };
        assert_eq!(row.token_source, Some(source), "{row:?}");
        assert!(row.chunks < row.output_tok, "events are no count: {row:?}");
        let reasoning = [1, 2].contains(&row.row).then_some(8);
        assert_eq!(row.reasoning_tok, reasoning, "{row:?}");
    }
    assert_eq!((rows[3].outcome, rows[0].output_tok), (Outcome::Truncated, Some(21)));
    let manifest: Value = serde_json::from_str(&place.read("run/run.json")).expect("JSON");
    let setting = &manifest["settings"]["tokenizer"];
    assert_eq!(setting["file"], "tokenizer.json");
    assert_eq!(setting["fnv1a"].as_str().map(str::len), Some(16));
    // Another vocabulary counts otherwise, and that is not laid at the server's door.
    place.write("other.json", file_with(&WORDS[..4]));
    let other = ["run", "t.csv", "--no-usage", "--tokenizer", "other.json", "--out", "other"];
    let said = place.run(&other).expect(0);
    assert!(
        said.stdout.contains("by the --tokenizer") && said.stdout.contains("is it this model's?")
    );
    assert!(said.stdout.contains("9 answers are counted by --tokenizer"), "{said:?}");
    // The figures come out of the files again.
    let own = place.read("run/summary.csv");
    place.run(&["report", "run"]).expect(0);
    assert_eq!(place.read("run/summary.csv"), own);

    // Asked for no usage at all; and without the file the events are all there is.
    let sim = Sim::start(&place, &["--fault", "group=4"]);
    let rows = run(&sim, "b", &["--no-usage", "--tokenizer", "tokenizer.json"]);
    assert!(rows.iter().all(|row| row.output_tok == Some(21)), "{rows:#?}");
    assert!(rows.iter().all(|row| row.token_source == Some(TokenSource::Tokenizer)));
    let rows = run(&sim, "c", &["--no-usage"]);
    assert!(rows.iter().all(|row| row.output_tok == row.chunks), "{rows:#?}");
    assert!(rows.iter().all(|row| row.token_source == Some(TokenSource::Events)));
    sim.end(&place);
}

#[test]
fn a_file_that_is_no_tokenizer_is_told_before_anything_is_sent() {
    let place = Place::new();
    place.write("t.csv", small_trace(2, 20));
    place.write("tokenizer_config.json", r#"{"bos_token":"<s>","model_max_length":2048}"#);
    for (file, part) in [
        ("tokenizer_config.json", "read tokenizer tokenizer_config.json: "),
        ("none.json", "read tokenizer none.json: "),
        (".", "read tokenizer .: "),
    ] {
        let said = place.run(&["run", "t.csv", "--tokenizer", file, "--out", "run"]).expect(2);
        assert!(said.stderr.contains(part), "{said:?}");
        assert!(!place.path("run").exists(), "no run, no folder");
    }
}
