//! The words of one line, and the small things that are written with them.
//!
//! Responsible for: splitting a line, durations, ranges, numbers, names. Invariant: every error names line and column.

use api::{Duration, Name, Namespace};

use super::ParseError;
use crate::config::NAMESPACE;
use crate::scenario::{Compare, PodName};

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'l> {
    pub(super) text: &'l str,
    pub(super) column: usize,
}

/// The words of a line, one after the other.
#[derive(Debug)]
pub(super) struct Words<'l> {
    words: Vec<Word<'l>>,
    next: usize,
    line: usize,
    /// The column behind the last word.
    end: usize,
}

impl<'l> Words<'l> {
    pub(super) fn new(text: &'l str, line: usize) -> Result<Self, ParseError> {
        let mut words = Vec::new();
        let mut rest = text.char_indices().peekable();
        let column_of = |at: usize| text[..at].chars().count() + 1;
        while let Some((start, c)) = rest.next() {
            if c.is_whitespace() {
                continue;
            }
            let (from, until) = if c == '"' {
                let close = rest.by_ref().find(|(_, c)| *c == '"');
                let Some((close, _)) = close else {
                    let text = "this quotation does not end".to_owned();
                    return Err(ParseError { line, column: column_of(start), text });
                };
                (start + 1, close)
            } else {
                let mut until = text.len();
                while let Some((at, c)) = rest.peek() {
                    if c.is_whitespace() {
                        until = *at;
                        break;
                    }
                    rest.next();
                }
                (start, until)
            };
            words.push(Word { text: &text[from..until], column: column_of(start) });
        }
        Ok(Self { words, next: 0, line, end: text.trim_end().chars().count() + 1 })
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    pub(super) fn next(&mut self) -> Option<Word<'l>> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }

    pub(super) fn peek(&self) -> Option<&'l str> {
        self.words.get(self.next).map(|word| word.text)
    }

    pub(super) fn peek_column(&self) -> usize {
        self.words.get(self.next).map_or(self.end, |word| word.column)
    }

    /// An error about a word.
    pub(super) fn wrong(&self, word: Word<'_>, text: String) -> ParseError {
        self.wrong_at(word.column, text)
    }

    pub(super) fn wrong_at(&self, column: usize, text: String) -> ParseError {
        ParseError { line: self.line, column, text }
    }

