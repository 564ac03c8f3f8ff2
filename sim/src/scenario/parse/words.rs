//! The words of one line, and the small things that are written with them.
//!
//! Responsible for: splitting a line, durations, ranges, numbers, names. Invariant: every error names line and column.

use api::{Duration, Name, Namespace};

use super::ParseError;
use crate::config::NAMESPACE;
use crate::scenario::{Compare, PodName};

/// No time in a scenario is longer: a day of a small cluster takes minutes to carry out.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// More pods of one workload than this show nothing that these do not.
pub(super) const COPIES_MAX: u32 = 10_000;
/// No clock is worse.
const DRIFT_MAX: u32 = 500_000;
/// Kubernetes' limit for most names.
const NAME_MAX: usize = 63;
/// An error is cut behind so many characters.
const SENTENCE_MAX: usize = 300;

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
        let mut rest = text.char_indices().zip(1..).map(|((at, c), column)| (at, column, c)).peekable();
        while let Some((start, column, c)) = rest.next() {
            if c.is_whitespace() {
                continue;
            }
            let (from, until) = if c == '"' {
                let close = rest.by_ref().find(|(_, _, c)| *c == '"');
                let Some((close, ..)) = close else {
                    let text = "this quotation does not end".to_owned();
                    return Err(ParseError { line, column, text });
                };
                (start + 1, close)
            } else {
                let mut until = text.len();
                while let Some((at, _, c)) = rest.peek() {
                    if c.is_whitespace() {
                        until = *at;
                        break;
                    }
                    rest.next();
                }
                (start, until)
            };
            words.push(Word { text: &text[from..until], column });
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

    /// An error at a column. It may quote a word of any length; a sentence stays readable.
    pub(super) fn wrong_at(&self, column: usize, mut text: String) -> ParseError {
        if let Some((cut, _)) = text.char_indices().nth(SENTENCE_MAX) {
            text.truncate(cut);
            text.push('…');
        }
        ParseError { line: self.line, column, text }
    }

    /// The next word, whatever it is.
    pub(super) fn word(&mut self, what: &str) -> Result<Word<'l>, ParseError> {
        let column = self.peek_column();
        self.next().ok_or_else(|| self.wrong_at(column, format!("here should be {what}, but the line ends")))
    }

    /// The next word, which names something.
    pub(super) fn name(&mut self, what: &str) -> Result<Word<'l>, ParseError> {
        let word = self.word(what)?;
        self.is_name(word, word.text)?;
        Ok(word)
    }

    /// `text`, which is all or a part of `word`, must be a name as Kubernetes has them.
    pub(super) fn is_name(&self, word: Word<'_>, text: &str) -> Result<(), ParseError> {
        let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let ends = [text.bytes().next(), text.bytes().last()].iter().all(|b| b.is_some_and(inside));
        if ends && text.len() <= NAME_MAX && text.bytes().all(|b| inside(b) || b == b'-' || b == b'.') {
            return Ok(());
        }
        let rule = format!("a name has up to {NAME_MAX} lower-case letters, digits, `-` and `.`");
        Err(self.wrong(word, format!("{rule}; `{text}` is none")))
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

    pub(super) fn number(&mut self, what: &str) -> Result<u64, ParseError> {
        let word = self.word(what)?;
        let number = digits(word.text).and_then(|n| n.parse().ok());
        number.ok_or_else(|| self.wrong(word, format!("here should be {what}, not `{}`", word.text)))
    }

    /// A number between two, both included.
    pub(super) fn number_in(&mut self, what: &str, least: u64, most: u64) -> Result<u64, ParseError> {
        let column = self.peek_column();
        let number = self.number(what)?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(self.wrong_at(column, format!("here should be {what} from {least} to {most}, not `{number}`")))
    }

    /// `replicas=3`.
    pub(super) fn replicas(&mut self) -> Result<u32, ParseError> {
        let word = self.word("replicas=N")?;
        let number = word.text.strip_prefix("replicas=").and_then(digits).and_then(|n| n.parse().ok());
        number.filter(|n| *n <= COPIES_MAX).ok_or_else(|| {
            let text = format!("here should be replicas=N with N up to {COPIES_MAX}, not `{}`", word.text);
            self.wrong(word, text)
        })
    }

    /// `10000ppm`.
    pub(super) fn ppm(&mut self) -> Result<u32, ParseError> {
        let word = self.word("a drift such as 10000ppm")?;
        let number = word.text.strip_suffix("ppm").and_then(digits).and_then(|n| n.parse().ok());
        number.filter(|n| *n <= DRIFT_MAX).ok_or_else(|| {
            let text = format!("a drift looks like 10000ppm, up to {DRIFT_MAX}ppm, not like `{}`", word.text);
            self.wrong(word, text)
        })
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
        if sum > LONGEST {
            let most = format!("a time is at most {}m", LONGEST.secs() / 60);
            return Err(self.wrong(word, format!("{most}; `{}` is longer", word.text)));
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
        self.is_name(word, namespace)?;
        self.is_name(word, name)?;
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
        Ok((compare, self.number("a number")?))
    }
}

/// The text, if it consists of digits and nothing else: no sign.
pub(super) fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// A number with up to three decimals, times `unit`, if that is a whole number. What is too large stays as large as
/// can be, for the caller to refuse.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let (whole, part) = (digits(whole)?, digits(part)?);
    if part.len() > 3 {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(part.len()).ok()?);
    let part = part.parse::<u64>().ok()?.checked_mul(unit)?;
    if !part.is_multiple_of(scale) {
        return None;
    }
    Some(whole.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(unit).saturating_add(part / scale))
}
