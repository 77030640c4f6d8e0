//! A TOML table read key by key, remembering which keys were asked for.
//!
//! Whoever reads a section asks for its keys by name; what is left over when the section is done is
//! a mistake, reported with its line and the nearest name that was asked for. So the set of right
//! keys is the code that reads them, and cannot drift from it. Deliberately not serde: its errors
//! name no line once a value has the right type but the wrong meaning.

use std::cell::OnceCell;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::WorkloadError;
use crate::units::Nanos;

/// Keys that stand above the first section, and are often written below it by mistake.
const TOP_KEYS: [&str; 3] = ["name", "duration", "rows"];

/// The text of a file, to turn byte offsets into lines.
#[derive(Debug)]
pub(super) struct TomlText<'a> {
    /// The file, as it was named.
    pub(super) file: &'a str,
    text: &'a str,
    line_starts: OnceCell<Vec<usize>>,
}

impl<'a> TomlText<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, line_starts: OnceCell::new() }
    }

    /// 1-based line of a byte offset.
    pub(super) fn line(&self, offset: usize) -> usize {
        let starts = self.line_starts.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        });
        starts.partition_point(|&start| start <= offset)
    }

    /// 1-based column of a byte offset, in characters.
    pub(super) fn column(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }
}

/// One table of the file.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    source: &'a TomlText<'a>,
    table: &'a DeTable<'a>,
    /// `arrival`, `class.2.input`; empty at the top.
    path: String,
    line: usize,
    asked: Vec<&'static str>,
}

/// How a message speaks of a table.
fn place(path: &str) -> String {
    if path.is_empty() { "at the top level".to_owned() } else { format!("in [{path}]") }
}

impl<'a> Keys<'a> {
    /// The file's top level.
    pub(super) fn top(source: &'a TomlText<'a>, table: &'a DeTable<'a>) -> Self {
        Self { source, table, path: String::new(), line: 1, asked: Vec::new() }
    }

    fn field(&self, name: &'a str, value: &'a DeValue<'a>, offset: usize) -> Field<'a> {
        let line = self.source.line(offset);
        Field { source: self.source, path: self.path.clone(), name, value, line }
    }

    /// The value of a key that may be left out.
    pub(super) fn get(&mut self, name: &'static str) -> Option<Field<'a>> {
        self.asked.push(name);
        let (key, value) = self.table.iter().find(|(key, _)| key.get_ref() == name)?;
        Some(self.field(name, value.get_ref(), key.span().start))
    }

    /// Whether a key is there, without asking for it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.table.keys().any(|key| key.get_ref() == name)
    }

    /// The value of a key that has to be there.
    pub(super) fn need(
        &mut self,
        name: &'static str,
        remedy: &'static str,
    ) -> Result<Field<'a>, WorkloadError> {
        self.get(name).ok_or_else(|| self.missing(name, remedy))
    }

    /// A section that has to be there.
    pub(super) fn section(
        &mut self,
        name: &'static str,
        remedy: &'static str,
    ) -> Result<Self, WorkloadError> {
        Self::of(&self.need(name, remedy)?)
    }

    /// A section that may be left out.
    pub(super) fn section_if_any(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Self>, WorkloadError> {
        self.get(name).map(|field| Self::of(&field)).transpose()
    }

    /// The sections of a list such as `[[class]]`, in order; none where there is no such key.
    pub(super) fn sections(&mut self, name: &'static str) -> Result<Vec<Self>, WorkloadError> {
        let Some(field) = self.get(name) else { return Ok(Vec::new()) };
        let wanted = format!("a list of sections, each headed [[{name}]]");
        let list = field.value.as_array().ok_or_else(|| field.wrong_type(&wanted))?;
        let one = |(at, item): (usize, &'a Spanned<DeValue<'a>>)| match item.get_ref() {
            DeValue::Table(table) => Ok(Self {
                source: field.source,
                table,
                path: format!("{}.{}", field.full_name(), at + 1),
                line: self.source.line(item.span().start),
                asked: Vec::new(),
            }),
            _ => Err(field.wrong_type(&wanted)),
        };
        list.iter().enumerate().map(one).collect()
    }

    fn of(field: &Field<'a>) -> Result<Self, WorkloadError> {
        let DeValue::Table(table) = field.value else {
            return Err(field.wrong_type("a section"));
        };
        let (source, path, line) = (field.source, field.full_name(), field.line);
        Ok(Self { source, table, path, line, asked: Vec::new() })
    }

    /// Every key of a section whose names are free.
    pub(super) fn all(&self) -> impl Iterator<Item = Field<'a>> {
        self.table
            .iter()
            .map(|(key, value)| self.field(key.get_ref(), value.get_ref(), key.span().start))
    }

    /// Ends the section: a key nobody asked for is an error.
    pub(super) fn finish(&self) -> Result<(), WorkloadError> {
        match self.left_over().next() {
            Some(key) => Err(self.unknown(key)),
            None => Ok(()),
        }
    }

    fn left_over(&self) -> impl Iterator<Item = &'a Spanned<std::borrow::Cow<'a, str>>> {
        self.table.keys().filter(|key| !self.asked.contains(&key.get_ref().as_ref()))
    }

    fn unknown(&self, key: &Spanned<std::borrow::Cow<'a, str>>) -> WorkloadError {
        let word = key.get_ref().as_ref();
        let hint = if !self.path.is_empty() && TOP_KEYS.contains(&word) {
            format!("`{word}` stands above the first [section]")
        } else {
            suggest(word, &self.asked)
        };
        WorkloadError::Unknown {
            kind: "key",
            word: word.to_owned(),
            place: place(&self.path),
            file: self.source.file.to_owned(),
            line: self.source.line(key.span().start),
            hint,
        }
    }

