//! Selectors: which objects are meant, by label or by field.
//!
//! Responsible for: `metav1.LabelSelector` as objects carry it, the text forms of label and field selectors as requests
//! carry them, whom they match, and what a label may look like. Leaves to `registry`: which fields of a kind may be
//! selected by, and putting problems into an answer. Leaves to `server`: lists and watches that use them.
//!
//! Invariants: a selector that is not there selects nothing, an empty one selects everything, and the two cannot be
//! confused ([`LabelSelector::Absent`] is a case of its own and is the default). Matching is total: it cannot fail. A
//! text that was parsed prints as a text that parses to the same selector.
//!
//! The failure it is for: a workload without a selector adopting, and then deleting, every pod of its namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a selector's text: a list of 4,000 names of 63 letters. Half would refuse what tools send today; more
/// serves nobody, and every watcher keeps its own.
const TEXT_MAX: usize = 256 * 1024;

/// Letters of a label's name and of its value.
const NAME_MAX: usize = 63;

/// Letters of the prefix of a label's key.
const PREFIX_MAX: usize = 253;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// `metav1.LabelSelector`, as objects carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelSelector {
    /// Not there, or null: selects nothing.
    #[default]
    Absent,
    /// There: selects what meets all of it, which is everything if it is empty.
    Where(Terms),
}

/// What a [`LabelSelector`] asks for. All of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// Labels that must have these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "crate::view::null_is_default")]
    pub match_labels: Labels,
    /// More than equality.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::view::null_is_default")]
    pub match_expressions: Vec<Expression>,
}

/// `metav1.LabelSelectorRequirement`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what; empty for Exists and DoesNotExist.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::view::null_is_default"
    )]
    pub values: Vec<String>,
}

/// How an [`Expression`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The label is there and has one of the values.
    In,
    /// The label is not there or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// A label selector in the form that requests carry: `app=db,tier in (a,b),!old`. Empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// All must hold; sorted by key.
    requirements: Vec<Requirement>,
}

/// One part of a [`Selector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What must hold of it.
    pub test: Test,
}

/// What must hold of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// It has this value.
    Equals(String),
    /// It does not have this value, or is not there.
    NotEquals(String),
    /// It has one of these values.
    In(BTreeSet<String>),
    /// It has none of these values, or is not there.
    NotIn(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is not there.
    Absent,
    /// It is a whole number greater than this.
    Greater(i64),
    /// It is a whole number less than this.
    Less(i64),
}

/// A field selector: `spec.nodeName=n1,status.phase!=Running`. Empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// All must hold, in the order of the text.
    pub terms: Vec<FieldTerm>,
}

/// One part of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// Whether it must or must not have the value.
    pub wanted: Wanted,
    /// The value, without escapes.
    pub value: String,
}

/// Whether a field must have the value of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It must.
    Equal,
    /// It must not.
    Different,
}

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where in the text, in bytes from its start.
    pub at: usize,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "selector, at byte {}: {}", self.at, self.problem)
    }
}

impl std::error::Error for ParseError {}

// === impl LabelSelector ===

impl LabelSelector {
    /// The selector that is there and asks for nothing.
    pub fn everything() -> Self {
        Self::Where(Terms::default())
    }

    /// Selects what has all of these labels.
    pub fn of<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let match_labels = labels.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self::Where(Terms { match_labels, match_expressions: Vec::new() })
    }

    /// True if an object with these labels is meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Absent => false,
            Self::Where(terms) => terms.matches(labels),
        }
    }

    /// True if it is there and asks for nothing.
    pub fn is_everything(&self) -> bool {
        *self == Self::everything()
    }

    /// The same selector in the form that requests carry; `None` if it selects nothing.
    pub fn to_selector(&self) -> Option<Selector> {
        let Self::Where(terms) = self else { return None };
        let equal = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            test: Test::Equals(value.clone()),
        };
        let labels = terms.match_labels.iter().map(equal);
        Some(Selector::new(
            labels.chain(terms.match_expressions.iter().map(Expression::requirement)).collect(),
        ))
    }

    /// Everything that is wrong with it: path inside the selector, and a sentence.
    pub fn problems(&self) -> Vec<(String, &'static str)> {
        let Self::Where(terms) = self else { return Vec::new() };
        let mut problems = Vec::new();
        for (key, value) in &terms.match_labels {
            let path = || format!("matchLabels[{key}]");
            problems.extend(check_key(key).err().map(|p| (path(), p)));
            problems.extend(check_value(value).err().map(|p| (path(), p)));
        }
        for (i, expression) in terms.match_expressions.iter().enumerate() {
            let path = |field: &str| format!("matchExpressions[{i}].{field}");
            problems.extend(check_key(&expression.key).err().map(|p| (path("key"), p)));
            problems.extend(expression.check_count().err().map(|p| (path("values"), p)));
            for (j, value) in expression.values.iter().enumerate() {
                problems.extend(check_value(value).err().map(|p| (path(&format!("values[{j}]")), p)));
            }
        }
        problems
    }
}

