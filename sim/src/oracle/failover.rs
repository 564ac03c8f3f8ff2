//! F2: when one node dies, its StatefulSet pods are elsewhere in time.
//!
//! Responsible for: measuring from the power cut to the decision (the pod is bound elsewhere) and to the first process
//! there, in runs that promise it. Leaves to [`super::twice`] that nothing runs twice on the way.
//!
//! The decision is ours and has a budget made of the timing laws. What comes after it is the work of hands: detach,
//! attach, mount, sandbox, start. In the simulator they take what is drawn for them, whatever the profile.

use std::collections::{BTreeMap, BTreeSet};

use api::view::View;
use api::{Duration, Name, Namespace, NodeName, Time, Uid};

use super::scene::Scene;
use super::{Promise, Setting, Voice, Watch};
use crate::observe::{Fact, Instance, Observation};

/// Invariant F2.
#[derive(Debug, Default)]
pub(super) struct Failovers {
    /// StatefulSet pods by machine: facts about a power cut may come after the end of its instances.
    homes: BTreeMap<(Namespace, Name), NodeName>,
    /// Pods whose machine lost power, and when.
    waiting: BTreeMap<(Namespace, Name), (Time, NodeName)>,
    /// Pods that were seen bound elsewhere.
    bound: BTreeSet<Uid>,
}

/// From "fenced" to "bound elsewhere": release, the new pod, the scheduler; a dozen writes and watches, each up to 50 ms
/// away from a store of its own.
const DECIDING: Duration = Duration::from_ms(800);
/// What the simulated hands may take at worst, with the requests between them.
const HANDS: Duration = Duration::from_ms(1_500);

/// From the power cut to the pod bound elsewhere, at most.
fn decision_budget(setting: &Setting) -> Duration {
    setting.timing.silent_death_to_fenced_worst() + setting.timing.leader_read + DECIDING
}

/// From the power cut to its first process elsewhere, at most.
fn running_budget(setting: &Setting) -> Duration {
    decision_budget(setting) + HANDS
}

fn is_stateful(scene: &Scene, instance: &Instance) -> bool {
    let pod = scene.pod(&instance.namespace, &instance.name);
    pod.and_then(|p| p.metadata.controller()).is_some_and(|o| o.kind == "StatefulSet")
}

// === impl Failovers ===

impl Watch for Failovers {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !scene.setting.promises.contains(&Promise::FailsOver) {
            return;
        }
        match &fact.what {
            Observation::Started(instance) if is_stateful(scene, instance) => {
                let pod = (instance.namespace.clone(), instance.name.clone());
                self.homes.insert(pod.clone(), instance.machine.clone());
                let Some((since, from)) = self.waiting.get(&pod) else { return };
                if *from == instance.machine {
                    return;
                }
                let took = fact.at.since(*since);
                voice.count_failover(took);
                if took > running_budget(&scene.setting) {
                    voice.say(format!("pod {}/{} runs elsewhere only after {took}", pod.0, pod.1));
                }
                self.waiting.remove(&pod);
            }
            Observation::Written { new: Some(View::Pod(pod)), .. } if pod.is_bound() => {
                let name = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
                let Some((since, from)) = self.waiting.get(&name) else { return };
                let first = *from != pod.spec.node_name && self.bound.insert(pod.metadata.uid.clone());
                let took = fact.at.since(*since);
                if first && took > decision_budget(&scene.setting) {
                    voice.say(format!("pod {}/{} is bound elsewhere only after {took}", name.0, name.1));
                }
            }
            Observation::PoweredOff(machine) => {
                for (pod, home) in &self.homes {
                    if home == machine {
                        self.waiting.insert(pod.clone(), (fact.at, machine.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _scene: &Scene, voice: &mut Voice<'_>) {
        for ((namespace, name), (_, from)) in &self.waiting {
            voice.say(format!("pod {namespace}/{name} of {from} never ran elsewhere"));
        }
    }
}
