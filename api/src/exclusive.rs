//! Which pods must never run twice.
//!
//! Exclusive = uses a volume that one node at most may hold, or belongs to a StatefulSet, or is marked. The question
//! is asked by the scheduler and the fence (with the world), by the law of deletion (with the store) and by the
//! grant; all of them must give the same answer, so it stands here.

use crate::annotation;
use crate::id::{Name, Namespace};
use crate::view::{PersistentVolumeClaim, Pod};

/// True if `pod` must never run twice. A claim that cannot be found counts as exclusive: not knowing is no permission.
pub fn is_exclusive<'c>(
    pod: &Pod,
    claim: impl Fn(&Namespace, &Name) -> Option<&'c PersistentVolumeClaim>,
) -> bool {
    is_exclusive_by_itself(pod)
        || pod.claims().any(|name| {
            claim(&pod.metadata.namespace, name).is_none_or(PersistentVolumeClaim::is_single_node)
        })
}

/// False if the pod is not exclusive whatever its claims are: what can be told from the pod alone, for an index.
pub fn may_be_exclusive(pod: &Pod) -> bool {
    is_exclusive_by_itself(pod) || pod.claims().next().is_some()
}

/// True if the pod is exclusive whatever its claims are.
pub fn is_exclusive_by_itself(pod: &Pod) -> bool {
    let marked = pod.metadata.annotations.get(annotation::EXCLUSIVE).is_some_and(|v| v == "true");
    let stateful = pod.metadata.controller().is_some_and(|o| o.kind == "StatefulSet");
    marked || stateful
}
