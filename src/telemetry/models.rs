//! The models of one page: which there are, and one of them alone.
//!
//! Deliberately absent: engines that serve one model and name none.

use std::collections::BTreeSet;

use super::exposition::{Exposition, Sample};
use super::reading_error::{ReadingError, SHOWN_CHARS};
use super::rules::{Counter, Rules};

/// Names that a message lists.
const SHOWN_NAMES: usize = 5;

/// Leaves only what is of one model, and of none.
pub fn narrow(page: &mut Exposition<'_>, rules: &Rules, model: &str) -> Result<(), ReadingError> {
    let models = models(page, rules);
    if !models.contains(model) {
        let known =
            if models.is_empty() { "no names of models".to_owned() } else { listed(&models) };
        return Err(ReadingError::NoModel { wanted: model.to_owned(), known });
    }
    let of = |sample: &Sample<'_>| {
        rules.model_label.is_none_or(|label| sample.label(label).is_none_or(|name| name == model))
    };
    page.samples.retain(of);
    Ok(())
}

/// The models that a page counts completion tokens of: one that was asked for and is not there may stand
/// among the failed requests.
pub(super) fn models(page: &Exposition<'_>, rules: &Rules) -> BTreeSet<String> {
    let Some(label) = rules.model_label else { return BTreeSet::new() };
    let counts_tokens = |sample: &&Sample<'_>| {
        let name = sample.name.strip_suffix("_total").unwrap_or(&sample.name);
        rules.counters.iter().any(|(counter, selector)| {
            *counter == Counter::Generation && selector.names.contains(&name)
        })
    };
    let samples = page.samples.iter().filter(counts_tokens);
    samples.filter_map(|sample| sample.label(label)).map(ToOwned::to_owned).collect()
}

/// Names, few and short.
#[must_use]
pub fn listed(names: &BTreeSet<String>) -> String {
    let short = |name: &String| name.chars().take(SHOWN_CHARS).collect::<String>();
    let shown: Vec<String> = names.iter().take(SHOWN_NAMES).map(short).collect();
    let more = if names.len() > SHOWN_NAMES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::exposition::{Limits, parse};
    use super::super::reading::recognise;
    use super::*;

    #[test]
    fn a_model_that_was_asked_for_in_vain_is_none_of_the_page() {
        let page = "dynamo_frontend_output_tokens_total{model=\"a\"} 5\n\
                    dynamo_frontend_requests_total{model=\"b\",status=\"error\"} 1\n";
        let page = parse(page.as_bytes(), Limits::default()).expect("a page");
        let models = models(&page, recognise(&page).expect("Dynamo"));
        assert_eq!(listed(&models), "a");
    }
}
