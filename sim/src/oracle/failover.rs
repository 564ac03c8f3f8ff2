//! F2: when one node dies, its StatefulSet pods run elsewhere in time.
//!
//! Responsible for: measuring from the power cut to the first process elsewhere, in runs that promise it. Leaves to
//! [`super::twice`] that nothing runs twice on the way.

use std::collections::BTreeMap;

use api::{Duration, Name, Namespace, NodeName, Time};

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
}

/// What F2 allows under `setting`. The part after "fenced" is scheduling, attaching, mounting and starting.
pub(super) fn budget(setting: &Setting) -> Duration {
    if setting.timing.fenced_budget <= Duration::from_secs(4) {
        Duration::from_secs(5)
    } else {
        Duration::from_secs(10)
    }
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
                if took > budget(&scene.setting) {
                    voice.say(format!("pod {}/{} runs elsewhere only after {took}", pod.0, pod.1));
                }
                self.waiting.remove(&pod);
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
