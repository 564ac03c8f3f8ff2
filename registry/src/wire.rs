//! How an object is stored and sent: one serialization per revision, to which only the revision is added.
//!
//! A stored object is JSON without `resourceVersion` that begins with `{"kind":"…","apiVersion":"…","metadata":{`. For
//! one kind this beginning is the same for all objects, so the place where the revision belongs is known without
//! looking: an answer is three slices, and nothing is parsed or copied.
