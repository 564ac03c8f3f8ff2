//! N1, U1, G1 and D1: one incident per node uid, pods under the node uid they were bound to, writes of leaders only, no
//! decision that panics.
//!
//! Responsible for: four small questions. Leaves to [`super::evidence`] what an incident may lead to.

use api::timing::Automatic;
use api::view::View;

use super::scene::Scene;
use super::{Voice, Watch};
use crate::observe::{Fact, Observation};
use crate::trace::server_name;

/// Invariant N1.
#[derive(Debug)]
pub(super) struct Incidents;

/// Invariant U1, case P86: a name is not a machine.
#[derive(Debug)]
pub(super) struct Bindings;

/// Invariant G1, case P76.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// How the writes of the leader begin, by the word of the store; empty before the first election.
    leader: String,
}

/// Invariant D1.
#[derive(Debug)]
pub(super) struct Panics;

// === impl Incidents ===

impl Watch for Incidents {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        let Observation::Written { new: Some(View::NodeIncident(incident)), old: None, .. } = &fact.what
        else {
            return;
        };
        let uid = &incident.spec.node_uid;
        let open = scene.incidents().filter(|i| i.is_open() && i.spec.node_uid == *uid).count();
        if open > 1 {
            voice.say(format!("{open} incidents of node uid {uid} ({}) are open", incident.spec.node_name));
        }
    }
}

// === impl Bindings ===

impl Watch for Bindings {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        let Observation::Started(instance) = &fact.what else { return };
        // Stock binds to a name; it is what V-16 shows.
        if scene.setting.timing.automatic == Automatic::Off {
            return;
        }
        let pod = scene.pod(&instance.namespace, &instance.name);
        let Some(pod) = pod.filter(|p| p.metadata.uid == instance.pod_uid) else { return };
        let bound = pod.node_uid();
        if !bound.is_empty() && bound != instance.node_uid {
            voice.say(format!(
                "pod {}/{} starts under node uid {} but was bound to {bound}",
                instance.namespace, instance.name, instance.node_uid
            ));
        }
    }
}

// === impl Terms ===

impl Watch for Terms {
    fn see(&mut self, _scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        match &fact.what {
            Observation::Elected { server, .. } => self.leader = format!("{}/", server_name(*server)),
            Observation::Written { key, by, .. }
                if by.starts_with("server-") && !by.starts_with(&self.leader) =>
            {
                voice.say(format!("{by} wrote {key}, but {} leads", self.leader.trim_end_matches('/')));
            }
            _ => {}
        }
    }
}

// === impl Panics ===

impl Watch for Panics {
    fn see(&mut self, _scene: &Scene, _fact: &Fact, _voice: &mut Voice<'_>) {}

    fn end(&mut self, scene: &Scene, voice: &mut Voice<'_>) {
        if scene.panics() > 0 {
            voice.say(format!("{} decisions panicked", scene.panics()));
        }
    }
}
