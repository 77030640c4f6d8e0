//! What rows ask for: how long the prompt is and how long the answer may be.
//!
//! Production traces show next to no correlation between the two (Spearman −0.02 to 0.07), so they are
//! drawn independently unless a rank correlation is asked for.

use std::sync::Arc;

use super::WorkloadError;
use super::distribution::{Distribution, TOKENS};
use super::draw::{Draws, Purpose};
use super::keys::Keys;
use super::normal::{normal_cdf, normal_quantile};

/// Prompt lengths, or the prompt itself.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Drawn(Distribution),
    /// One text for all, and the tokens that its author counts it as.
    Literal {
        text: Arc<str>,
        tokens: u32,
    },
}

impl Input {
    /// Reads `[input]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let literal = keys.get("distribution").and_then(|field| field.text().ok());
        if literal != Some("literal") {
            return Distribution::read(keys, TOKENS).map(Self::Drawn);
        }
        let field = keys.need("text", "it is the prompt itself")?;
        let text = field.text()?;
        if text.is_empty() {
            return Err(field.fail("is empty; a prompt needs some text"));
        }
        let tokens = keys.need("tokens", "it is how many tokens you count the text as")?;
        let tokens = u32::try_from(tokens.whole_in(1, 10_000_000)?).expect("the limit fits");
        keys.finish()?;
        Ok(Self::Literal { text: text.into(), tokens })
    }

    /// The length at probability `u`.
    pub(super) fn at(&self, u: f64) -> u32 {
        match self {
            Self::Drawn(distribution) => distribution.tokens_at(u),
            Self::Literal { tokens, .. } => *tokens,
        }
    }

    /// The prompt, where it is given.
    pub(super) fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Drawn(_) => None,
            Self::Literal { text, .. } => Some(text),
        }
    }
}

/// Answer lengths.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// `None`: no length is asked for, and answers end by themselves.
    length: Option<Distribution>,
    /// Pearson's correlation of the normal ranks with those of the prompt; 0: none.
    correlation: f64,
}

impl Output {
    /// Reads `[output]`.
    pub(super) fn read(mut keys: Keys<'_>) -> Result<Self, WorkloadError> {
        let spearman = keys.get("rank_correlation");
        let spearman = spearman.map_or(Ok(0.0), |field| field.number_in(-1.0, 1.0))?;
        let natural =
            keys.get("distribution").and_then(|field| field.text().ok()) == Some("natural");
        let length = if natural {
            let max = keys.get("max").map(|field| field.whole_in(1, 10_000_000)).transpose()?;
            max.map(|max| Distribution::one(max as f64, TOKENS))
        } else {
            Some(Distribution::read_part(&mut keys, TOKENS)?)
        };
        keys.finish()?;
        // Of two normal variables: Spearman's is 6/π · arcsin(ρ/2).
        let correlation = 2.0 * libm::sin(std::f64::consts::FRAC_PI_6 * spearman);
        Ok(Self { length, correlation })
    }

    /// Answers end by themselves, however long they get.
    pub(super) fn is_natural(&self) -> bool {
        self.length.is_none()
    }

    /// The length for a row, if one is asked for, given the probability `u_input` that its prompt was drawn at.
    pub(super) fn at(
        &self,
        u_input: f64,
        (purpose, index): (Purpose, u64),
        draws: &mut Draws,
    ) -> Option<u32> {
        let length = self.length.as_ref()?;
        let own = draws.of(purpose, index).uniform();
        if self.correlation == 0.0 {
            return Some(length.tokens_at(own));
        }
        let rho = self.correlation.clamp(-1.0, 1.0);
        let z = rho * normal_quantile(u_input) + libm::sqrt(1.0 - rho * rho) * normal_quantile(own);
        let u = normal_cdf(z).clamp(f64::EPSILON, 1.0 - f64::EPSILON);
        Some(length.tokens_at(u))
    }
}
