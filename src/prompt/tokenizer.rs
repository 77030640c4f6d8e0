//! A model's own tokenizer, from its `tokenizer.json`: counts whole texts, and says into which ids it
//! cuts one.
//!
//! Special tokens are never added: a text is what it says. Deliberately absent: chat templates, a hub to
//! download from, and any use per token of a stream.

use std::io;
use std::path::Path;

use tokenizers::PostProcessorWrapper;

use crate::schedule::Fnv;
use crate::trace::read::read_whole;

/// The largest file; those of the largest vocabularies are about 35 MB.
const LIMIT_BYTES: u64 = 256 << 20;

/// A tokenizer that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// It cannot be read.
    #[error("read tokenizer {file}: {source}")]
    Read {
        /// As the user wrote it.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is too large.
    #[error("read tokenizer {file}: the file is larger than {} MiB", LIMIT_BYTES >> 20)]
    TooLarge {
        /// As the user wrote it.
        file: String,
    },
    /// It is something else.
    #[error("read tokenizer {file}: {reason}\nhint: {hint}")]
    Invalid {
        /// As the user wrote it.
        file: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
}

/// A tokenizer, ready to count.
#[derive(Debug)]
pub struct Tokenizer {
    name: String,
    hash: Fnv,
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Self, TokenizerError> {
        let file = path.display().to_string();
        let bytes = read_whole(path, LIMIT_BYTES)
            .map_err(|source| TokenizerError::Read { file: file.clone(), source })?
            .ok_or_else(|| TokenizerError::TooLarge { file: file.clone() })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self::parse(&bytes, name.unwrap_or_default()).map_err(|reason| TokenizerError::Invalid {
            file,
            reason,
            hint: hint(&bytes),
        })
    }

    fn parse(bytes: &[u8], name: String) -> Result<Self, String> {
        let mut inner =
            tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
        // Files carry what their model was last trained with: a length to cut at, one to fill up to, and
        // a frame of special tokens. A count is of the whole text and of nothing else.
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None).with_post_processor(None::<PostProcessorWrapper>);
        Ok(Self { name, hash: Fnv::of(bytes), inner })
    }

    /// Name of the file, without its folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// FNV-1a (64 bits, hexadecimal) of the file.
    #[must_use]
    pub fn hash(&self) -> String {
        self.hash.to_string()
    }

    /// The ids that a text is cut into; `None`: this vocabulary cannot spell it.
    #[must_use]
    pub fn ids(&self, text: &str) -> Option<Vec<u32>> {
        Some(self.inner.encode_fast(text, false).ok()?.get_ids().to_vec())
    }

    /// How many tokens a text has; `None` as above.
    #[must_use]
    pub fn count(&self, text: &str) -> Option<u64> {
        Some(self.inner.encode_fast(text, false).ok()?.get_ids().len() as u64)
    }
}

