//! The only error that leaves the API: Kubernetes' `Status`.
//!
//! Responsible for: one constructor per reason, with upstream's code and words. Leaves to the server: sending it.
//! Every inner error is turned into one of these in one place.

use serde_json::{Value, json};

use crate::problem::Problems;
use crate::resource::Resource;

/// Why a request failed, as clients read it. `reason` decides `code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The machine-readable reason.
    pub reason: Reason,
    /// One sentence.
    pub message: String,
    /// `details`, whole; `Null` if there is nothing to tell.
    pub details: Value,
}

/// The reasons of the API, and the HTTP code of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is upstream's word")]
pub enum Reason {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    /// 410: the revision asked for is gone. Also `Gone`.
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
    /// 507: the store has no room.
    InsufficientStorage,
}

// === impl Reason ===

impl Reason {
    /// The HTTP code.
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
            Self::InsufficientStorage => 507,
        }
    }
}

// === impl Status ===

impl Status {
    /// A status without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: Value::Null }
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 404: no object of that name.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::about(Reason::NotFound, resource, name, format!("{} {name:?} not found", resource.qualified()))
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::about(Reason::AlreadyExists, resource, name, message)
    }

    /// 409: the object is not as the request expects.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::about(Reason::Conflict, resource, name, message)
    }

    /// 403: the caller, or the state of things, does not allow it.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", resource.qualified())
        } else {
            format!("{} {name:?} is forbidden: {why}", resource.qualified())
        };
        Self::about(Reason::Forbidden, resource, name, message)
    }

    /// 422: all problems of an object.
    pub fn invalid(resource: &Resource, name: &str, problems: &Problems) -> Self {
        let kind = resource.qualified_kind();
        let causes: Vec<Value> = problems
            .0
            .iter()
            .map(|problem| {
                json!({ "reason": problem.reason(), "message": problem.message(), "field": problem.field })
            })
            .collect();
        Self {
            reason: Reason::Invalid,
            message: format!("{kind} {name:?} is invalid: {problems}"),
            details: json!({ "name": name, "group": resource.group, "kind": resource.kind, "causes": causes }),
        }
    }

    /// A status about one object. Its details name the resource by its plural, as upstream does.
    pub fn about(reason: Reason, resource: &Resource, name: &str, message: String) -> Self {
        let mut details = json!({ "name": name, "group": resource.group, "kind": resource.plural });
        if let Some(fields) = details.as_object_mut() {
            fields.retain(|_, value| value.as_str().is_none_or(|text| !text.is_empty()));
        }
        Self { reason, message, details }
    }

    /// The object that is sent.
    pub fn tree(&self) -> Value {
        let mut tree = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": format!("{:?}", self.reason), "code": self.reason.code(),
        });
        if !self.details.is_null()
            && let Some(fields) = tree.as_object_mut()
        {
            fields.insert("details".to_owned(), self.details.clone());
        }
        tree
    }
}