    /// The next word, whatever it is.
    pub(super) fn word(&mut self, what: &str) -> Result<Word<'l>, ParseError> {
        let column = self.peek_column();
        self.next().ok_or_else(|| self.wrong_at(column, format!("here should be {what}, but the line ends")))
    }

    /// The next word must be this one.
    pub(super) fn exactly(&mut self, text: &str) -> Result<(), ParseError> {
        let word = self.word(&format!("`{text}`"))?;
        if word.text == text {
            return Ok(());
        }
        Err(self.wrong(word, format!("here should be `{text}`, not `{}`", word.text)))
    }

    /// Takes the next word if it is this one.
    pub(super) fn maybe(&mut self, text: &str) -> bool {
        let is = self.peek() == Some(text);
        self.next += usize::from(is);
        is
    }

    /// The line must be over.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.wrong(word, format!("the line should end before `{}`", word.text))),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<usize, ParseError> {
        let word = self.word(what)?;
        word.text.parse().map_err(|_| self.wrong(word, format!("here should be {what}, not `{}`", word.text)))
    }

    /// `replicas=3`.
    pub(super) fn replicas(&mut self) -> Result<u32, ParseError> {
        let word = self.word("replicas=N")?;
        let number = word.text.strip_prefix("replicas=").and_then(|n| n.parse().ok());
        number.ok_or_else(|| self.wrong(word, format!("here should be replicas=N, not `{}`", word.text)))
    }

    /// `10000ppm`.
    pub(super) fn ppm(&mut self) -> Result<u32, ParseError> {
        let word = self.word("a drift such as 10000ppm")?;
        let number = word.text.strip_suffix("ppm").and_then(|n| n.parse().ok());
        number
            .ok_or_else(|| self.wrong(word, format!("a drift looks like 10000ppm, not like `{}`", word.text)))
    }

    /// A share in per mille, written `10%` or `2.5%`.
    pub(super) fn share(&mut self) -> Result<u32, ParseError> {
        let word = self.word("a share such as 10%")?;
        let number =
            word.text.strip_suffix('%').and_then(|n| decimal(n, 10)).and_then(|n| u32::try_from(n).ok());
        let number = number.filter(|n| *n <= 1000);
        number.ok_or_else(|| self.wrong(word, format!("a share looks like 10%, not like `{}`", word.text)))
    }

    /// `12s`, `6.8s`, `500ms`, `5m`, and sums of them: `20s+6.8s`.
    pub(super) fn time(&mut self) -> Result<Duration, ParseError> {
        let word = self.word("a time such as 10s")?;
        self.time_of(word, word.text)
    }

    /// A time that is part of a word.
    pub(super) fn time_of(&self, word: Word<'_>, text: &str) -> Result<Duration, ParseError> {
        let wrong = || {
            let text =
                format!("a time looks like 10s, 6.8s, 500ms, 5m or 20s+6.8s, not like `{}`", word.text);
            self.wrong(word, text)
        };
        let mut sum = Duration::ZERO;
        for part in text.split('+') {
            let ms = if let Some(number) = part.strip_suffix("ms") {
                decimal(number, 1)
            } else if let Some(number) = part.strip_suffix('s') {
                decimal(number, 1000)
            } else {
                part.strip_suffix('m').and_then(|number| decimal(number, 60_000))
            };
            sum = sum + Duration::from_ms(ms.ok_or_else(wrong)?);
        }
        Ok(sum)
    }

    /// `20s..600s`.
    pub(super) fn range(&mut self) -> Result<(Duration, Duration), ParseError> {
        let word = self.word("a range such as 20s..600s")?;
        let Some((from, until)) = word.text.split_once("..") else {
            return Err(self.wrong(word, format!("a range looks like 20s..600s, not like `{}`", word.text)));
        };
        let from = if from.is_empty() { Duration::ZERO } else { self.time_of(word, from)? };
        let until = if until.is_empty() { Duration::MAX } else { self.time_of(word, until)? };
        if from > until {
            return Err(self.wrong(word, "this range ends before it begins".to_owned()));
        }
        Ok((from, until))
    }

    /// A range, if the next word is one.
    pub(super) fn maybe_range(&mut self) -> Result<Option<(Duration, Duration)>, ParseError> {
        if self.peek().is_some_and(|word| word.contains("..")) { self.range().map(Some) } else { Ok(None) }
    }

    /// `db-0` or `default/db-0`.
    pub(super) fn pod(&mut self) -> Result<PodName, ParseError> {
        let word = self.word("the name of a pod")?;
        let (namespace, name) = word.text.split_once('/').unwrap_or((NAMESPACE, word.text));
        Ok(PodName { namespace: Namespace::from(namespace), name: Name::from(name) })
    }

    /// `= 3`, `<= 3`, `>= 3`.
    pub(super) fn comparison(&mut self) -> Result<(Compare, u64), ParseError> {
        let word = self.word("=, <= or >=")?;
        let compare = match word.text {
            "=" => Compare::Equal,
            "<=" => Compare::AtMost,
            ">=" => Compare::AtLeast,
            other => return Err(self.wrong(word, format!("here should be =, <= or >=, not `{other}`"))),
        };
        Ok((compare, self.number("a number")? as u64))
    }
}

/// A number with up to three decimals, times `unit`, if that is a whole number.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(part) || part.len() > 3 {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(part.len()).ok()?);
    let part = part.parse::<u64>().ok()?.checked_mul(unit)?;
    if !part.is_multiple_of(scale) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part / scale)
}
