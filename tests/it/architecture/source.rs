//! The sources as the laws read them: the words of each file, without comments, texts and test modules, and
//! every path among them that leads into this crate.
//!
//! Words, not meaning: a macro's body and an inline module other than a test's are read as the file's own.

use std::fs;
use std::path::Path;

/// A file of `src`.
pub(super) struct Source {
    /// Below `src`.
    pub(super) path: String,
    /// The words of its code.
    pub(super) words: Vec<String>,
    /// Where it stands among the modules; nothing for `lib.rs`.
    pub(super) module: Vec<String>,
    /// What its `use` declarations bind.
    pub(super) imports: Vec<Import>,
    /// Paths of two names or more that its other code has, as written.
    pub(super) paths: Vec<Vec<String>>,
    /// It is a test module's, or below one.
    pub(super) is_test: bool,
    /// Test modules that it declares, in files of their own.
    tests: Vec<String>,
}

/// A name that a `use` declaration binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// What stands for it; `*` for all names.
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) is_public: bool,
}

impl Source {
    pub(super) fn of(path: &str, text: &str) -> Self {
        let (words, tests) = without_test_modules(&words(text));
        let mut module: Vec<String> =
            path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|name| name == "mod" || name == "lib") {
            module.pop();
        }
        let (imports, rest) = imports(&words);
        let paths = paths(&rest);
        Self { path: path.to_owned(), words, module, imports, paths, is_test: false, tests }
    }

    pub(super) fn room(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }

    /// Whether the code has these words, one after the other.
    pub(super) fn says(&self, phrase: &[&str]) -> bool {
        self.words.windows(phrase.len()).any(|words| words == phrase)
    }

    /// Whether it takes something from a crate of this name (or a path that begins so).
    pub(super) fn knows(&self, name: &str) -> bool {
        let name: Vec<&str> = name.split("::").collect();
        let begins = |path: &[String]| path.len() >= name.len() && path[..name.len()] == name;
        self.imports.iter().map(|import| &import.path).chain(&self.paths).any(|path| begins(path))
    }

    /// A path from the crate's root on; `None` where it leads out of the crate, as far as words tell.
    pub(super) fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (mut from, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (self.module.clone(), &path[1..]),
            "super" => (self.module.clone(), path),
            _ => return None,
        };
        while rest.first().is_some_and(|word| word == "super") {
            from.pop();
            rest = &rest[1..];
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    /// The rooms that it names.
    pub(super) fn rooms_named(&self) -> Vec<String> {
        let all = self.imports.iter().map(|import| &import.path).chain(&self.paths);
        all.filter_map(|path| self.absolute(path)?.first().cloned()).collect()
    }
}

