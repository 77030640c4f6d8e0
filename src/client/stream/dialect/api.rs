//! The APIs of a server that generate text, by the words that name them.

use std::fmt;
use std::str::FromStr;

/// The APIs that requests can be sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Api {
    /// Chat completions.
    #[default]
    Chat,
    /// Completions, the older form: text or exact token ids.
    Completions,
}

impl Api {
    /// Every API, with the word that names it.
    const WORDS: [(Self, &'static str); 2] =
        [(Self::Chat, "chat"), (Self::Completions, "completions")];

    /// The path under a server's root.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

crate::units::serialize_as_text!(Api);

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS.iter().find(|(api, _)| api == self).map_or("", |(_, word)| word))
    }
}

/// A word that names no API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown API `{0}`; known are chat and completions")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(api, _)| *api).ok_or_else(|| UnknownApi(word.to_owned()))
    }
}
