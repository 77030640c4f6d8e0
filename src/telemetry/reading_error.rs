//! What a page that was read cannot tell, and why, in words.

/// Characters of a wrong text that a message shows.
pub(super) const SHOWN_CHARS: usize = 40;

/// Why a page has no figures, or lacks some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// No engine's names on it.
    #[error(
        "the page has no metrics of any engine known here ({known}){seen}\nhint: give the page of the \
         engine itself by --metrics URL"
    )]
    UnknownEngine {
        /// The engines.
        known: String,
        /// Names that it has, in words; empty without any.
        seen: String,
    },
    /// The same sample twice.
    #[error("the page has two samples of `{name}` with the same labels, which cannot both count")]
    Twice {
        /// The metric.
        name: String,
    },
    /// A counter or bucket below zero or not a number.
    #[error("the page says {value} for the counter `{name}`, which no counter can be")]
    NoCount {
        /// The metric.
        name: String,
        /// As read.
        value: String,
    },
    /// A gauge below zero or beyond all bounds.
    #[error("the page says {value} for `{name}`, of which no server can have so much")]
    NoAmount {
        /// The metric.
        name: String,
        /// As read.
        value: String,
    },
    /// None of the models that it has is the one that is wanted.
    #[error(
        "the page has no model {wanted:?}; it has {known}\nhint: give one of these by --model NAME"
    )]
    NoModel {
        /// As given.
        wanted: String,
        /// Those that it has, in words.
        known: String,
    },
    /// A bucket that holds no times.
    #[error("the bound {le:?} of `{name}` is none of a time in seconds")]
    NoBound {
        /// The metric.
        name: String,
        /// As read.
        le: String,
    },
}

impl ReadingError {
    /// What it is about, whatever the figure: a fault that stays is one fault, though its figure moves.
    #[must_use]
    pub fn about(&self) -> &str {
        match self {
            Self::UnknownEngine { seen, .. } => seen,
            Self::NoModel { wanted, .. } => wanted,
            Self::Twice { name }
            | Self::NoCount { name, .. }
            | Self::NoAmount { name, .. }
            | Self::NoBound { name, .. } => name,
        }
    }
}