impl Terms {
    fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|e| e.matches(labels))
    }
}

impl Expression {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => !value.is_some_and(|v| self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    fn requirement(&self) -> Requirement {
        let values = || self.values.iter().cloned().collect();
        let test = match self.operator {
            Operator::In => Test::In(values()),
            Operator::NotIn => Test::NotIn(values()),
            Operator::Exists => Test::Exists,
            Operator::DoesNotExist => Test::Absent,
        };
        Requirement { key: self.key.clone(), test }
    }

    fn check_count(&self) -> Result<(), &'static str> {
        match self.operator {
            Operator::In | Operator::NotIn if self.values.is_empty() => {
                Err("In and NotIn need at least one value")
            }
            Operator::Exists | Operator::DoesNotExist if !self.values.is_empty() => {
                Err("Exists and DoesNotExist take no values")
            }
            Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => Ok(()),
        }
    }
}

impl Serialize for LabelSelector {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => s.serialize_none(),
            Self::Where(terms) => terms.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for LabelSelector {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Option::<Terms>::deserialize(d)?.map_or(Self::Absent, Self::Where))
    }
}

// === impl Selector ===

impl Selector {
    /// The selector of these requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements }
    }

    /// All that must hold, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// True if an object with these labels is meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|r| r.test.holds(labels.get(&r.key).map(String::as_str)))
    }

    /// True if it asks for nothing.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Reads `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1,j<2`. An empty text selects everything.
    ///
    /// # Errors
    /// The text is no label selector, or names a label that cannot be.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        check_length(text)?;
        Parser { tokens: scan(text), next: 0 }.selector()
    }
}

impl Test {
    /// True if a label with this value (`None`: not there) passes.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match self {
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|v| wanted.contains(v)),
            Self::NotIn(unwanted) => !value.is_some_and(|v| unwanted.contains(v)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Greater(than) => number().is_some_and(|n| n > *than),
            Self::Less(than) => number().is_some_and(|n| n < *than),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.requirements)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match &self.test {
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::Exists => write!(f, "{key}"),
            Test::Absent => write!(f, "!{key}"),
            Test::Greater(than) => write!(f, "{key}>{than}"),
            Test::Less(than) => write!(f, "{key}<{than}"),
        }
    }
}

fn separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, parts: &[T]) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        part.fmt(f)?;
    }
    Ok(())
}

fn error<T>(at: usize, problem: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError { at, problem: problem.into() })
}

fn check_length(text: &str) -> Result<(), ParseError> {
    if text.len() > TEXT_MAX { error(TEXT_MAX, format!("longer than {TEXT_MAX} bytes")) } else { Ok(()) }
}

// === the text form of label selectors ===

/// A piece of the text and where it begins. The end of the text is an empty piece.
#[derive(Clone, Copy)]
struct Token<'t> {
    at: usize,
    text: &'t str,
}

impl Token<'_> {
    fn is_word(self) -> bool {
        !self.text.is_empty() && !self.text.starts_with(is_symbol)
    }

    fn shown(self) -> String {
        if self.text.is_empty() { "the end".to_owned() } else { format!("{:?}", self.text) }
    }
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Words and symbols; of the symbols the longest that is one.
fn scan(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if is_blank(first) {
            first.len_utf8()
        } else if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if is_symbol(first) {
            1
        } else {
            rest.find(|c| is_symbol(c) || is_blank(c)).unwrap_or(rest.len())
        };
        if !is_blank(first) {
            tokens.push(Token { at, text: &rest[..length] });
        }
        at += length;
    }
    tokens.push(Token { at, text: "" });
    tokens
}