    /// A key is missing: because it was misspelt, if one that nobody asked for looks like it.
    pub(super) fn missing(&self, name: &'static str, remedy: &'static str) -> WorkloadError {
        let misspelt = self.left_over().find(|key| is_near(key.get_ref(), name));
        if let Some(key) = misspelt {
            return self.unknown(key);
        }
        WorkloadError::Missing {
            key: name,
            place: place(&self.path),
            file: self.source.file.to_owned(),
            line: self.line,
            remedy,
        }
    }
}

/// One value, with where it stands.
#[derive(Debug)]
pub(super) struct Field<'a> {
    source: &'a TomlText<'a>,
    path: String,
    name: &'a str,
    value: &'a DeValue<'a>,
    line: usize,
}

impl<'a> Field<'a> {
    /// An error about this value; `why` continues "`rate` in `[arrival]` …".
    pub(super) fn fail(&self, why: impl Into<String>) -> WorkloadError {
        WorkloadError::Value {
            key: self.name.to_owned(),
            place: place(&self.path),
            why: why.into(),
            file: self.source.file.to_owned(),
            line: self.line,
        }
    }

    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    pub(super) fn value(&self) -> &'a DeValue<'a> {
        self.value
    }

    /// `arrival.envelope`: the path of the table that it may be.
    fn full_name(&self) -> String {
        if self.path.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.path, self.name)
        }
    }

    fn wrong_type(&self, wanted: &str) -> WorkloadError {
        self.fail(format!("is {}, not {wanted}", describe(self.value)))
    }

    /// A string.
    pub(super) fn text(&self) -> Result<&'a str, WorkloadError> {
        self.value.as_str().ok_or_else(|| self.wrong_type("text in quotes"))
    }

    /// `true` or `false`.
    pub(super) fn truth(&self) -> Result<bool, WorkloadError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A list of strings.
    pub(super) fn texts(&self) -> Result<Vec<&'a str>, WorkloadError> {
        let wanted = "a list of texts in quotes";
        let list = self.value.as_array().ok_or_else(|| self.wrong_type(wanted))?;
        let text = |item: &'a Spanned<DeValue<'a>>| item.get_ref().as_str();
        list.iter().map(text).collect::<Option<_>>().ok_or_else(|| self.wrong_type(wanted))
    }

    /// A file named beside the workload file.
    pub(super) fn file(&self) -> Result<std::path::PathBuf, WorkloadError> {
        let beside = std::path::Path::new(self.source.file).parent().unwrap_or("".as_ref());
        Ok(beside.join(self.text()?))
    }

    /// A finite number, whole or not.
    pub(super) fn number(&self) -> Result<f64, WorkloadError> {
        self.number_of(self.value)
    }

    /// A number from `least` to `most`.
    pub(super) fn number_in(&self, least: f64, most: f64) -> Result<f64, WorkloadError> {
        let number = self.number()?;
        if number < least || number > most {
            return Err(self.fail(format!("is {number}; it must be from {least} to {most}")));
        }
        Ok(number)
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole_in(&self, least: u64, most: u64) -> Result<u64, WorkloadError> {
        let DeValue::Integer(integer) = self.value else {
            return Err(self.wrong_type("a whole number"));
        };
        u64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                self.fail(format!("is {integer}; it must be a whole number from {least} to {most}"))
            })
    }

    /// A list of finite numbers.
    pub(super) fn numbers(&self) -> Result<Vec<f64>, WorkloadError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_type("a list of numbers"))?;
        list.iter().map(|item| self.number_of(item.get_ref())).collect()
    }

    /// A duration above zero.
    pub(super) fn duration(&self) -> Result<Nanos, WorkloadError> {
        let text = self.value.as_str().ok_or_else(|| {
            self.wrong_type("a duration in quotes such as \"250ms\", \"30s\" or \"1h30m\"")
        })?;
        match Nanos::parse_duration(text) {
            Ok(Nanos::ZERO) => Err(self.fail("must be above zero")),
            Ok(span) => Ok(span),
            Err(error) => Err(self.fail(format!("is not a duration: {error}"))),
        }
    }

    /// An error about a word that is none of `known`.
    pub(super) fn unknown_word(&self, kind: &'static str, known: &[&'static str]) -> WorkloadError {
        let word = self.value.as_str().unwrap_or_default().to_owned();
        WorkloadError::Unknown {
            kind,
            hint: suggest(&word, known),
            word,
            place: place(&self.path),
            file: self.source.file.to_owned(),
            line: self.line,
        }
    }

    fn number_of(&self, value: &DeValue<'_>) -> Result<f64, WorkloadError> {
        let number = match value {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64)
            }
            other => {
                return Err(self.fail(format!("holds {}, not a number", describe(other))));
            }
        };
        number
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.fail(format!("holds {}, not a finite number", describe(value))))
    }
}

/// A value as a person would call it.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

/// Few enough slips of the finger for the length of the word.
fn is_near(word: &str, right: &str) -> bool {
    let slips = strsim::damerau_levenshtein(word, right);
    slips <= if right.chars().count() <= 4 { 1 } else { 2 }
}

/// The nearest right word, or all of them.
fn suggest(word: &str, right: &[&'static str]) -> String {
    let nearest = right.iter().min_by_key(|right| strsim::damerau_levenshtein(word, right));
    match nearest {
        Some(nearest) if is_near(word, nearest) => format!("did you mean `{nearest}`?"),
        Some(_) => format!("known here: {}", right.join(", ")),
        None => "nothing is known here".to_owned(),
    }
}
