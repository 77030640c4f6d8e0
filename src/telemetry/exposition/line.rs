//! One line of the page.

use std::borrow::Cow;

use super::{Fault, Kind, Sample};

/// Characters of a wrong text that a message shows.
const SHOWN_CHARS: usize = 40;

/// What a line is.
#[derive(Debug)]
pub(super) enum ExpositionLine<'a> {
    /// Blank, or a comment.
    Nothing,
    /// `# TYPE`.
    Kind(&'a str, Kind),
    Sample(Sample<'a>),
    /// `# EOF`, after which nothing counts.
    End,
}

/// What was read of a line, and what is left of it.
type Part<'a, T> = Result<(T, &'a str), Fault>;

pub(super) fn read(line: &str, label_limit: usize) -> Result<ExpositionLine<'_>, Fault> {
    let line = line.trim_matches([' ', '\t', '\r']);
    if line.is_empty() {
        return Ok(ExpositionLine::Nothing);
    }
    if let Some(comment) = line.strip_prefix('#') {
        return Ok(read_comment(comment));
    }
    read_sample(line, label_limit).map(ExpositionLine::Sample)
}

fn read_comment(comment: &str) -> ExpositionLine<'_> {
    let mut words = comment.split([' ', '\t']).filter(|word| !word.is_empty());
    match (words.next(), words.next(), words.next()) {
        (Some("EOF"), None, None) => ExpositionLine::End,
        (Some("TYPE"), Some(name), Some(kind)) => {
            let kind = match kind.to_ascii_lowercase().as_str() {
                "counter" => Kind::Counter,
                "gauge" => Kind::Gauge,
                "histogram" => Kind::Histogram,
                "summary" => Kind::Summary,
                _ => Kind::Other,
            };
            ExpositionLine::Kind(name.trim_matches('"'), kind)
        }
        _ => ExpositionLine::Nothing,
    }
}

fn read_sample(line: &str, label_limit: usize) -> Result<Sample<'_>, Fault> {
    let (name, rest) = line.split_at(name_len(line));
    let mut name = Cow::Borrowed(name);
    let mut labels = Vec::new();
    let mut rest = rest.trim_start_matches([' ', '\t']);
    if let Some(inside) = rest.strip_prefix('{') {
        (labels, rest) = read_labels(&mut name, inside, label_limit)?;
    }
    if name.is_empty() {
        return Err(Fault::Name(shown(line)));
    }
    let value = read_value(&name, rest)?;
    Ok(Sample { name, labels, value })
}

type Labels<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Reads up to the closing brace. A name that could not stand before the brace is the first thing inside
/// it, in quotes.
fn read_labels<'a>(name: &mut Cow<'a, str>, text: &'a str, limit: usize) -> Part<'a, Labels<'a>> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t']);
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((labels, rest));
        }
        if rest.is_empty() {
            return Err(Fault::OpenLabels(name.to_string()));
        }
        let (label, after) = if let Some(quoted) = rest.strip_prefix('"') {
            unquote(name, quoted)?
        } else {
            let (label, after) = rest.split_at(name_len(rest));
            (Cow::Borrowed(label), after)
        };
        let after = after.trim_start_matches([' ', '\t']);
        rest = match after.strip_prefix('=') {
            Some(after) if !label.is_empty() => {
                let after = after.trim_start_matches([' ', '\t']);
                let quoted =
                    after.strip_prefix('"').ok_or_else(|| Fault::Label(name.to_string()))?;
                let (value, after) = unquote(name, quoted)?;
                if labels.len() >= limit {
                    return Err(Fault::TooManyLabels { name: name.to_string(), limit });
                }
                labels.push((label, value));
                after
            }
            None if name.is_empty() && labels.is_empty() && !label.is_empty() => {
                *name = label;
                after
            }
            _ => return Err(Fault::Label(name.to_string())),
        };
        rest = rest.trim_start_matches([' ', '\t']);
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start_matches([' ', '\t']),
            None if rest.is_empty() || rest.starts_with('}') => {}
            None => return Err(Fault::Label(name.to_string())),
        }
    }
}

/// Reads a quoted text from behind its opening quote to behind its closing one.
fn unquote<'a>(name: &str, text: &'a str) -> Part<'a, Cow<'a, str>> {
    let open = || Fault::OpenQuote(name.to_owned());
    let end = text.find(['"', '\\']).ok_or_else(open)?;
    if text.as_bytes()[end] == b'"' {
        return Ok((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = text[..end].to_owned();
    let mut characters = text[end..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((Cow::Owned(value), &text[end + at + 1..])),
            '\\' => match characters.next().ok_or_else(open)?.1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                // Not an escape of the format; kept as it is.
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    Err(open())
}

/// The value; a timestamp and an exemplar may follow it.
fn read_value(name: &str, text: &str) -> Result<f64, Fault> {
    let text = text.trim_start_matches([' ', '\t']);
    let (figures, exemplar) = text.split_once('#').map_or((text, None), |(a, b)| (a, Some(b)));
    let mut words = figures.split([' ', '\t']).filter(|word| !word.is_empty());
    let word = words.next().ok_or_else(|| Fault::NoValue(name.to_owned()))?;
    let value =
        number(word).ok_or_else(|| Fault::Value { name: name.to_owned(), text: shown(word) })?;
    let bad_tail = |text: &str| Fault::Tail { name: name.to_owned(), text: shown(text) };
    if let Some(stamp) = words.next() {
        number(stamp).ok_or_else(|| bad_tail(stamp))?;
    }
    if let Some(more) = words.next() {
        return Err(bad_tail(more));
    }
    match exemplar {
        Some(exemplar) if !exemplar.trim_start_matches([' ', '\t']).starts_with('{') => {
            Err(bad_tail(exemplar))
        }
        _ => Ok(value),
    }
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

/// Bytes of the name that the text begins with; 0 where it begins with none.
fn name_len(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}