struct Parser<'t> {
    /// Never empty: the last one is the end.
    tokens: Vec<Token<'t>>,
    next: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens[self.next]
    }

    /// The end is never consumed, so that it can be looked at again.
    fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_at_end_of_requirement(&self) -> bool {
        matches!(self.peek().text, "" | ",")
    }

    fn selector(mut self) -> Result<Selector, ParseError> {
        let mut requirements = Vec::new();
        if self.peek().text.is_empty() {
            return Ok(Selector::default());
        }
        loop {
            requirements.push(self.requirement()?);
            let after = self.take();
            match after.text {
                "" => return Ok(Selector::new(requirements)),
                "," => {}
                _ => return error(after.at, format!("expected ',' or the end, found {}", after.shown())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, ParseError> {
        let negated = self.peek().text == "!";
        if negated {
            self.take();
        }
        let key = self.word("a label")?;
        check_key(key.text)
            .or_else(|problem| error(key.at, format!("{:?} is no label: {problem}", key.text)))?;
        let test = match (negated, self.is_at_end_of_requirement()) {
            (true, _) => Test::Absent,
            (false, true) => Test::Exists,
            (false, false) => self.test()?,
        };
        Ok(Requirement { key: key.text.to_owned(), test })
    }

    fn test(&mut self) -> Result<Test, ParseError> {
        let operator = self.take();
        match operator.text {
            "=" | "==" => Ok(Test::Equals(self.value()?.to_owned())),
            "!=" => Ok(Test::NotEquals(self.value()?.to_owned())),
            "in" => Ok(Test::In(self.values()?)),
            "notin" => Ok(Test::NotIn(self.values()?)),
            ">" => Ok(Test::Greater(self.number()?)),
            "<" => Ok(Test::Less(self.number()?)),
            _ => error(operator.at, format!("expected = == != in notin > or <, found {}", operator.shown())),
        }
    }

    fn word(&mut self, what: &str) -> Result<Token<'t>, ParseError> {
        let token = self.take();
        if token.is_word() {
            Ok(token)
        } else {
            error(token.at, format!("expected {what}, found {}", token.shown()))
        }
    }

    /// One value; nothing is the empty value.
    fn value(&mut self) -> Result<&'t str, ParseError> {
        if self.is_at_end_of_requirement() {
            return Ok("");
        }
        let token = self.word("a value")?;
        check_value(token.text)
            .or_else(|problem| error(token.at, format!("{:?} is no value: {problem}", token.text)))?;
        Ok(token.text)
    }

    fn number(&mut self) -> Result<i64, ParseError> {
        let at = self.peek().at;
        let text = self.value()?;
        text.parse().or_else(|_| error(at, format!("expected a whole number, found {text:?}")))
    }

    /// `(a,b)`; a place without a word is the empty value, as in `()` and `(a,)`.
    fn values(&mut self) -> Result<BTreeSet<String>, ParseError> {
        let open = self.take();
        if open.text != "(" {
            return error(open.at, format!("expected '(', found {}", open.shown()));
        }
        let mut values = BTreeSet::new();
        loop {
            let value = if matches!(self.peek().text, "," | ")") { "" } else { self.value()? };
            values.insert(value.to_owned());
            let after = self.take();
            match after.text {
                "," => {}
                ")" => return Ok(values),
                _ => return error(after.at, format!("expected ',' or ')', found {}", after.shown())),
            }
        }
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    /// True if an object is meant whose fields `lookup` returns; a field without a value counts as empty.
    pub fn matches<'o>(&self, lookup: impl Fn(&str) -> Option<&'o str>) -> bool {
        self.terms.iter().all(|term| {
            let equal = lookup(&term.field).unwrap_or("") == term.value;
            match term.wanted {
                Wanted::Equal => equal,
                Wanted::Different => !equal,
            }
        })
    }

    /// True if it asks for nothing.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that it demands of `field`, if it does: lists of one object or of one node's pods need not look at all.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|t| t.field == field && t.wanted == Wanted::Equal)?;
        Some(&term.value)
    }

    /// Reads `a=b,c==d,e!=f`; `\,`, `\=` and `\\` stand for the letter after the backslash. An empty text, and an empty
    /// part between commas, ask for nothing.
    ///
    /// # Errors
    /// The text is no field selector.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        check_length(text)?;
        let mut terms = Vec::new();
        let mut start = 0;
        let commas = unescaped(text).filter(|(_, c)| *c == ',').map(|(at, _)| at);
        for end in commas.chain([text.len()]) {
            if start < end {
                terms.push(field_term(&text[start..end], start)?);
            }
            start = end + 1;
        }
        Ok(Self { terms })
    }
}

