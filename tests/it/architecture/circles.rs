//! Circles between files: who takes a definition from whom.
//!
//! A path through a parent that hands a name on leads to the file that defines it. A module is its folder: that
//! the file at its head uses what stands below is no arrow, or every child that knows the module's own words
//! would be a circle. What a trait's method or an inferred type ties is not seen.

use std::collections::BTreeMap;

use super::source::Source;

/// The files of a crate, and the way from a path to the one that it leads to.
struct House<'a> {
    sources: &'a [Source],
    by_module: BTreeMap<Vec<String>, usize>,
}

/// As many hand-ons as a path may go through.
const HANDED_ON: usize = 8;

impl House<'_> {
    /// The file of the definition at a path from the root, and how many of its names led there.
    fn file(&self, path: &[String], handed_on: usize) -> Option<usize> {
        let known = (0..path.len()).rev().find(|n| self.by_module.contains_key(&path[..*n]))?;
        let here = self.by_module[&path[..known]];
        let rest = &path[known..];
        let import = self.sources[here].imports.iter().find(|import| import.name == rest[0]);
        let is_own = self.sources[here].defines(&rest[0]) || handed_on == HANDED_ON;
        if let Some(import) = import.filter(|_| !is_own) {
            let mut to = self.absolute(here, &import.path)?;
            to.extend_from_slice(&rest[1..]);
            return self.file(&to, handed_on + 1).or(Some(here));
        }
        // All names of a child may be handed on at once.
        let all = self.sources[here].imports.iter().filter(|import| import.name == "*");
        let through = all.filter_map(|import| {
            let from = *self.by_module.get(&self.absolute(here, &import.path)?)?;
            self.sources[from].defines(&rest[0]).then_some(from)
        });
        through.into_iter().next().or(Some(here))
    }

    /// A path as a file has it, from the root on: its first name may be a keyword, a child, or bound by `use`.
    fn absolute(&self, file: usize, path: &[String]) -> Option<Vec<String>> {
        let source = &self.sources[file];
        source.absolute(path).or_else(|| {
            let mut child = source.module.clone();
            child.push(path.first()?.clone());
            if self.by_module.contains_key(&child) {
                child.extend_from_slice(&path[1..]);
                return Some(child);
            }
            let import = source.imports.iter().find(|import| import.name == path[0])?;
            let mut to = source.absolute(&import.path)?;
            to.extend_from_slice(&path[1..]);
            Some(to)
        })
    }

    /// The files from which a file takes something, but for those below it.
    fn taken_from(&self, file: usize) -> Vec<usize> {
        let source = &self.sources[file];
        let is_used = |name: &str| source.words.iter().filter(|word| *word == name).count() > 1;
        let imports = source.imports.iter();
        // A name that is only handed on is not taken; nor is a module before something of it is named.
        let imports = imports.filter(|import| !import.is_public || is_used(&import.name));
        let named = imports.map(|import| &import.path).chain(&source.paths);
        let mut from: Vec<usize> = named
            .filter_map(|path| self.absolute(file, path))
            .filter(|path| !self.by_module.contains_key(path) || self.hands_on(path))
            .filter_map(|path| self.file(&path, 0))
            .filter(|from| !self.sources[*from].module.starts_with(&source.module))
            .collect();
        from.sort_unstable();
        from.dedup();
        from
    }

    /// Whether a parent hands on a name that is also its child's.
    fn hands_on(&self, path: &[String]) -> bool {
        let Some((name, parent)) = path.split_last() else { return false };
        self.by_module.get(parent).is_some_and(|&parent| {
            self.sources[parent].imports.iter().any(|import| &import.name == name)
        })
    }
}

impl Source {
    fn defines(&self, name: &str) -> bool {
        const KINDS: [&str; 7] = ["struct", "enum", "fn", "trait", "type", "const", "static"];
        self.words.windows(2).any(|words| KINDS.contains(&words[0].as_str()) && words[1] == name)
    }
}

/// Files that take from one another in a circle, each circle with its arrows.
pub(super) fn circles(sources: &[Source]) -> Vec<Vec<(&str, &str)>> {
    let modules = sources.iter().enumerate();
    let by_module = modules.map(|(file, source)| (source.module.clone(), file)).collect();
    let house = House { sources, by_module };
    let arrows: Vec<Vec<usize>> = (0..sources.len()).map(|file| house.taken_from(file)).collect();
    let reach: Vec<Vec<bool>> = (0..sources.len()).map(|from| reached(&arrows, from)).collect();
    let mut seen = vec![false; sources.len()];
    let mut found = Vec::new();
    for first in 0..sources.len() {
        if seen[first] || !reach[first][first] {
            continue;
        }
        let of: Vec<usize> =
            (0..sources.len()).filter(|&file| reach[first][file] && reach[file][first]).collect();
        for &file in &of {
            seen[file] = true;
        }
        let inside = of.iter().flat_map(|&from| {
            let to = arrows[from].iter().filter(|to| of.contains(to));
            to.map(move |&to| (sources[from].path.as_str(), sources[to].path.as_str()))
        });
        found.push(inside.collect());
    }
    found
}

fn reached(arrows: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; arrows.len()];
    let mut ahead = arrows[from].clone();
    while let Some(file) = ahead.pop() {
        if !std::mem::replace(&mut reached[file], true) {
            ahead.extend_from_slice(&arrows[file]);
        }
    }
    reached
}

#[test]
fn a_circle_is_seen_through_hands_and_a_parent_alone_is_none() {
    let files = [
        ("a/mod.rs", "mod one; mod two; pub use one::{One, one}; pub struct A;"),
        ("a/one.rs", "use super::A; pub struct One; pub fn one() { crate::b::f() }"),
        ("a/two.rs", "use super::one; fn two() { one::One; super::one() }"),
        (
            "b/mod.rs",
            "mod x; mod y; pub use x::*; pub use y::Y; use y::Y as Z; #[cfg(test)] mod z;",
        ),
        ("b/x.rs", "use super::Y; pub fn f() {}"),
        ("b/y.rs", "use crate::b; pub struct Y; fn y() { b::f() }"),
        ("b/z.rs", "use super::*; fn z() { super::Z }"),
    ];
    let sources: Vec<Source> = files.map(|(path, text)| Source::of(path, text)).into();
    assert_eq!(circles(&sources), [[("b/x.rs", "b/y.rs"), ("b/y.rs", "b/x.rs")]]);
}