/// All files.
pub(super) fn sources() -> Vec<Source> {
    fn walk(src: &Path, folder: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).expect("src is readable") {
            let path = entry.expect("src is readable").path();
            if path.is_dir() {
                walk(src, &path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let inside =
                    path.strip_prefix(src).expect("below src").to_string_lossy().into_owned();
                found.push(Source::of(&inside, &fs::read_to_string(&path).expect("a source file")));
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&src, &src, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let of = |source: &Source| {
        let module = source.module.clone();
        source.tests.clone().into_iter().map(move |name| [module.clone(), vec![name]].concat())
    };
    let tests: Vec<Vec<String>> = found.iter().flat_map(of).collect();
    for source in &mut found {
        source.is_test = tests.iter().any(|test| source.module.starts_with(test));
    }
    found
}

/// Names, `::` and single signs. Comments and what stands in quotes are left out.
fn words(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else if let Some(length) = raw_text(rest).or_else(|| quoted(rest)) {
            length
        } else if is_part(c) {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            words.push(rest[..length].to_owned());
            length
        } else {
            let length = if rest.starts_with("::") { 2 } else { c.len_utf8() };
            if !c.is_whitespace() {
                words.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    words
}

/// The length of `r#"…"#`.
fn raw_text(text: &str) -> Option<usize> {
    let hashes = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let inside = hashes.trim_start_matches('#');
    let count = hashes.len() - inside.len();
    let close = format!("\"{}", "#".repeat(count));
    let end = inside.strip_prefix('"')?.find(&close)?;
    Some(text.len() - inside.len() + 1 + end + close.len())
}

/// The length of `"…"` or of `'c'`; a lifetime is neither.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut signs = text.char_indices().skip(1);
    let mut count = 0;
    while let Some((at, c)) = signs.next() {
        match c {
            c if c == quote => return Some(at + 1),
            '\\' => drop(signs.next()),
            _ if quote == '\'' && count > 0 && !text.starts_with("'\\") => return None,
            _ => {}
        }
        count += 1;
    }
    None
}

/// Leaves out what `#[cfg(test)] mod name` begins, be it a declaration or a block, and nothing else; with the
/// names that are declared.
fn without_test_modules(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut declared) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        let length = test_module(&words[at..]);
        if length.is_none() {
            kept.push(words[at].clone());
        }
        let end = at + length.unwrap_or(1);
        if length.is_some() && words[end - 1] == ";" {
            declared.push(words[end - 2].clone());
        }
        at = end;
    }
    (kept, declared)
}

/// How many words the test module takes that begins here.
fn test_module(words: &[String]) -> Option<usize> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let rest = words.get(MARK.len()..).filter(|_| words[..MARK.len()] == MARK)?;
    let head = rest.iter().position(|word| matches!(word.as_str(), ";" | "{" | "="))?;
    // Attributes and a visibility may come first.
    let is_module = head >= 2 && rest[head - 2] == "mod";
    let length = match rest[head].as_str() {
        ";" => 1,
        "{" => block(&rest[head..]),
        _ => return None,
    };
    is_module.then_some(MARK.len() + head + length)
}

/// How many words a block in braces takes.
fn block(words: &[String]) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// What `use` declarations bind, and all the words around them.
fn imports(words: &[String]) -> (Vec<Import>, Vec<String>) {
    let (mut imports, mut rest) = (Vec::new(), Vec::<String>::new());
    let mut at = 0;
    while at < words.len() {
        // `use<…>` says what a type captures.
        if words[at] != "use" || words.get(at + 1).is_some_and(|word| word == "<") {
            rest.push(words[at].clone());
            at += 1;
            continue;
        }
        let is_public = rest.last().is_some_and(|word| word == "pub" || word == ")");
        let end =
            words[at..].iter().position(|word| word == ";").map_or(words.len(), |end| at + end);
        tree(&words[at + 1..end], &[], is_public, &mut imports);
        at = end + 1;
    }
    (imports, rest)
}

/// One branch of a `use` declaration: `a::b`, `a as b`, `a::{b, c::d}`, `a::*`.
fn tree(words: &[String], above: &[String], is_public: bool, imports: &mut Vec<Import>) {
    let mut path = above.to_vec();
    let mut alias = None;
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            "::" => {}
            "{" => {
                let inside = &words[at + 1..at + block(&words[at..]) - 1];
                let mut depth = 0;
                let branches = inside.split(|word| {
                    depth += i32::from(word == "{") - i32::from(word == "}");
                    word == "," && depth == 0
                });
                branches.for_each(|branch| tree(branch, &path, is_public, imports));
                return;
            }
            "as" => {
                alias = words.get(at + 1).cloned();
                break;
            }
            "self" if !path.is_empty() => {}
            _ => path.push(word.clone()),
        }
    }
    if let Some(name) = alias.or_else(|| path.last().cloned()).filter(|_| !words.is_empty()) {
        path.pop_if(|last| last == "*");
        imports.push(Import { name, path, is_public });
    }
}

/// Every `a::b::c`.
fn paths(words: &[String]) -> Vec<Vec<String>> {
    let is_name = |word: &str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut paths = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut joined = false;
    for word in words.iter().map(String::as_str).chain([";"]) {
        if word == "::" {
            joined = true;
        } else {
            if !(joined && is_name(word)) {
                if path.len() > 1 {
                    paths.push(std::mem::take(&mut path));
                }
                path.clear();
            }
            // What follows `<T as Trait>::` or `Vec::<T>::` begins no path.
            if is_name(word) && !(joined && path.is_empty()) {
                path.push(word.to_owned());
            }
            joined = false;
        }
    }
    paths
}

#[test]
fn only_test_modules_are_left_out() {
    let text = r##"
        //! use crate::comment::A;
        #[cfg(test)]
        mod tests;
        use crate::{units::Nanos, client::{self, Dial as Way}, sim::*};
        pub use super::other::B;
        #[cfg(test)]
        pub(in crate::x) mod more { use crate::test::C; fn f() { "}"; '}'; r#"}"#; } }
        #[cfg(test)]
        fn kept<'a>(c: char) -> &'a str { crate::late::d(c, '\'', '{', "crate::text::E // \" {") }
        /* crate::aside */ impl X { fn x(self) { Self::new::<u8>(); super::up::<T>::g() } }
    "##;
    let source = Source::of("room/file.rs", text);
    assert_eq!(source.rooms_named(), ["units", "client", "client", "sim", "room", "late", "room"]);
    let names: Vec<&str> = source.imports.iter().map(|import| import.name.as_str()).collect();
    assert_eq!(names, ["Nanos", "client", "Way", "*", "B"]);
    assert!(source.imports[4].is_public && !source.imports[0].is_public);
    assert!(source.says(&["late", "::", "d", "("]) && !source.words.iter().any(|word| word == "C"));
    let sibling = source.imports[4].path.clone();
    assert_eq!(source.absolute(&sibling).expect("ours"), ["room", "other", "B"]);
    assert_eq!(source.tests, ["tests"]);
    assert!(source.knows("crate::units") && !source.knows("crate::test"));
}