/// The letters of `text` that no backslash stands before, and where.
fn unescaped(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let here = is_escaped;
        is_escaped = !here && *c == '\\';
        !here
    })
}

/// Reads one part, which begins at `at`. The first operator divides it, of `==` and `=` the longer.
fn field_term(part: &str, at: usize) -> Result<FieldTerm, ParseError> {
    let operator = |(i, _): (usize, char)| {
        let rest = &part[i..];
        [("!=", Wanted::Different), ("==", Wanted::Equal), ("=", Wanted::Equal)]
            .into_iter()
            .find(|(op, _)| rest.starts_with(op))
            .map(|(op, wanted)| (i, i + op.len(), wanted))
    };
    let Some((end, start, wanted)) = unescaped(part).find_map(operator) else {
        return error(at, format!("expected a field, then = == or !=, then a value, found {part:?}"));
    };
    let field = &part[..end];
    if field.is_empty() {
        return error(at, "expected a field before the operator");
    }
    let value = unescape(&part[start..], at + start)?;
    Ok(FieldTerm { field: field.to_owned(), wanted, value })
}

fn unescape(text: &str, at: usize) -> Result<String, ParseError> {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.char_indices();
    while let Some((i, c)) = letters.next() {
        match c {
            '\\' => match letters.next() {
                Some((_, escaped @ ('\\' | ',' | '='))) => value.push(escaped),
                Some(_) | None => return error(at + i, "expected \\\\ \\, or \\= where a backslash stands"),
            },
            '=' => return error(at + i, "expected \\= for an equals sign inside a value"),
            _ => value.push(c),
        }
    }
    Ok(value)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.terms)
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.wanted {
            Wanted::Equal => "=",
            Wanted::Different => "!=",
        };
        let value = self.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        write!(f, "{}{operator}{value}", self.field)
    }
}

// === what a label may look like ===

/// A qualified name: a name, or a DNS subdomain, a slash and a name. Also the law for annotation keys and taints.
///
/// # Errors
/// One sentence about the first thing that is wrong.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let name = match key.split_once('/') {
        Some((prefix, name)) => {
            check_subdomain(prefix)?;
            name
        }
        None => key,
    };
    if name.is_empty() {
        return Err("the name must not be empty");
    }
    if name.len() > NAME_MAX {
        return Err("the name must have at most 63 letters");
    }
    if is_name(name) {
        Ok(())
    } else {
        Err(
            "the name must have letters, digits, '-', '_' and '.' only, and begin and end with a letter or digit",
        )
    }
}

/// The value of a label.
///
/// # Errors
/// One sentence about the first thing that is wrong.
pub fn check_value(value: &str) -> Result<(), &'static str> {
    if value.len() > NAME_MAX {
        return Err("the value must have at most 63 letters");
    }
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err(
            "the value must be empty, or have letters, digits, '-', '_' and '.' only, and begin and end with a letter or digit",
        )
    }
}

fn check_subdomain(prefix: &str) -> Result<(), &'static str> {
    if prefix.is_empty() {
        return Err("the prefix before '/' must not be empty");
    }
    if prefix.len() > PREFIX_MAX {
        return Err("the prefix before '/' must have at most 253 letters");
    }
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |part: &str| framed(part, is_letter) && part.bytes().all(|b| is_letter(b) || b == b'-');
    if prefix.split('.').all(is_label) {
        Ok(())
    } else {
        Err("the prefix before '/' must be a DNS subdomain: lower-case letters, digits, '-' and '.'")
    }
}

fn is_name(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    framed(text, |b| b.is_ascii_alphanumeric()) && text.bytes().all(is_inner)
}

/// True if `text` begins and ends with such a letter.
fn framed(text: &str, is_letter: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&is_letter) && text.bytes().next_back().is_some_and(&is_letter)
}

#[cfg(test)]
mod tests;
