//! The claim that a StatefulSet makes for one of its pods.

use api::object::ObjectKey;
use serde_json::{Value, json};

use super::{copy_meta, the_owner};
use crate::refusal::Refusal;
use crate::tree as t;

/// `volumeClaimTemplates[index]` as an object. It has no owner: data outlives the set, as upstream's default has it.
pub(super) fn from_template(
    owner_key: &ObjectKey,
    owner: Option<&Value>,
    index: usize,
) -> Result<Value, Refusal> {
    let owner = the_owner(owner_key, owner, None)?;
    let Some(template) = t::list(owner, &["spec", "volumeClaimTemplates"]).get(index) else {
        let field = format!("spec.volumeClaimTemplates[{index}]");
        return Err(Refusal::required(owner_key, &field));
    };
    let mut tree = json!({});
    copy_meta(template, &mut tree, &["labels", "annotations"]);
    // Upstream marks the claims by what selects the pods, and the set wins over the template.
    if let Some(Value::Object(labels)) = t::get(owner, &["spec", "selector", "matchLabels"]) {
        let onto = t::fields(&mut tree, &["metadata", "labels"]);
        onto.extend(labels.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    if let Some(spec) = template.get("spec") {
        t::set(t::fields(&mut tree, &[]), "spec", spec.clone());
    }
    Ok(tree)
}