/// What a user who gave this file most likely needs to hear.
fn hint(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"version https://git-lfs") {
        return "this only points to the file (Git LFS): get the file itself";
    }
    "give the `tokenizer.json` of the model's folder; `tokenizer_config.json`, `vocab.json` and \
     `tokenizer.model` are something else"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tokenized::{self, Before};
    use serde_json::{Value, json};

    /// One token a byte, and ` of`, ` time`, and `time` are one token each.
    fn tiny() -> Value {
        let letters = ["Ġ", "o", "f", "t", "i", "m", "e", "x"];
        let merged = ["Ġo", "Ġof", "ti", "tim", "time", "Ġtime"];
        let vocab: serde_json::Map<String, Value> = letters
            .iter()
            .chain(&merged)
            .enumerate()
            .map(|(id, piece)| ((*piece).to_owned(), json!(id)))
            .collect();
        json!({
            "version": "1.0",
            "truncation": { "direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0 },
            "padding": { "strategy": { "Fixed": 9 }, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 7, "pad_type_id": 0, "pad_token": "x" },
            "added_tokens": [{ "id": 99, "content": "<s>", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true }],
            "normalizer": null,
            "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": true },
            "post_processor": { "type": "TemplateProcessing",
                "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
                           { "Sequence": { "id": "A", "type_id": 0 } }],
                "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
                "special_tokens": { "<s>": { "id": "<s>", "ids": [99], "tokens": ["<s>"] } } },
            "decoder": null,
            "model": { "type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
                "byte_fallback": false, "vocab": vocab,
                "merges": ["Ġ o", "Ġo f", "t i", "ti m", "tim e", "Ġ time"] },
        })
    }

    fn load(bytes: &[u8]) -> Result<Tokenizer, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, bytes).expect("a file");
        Tokenizer::load(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_text_is_counted_without_special_tokens_cut_or_padding() {
        let mut file = tiny();
        // The frame is of no use here, so nobody minds that it is broken.
        file["post_processor"]["special_tokens"] = json!({});
        let tokenizer = load(file.to_string().as_bytes()).expect("a tokenizer");
        for (text, count) in
            [("", 0), ("time", 1), ("time of time", 3), ("time of time of time", 5), ("xox o", 4)]
        {
            assert_eq!(tokenizer.count(text), Some(count), "{text}");
        }
        assert_eq!(tokenizer.ids("time of"), Some(vec![12, 9]));
        // Text that looks like a special token is one, as it is on a server.
        assert_eq!(tokenizer.ids("time<s>"), Some(vec![12, 14]));
        assert_eq!(tokenizer.name(), "tokenizer.json");
        assert_eq!(tokenizer.hash().len(), 16);
    }

    #[test]
    fn what_is_no_tokenizer_is_told_in_words() {
        let mut no_merge = tiny();
        no_merge["model"]["merges"] = json!(["q r"]);
        let mut unknown = tiny();
        unknown["model"]["type"] = json!("Rune");
        let mut regex = tiny();
        regex["pre_tokenizer"] = json!({ "type": "Split", "pattern": { "Regex": "(((" },
            "behavior": "Isolated", "invert": false });
        for bytes in [
            b"".to_vec(),
            b"{}".to_vec(),
            b"[1]".to_vec(),
            b"\x0a\x0e\x0a\x05<unk>\xff".to_vec(),
            br#"{"bos_token":"<s>","model_max_length":2048}"#.to_vec(),
            no_merge.to_string().into_bytes(),
            unknown.to_string().into_bytes(),
            regex.to_string().into_bytes(),
        ] {
            let error = load(&bytes).expect_err("no tokenizer");
            assert!(error.starts_with("read tokenizer "), "{error}");
            assert!(error.contains("hint: give the `tokenizer.json`"), "{error}");
        }
        let error = load(b"version https://git-lfs.github.com/spec/v1\n").expect_err("a pointer");
        assert!(error.contains("Git LFS"), "{error}");
        let error = Tokenizer::load(Path::new("/")).expect_err("a folder").to_string();
        assert!(error.starts_with("read tokenizer /: "), "{error}");
    }

    /// A real one, where it is at hand.
    #[test]
    fn words_of_one_token_are_found_in_a_real_vocabulary() {
        let file = "../shared/servers/tiny-llama/tokenizer.json";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if !path.exists() {
            return;
        }
        let tokenizer = Tokenizer::load(&path).expect("a tokenizer");
        for before in [Before::Space, Before::Break] {
            let ids = tokenizer.ids(&tokenized::question(before)).expect("it spells all");
            let words = tokenized::single_words(&ids, before);
            assert!(words.len() > 64, "{before:?}: {words:?}");
            for (word, id) in words {
                let spaced = format!("{}{word}", if before == Before::Space { " " } else { "" });
                assert_eq!(tokenizer.ids(&spaced), Some(vec![id]), "{spaced:?}");
            }
        }
    }
}
