//! What is wrong with an object: every problem, each with its place, in the words of the field.
//!
//! Responsible for: the path of a field without allocating until there is a problem, the kinds of problems and their
//! text, which clients match on. Leaves to `status` the answer that carries them.
//!
//! Invariant: a check never stops at the first problem; it goes on with what can still be judged.

use std::fmt;

use serde_json::Value;

/// Where in an object: `spec.containers[0].name`, `metadata.labels[app]`. Lives on the stack of the check that
/// descends; becomes text only when something is wrong there.
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Field(&'p str),
    Index(usize),
    Key(&'p str),
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It must be there.
    Required,
    /// It is there and wrong.
    Invalid(Value),
    /// It has the wrong JSON type.
    Type(Value),
    /// It is none of the words that are allowed, which are given.
    Unsupported(Value, Vec<String>),
    /// An entry with the same identity came before.
    Duplicate(Value),
    /// It must not be set, or not be changed.
    Forbidden,
    /// It has more bytes than this.
    TooLong(usize),
    /// It has this many entries and may have that many.
    TooMany(usize, usize),
    /// What it names is not there.
    NotFound(Value),
}

/// One problem of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `spec.replicas`.
    pub field: String,
    /// What is wrong.
    pub fault: Fault,
    /// More about it; may be empty.
    pub detail: String,
}

/// All problems of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

// === impl Path ===

impl<'p> Path<'p> {
    /// A field of the object itself.
    pub const fn root(field: &'p str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }

    /// A field below.
    pub const fn field(&'p self, field: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Field(field) }
    }

    /// An entry of a list.
    pub const fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// An entry of a map.
    pub const fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_none() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

// === impl Problem ===

impl Problem {
    /// The machine-readable reason of a `StatusCause`.
    pub fn reason(&self) -> &'static str {
        match self.fault {
            Fault::Required => "FieldValueRequired",
            Fault::Invalid(_) => "FieldValueInvalid",
            Fault::Type(_) => "FieldValueTypeInvalid",
            Fault::Unsupported(..) => "FieldValueNotSupported",
            Fault::Duplicate(_) => "FieldValueDuplicate",
            Fault::Forbidden => "FieldValueForbidden",
            Fault::TooLong(_) => "FieldValueTooLong",
            Fault::TooMany(..) => "FieldValueTooMany",
            Fault::NotFound(_) => "FieldValueNotFound",
        }
    }

    /// The text without the field: the message of a `StatusCause`.
    pub fn message(&self) -> String {
        let mut text = match &self.fault {
            Fault::Required => "Required value".to_owned(),
            Fault::Invalid(value) => format!("Invalid value: {}", shown(value)),
            Fault::Type(value) => format!("Invalid value: {}", shown(value)),
            Fault::Unsupported(value, _) => format!("Unsupported value: {}", shown(value)),
            Fault::Duplicate(value) => format!("Duplicate value: {}", shown(value)),
            Fault::Forbidden => "Forbidden".to_owned(),
            Fault::TooLong(_) => "Too long".to_owned(),
            Fault::TooMany(count, _) => format!("Too many: {count}"),
            Fault::NotFound(value) => format!("Not found: {}", shown(value)),
        };
        let detail = match &self.fault {
            Fault::Unsupported(_, allowed) if !allowed.is_empty() => {
                let words: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
                format!("supported values: {}", words.join(", "))
            }
            Fault::TooLong(max) if self.detail.is_empty() => format!("may not be more than {max} bytes"),
            Fault::TooMany(_, max) if self.detail.is_empty() => format!("must have at most {max} items"),
            Fault::Required
            | Fault::Invalid(_)
            | Fault::Type(_)
            | Fault::Unsupported(..)
            | Fault::Duplicate(_)
            | Fault::Forbidden
            | Fault::TooLong(_)
            | Fault::TooMany(..)
            | Fault::NotFound(_) => self.detail.clone(),
        };
        if !detail.is_empty() {
            text.push_str(": ");
            text.push_str(&detail);
        }
        text
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

/// A value as a problem shows it: compact JSON.
fn shown(value: &Value) -> String {
    value.to_string()
}

// === impl Problems ===

impl Problems {
    /// Adds one.
    pub fn add(&mut self, at: &Path<'_>, fault: Fault, detail: impl Into<String>) {
        self.0.push(Problem { field: at.to_string(), fault, detail: detail.into() });
    }

    /// `Required value`; the detail may be empty.
    pub fn required(&mut self, at: &Path<'_>, detail: &str) {
        self.add(at, Fault::Required, detail);
    }

    /// `Invalid value: <value>: <detail>`.
    pub fn invalid(&mut self, at: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(at, Fault::Invalid(value.into()), detail);
    }

    /// `Unsupported value: <value>: supported values: …`.
    pub fn unsupported(&mut self, at: &Path<'_>, value: impl Into<Value>, allowed: &[&str]) {
        let allowed = allowed.iter().map(|&word| word.to_owned()).collect();
        self.add(at, Fault::Unsupported(value.into(), allowed), "");
    }

    /// `Duplicate value: <value>`.
    pub fn duplicate(&mut self, at: &Path<'_>, value: impl Into<Value>) {
        self.add(at, Fault::Duplicate(value.into()), "");
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(&mut self, at: &Path<'_>, detail: impl Into<String>) {
        self.add(at, Fault::Forbidden, detail);
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [problem] => write!(f, "{problem}"),
            problems => {
                let all: Vec<String> = problems.iter().map(Problem::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
        }
    }
}
