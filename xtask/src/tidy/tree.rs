//! The repository as the checks see it: every text file, read and parsed once.
//!
//! Responsible for finding the files and for nothing else. A check takes a [`Tree`] and returns findings, so each
//! check is a pure function and its test needs no files.
//!
//! Left out of the tree: version control, build output (any directory with a `CACHEDIR.TAG`) and files that are
//! not UTF-8 text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Every text file, by its path from the root with `/` between the parts.
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
}

/// One text file.
pub(crate) struct File {
    pub(crate) text: String,
    /// Present for Rust files.
    pub(crate) rust: Option<Result<syn::File, syn::Error>>,
}

impl Tree {
    /// Reads the repository whose root is `root`.
    pub(crate) fn load(root: &Path) -> Result<Tree> {
        let mut files = Vec::new();
        read_directory(root, "", &mut files)?;
        Ok(Tree::of(files))
    }

    /// A tree of the given paths and texts.
    pub(crate) fn of<P: Into<String>, T: Into<String>>(files: impl IntoIterator<Item = (P, T)>) -> Tree {
        let file = |(path, text): (P, T)| {
            let (path, text) = (path.into(), text.into());
            let rust = path.ends_with(".rs").then(|| syn::parse_file(&text));
            (path, File { text, rust })
        };
        Tree { files: files.into_iter().map(file).collect() }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text.as_str()))
    }

    /// The Rust files that parse, with their syntax. The check `parses` speaks about the others.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &syn::File)> {
        self.files.iter().filter_map(|(path, file)| match &file.rust {
            Some(Ok(syntax)) => Some((path.as_str(), syntax)),
            Some(Err(_)) | None => None,
        })
    }

    pub(crate) fn syntax(&self, path: &str) -> Option<&syn::File> {
        self.files.get(path)?.rust.as_ref()?.as_ref().ok()
    }

    pub(crate) fn unparsed(&self) -> impl Iterator<Item = (&str, &syn::Error)> {
        self.files.iter().filter_map(|(path, file)| match &file.rust {
            Some(Err(error)) => Some((path.as_str(), error)),
            Some(Ok(_)) | None => None,
        })
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.text.as_str())
    }

    /// Whether `path` is a file or a directory of the tree. The root is the empty path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let directory = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(directory.clone()..)
                .next()
                .is_some_and(|(file, _)| file.starts_with(&directory))
    }
}

/// Whether a Rust file holds only tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn read_directory(directory: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        let path = format!("{prefix}{name}");
        if kind.is_dir() && name != ".git" && !entry.path().join("CACHEDIR.TAG").exists() {
            read_directory(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push((path, text));
            }
        }
    }
    Ok(())
}
