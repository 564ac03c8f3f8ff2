//! One line of a text world: an object, built as a tree and read through its view.
//!
//! A kind is one function that turns its words into fields. To add a word, add an arm to the kind's function.

use api::annotation;
use api::message::{Armed, Beat, Incarnation, Stamp};
use api::timing::Detection;
use api::view::View;
use api::{BootId, CouncilEpoch, Duration, Kind, Name, Namespace, NodeName, Rev, Time};
use serde_json::{Value, json};

use super::{duration, time};
use crate::world::World;

/// What a line says.
pub(super) struct Line {
    pub(super) view: View,
    /// The revision, if the line fixes it.
    pub(super) rev: Option<Rev>,
    /// For nodes: for how long nothing was heard.
    pub(super) silent: Option<Duration>,
    voice: Voice,
}

/// How a node speaks.
#[derive(Default)]
struct Voice {
    /// It never did.
    mute: bool,
    unarmed: bool,
    busy: bool,
    /// The boot that speaks, if it is not the recorded one.
    boot: Option<String>,
    kill_bound: Option<Duration>,
    council: u64,
}

/// An object being made.
struct Draft<'w> {
    world: &'w World,
    now: Time,
    tree: Value,
    rev: Option<Rev>,
    silent: Option<Duration>,
    voice: Voice,
}

/// Lets the pulse hear a node as its line says: last heard now, or `silent` ago. Only nodes that beat are heard.
pub(super) fn hear(world: &mut World, line: &Line, now: Time) {
    let View::Node(node) = &line.view else { return };
    let timing = &world.settings().timing;
    if line.voice.mute || timing.detection == Detection::Leases {
        return;
    }
    let heard = line.silent.map_or(now, |d| now.back(d));
    let boot = line.voice.boot.as_deref().map_or_else(|| node.recorded_boot(), BootId::from);
    let beat = Beat {
        node: node.name(),
        who: Incarnation { uid: node.metadata.uid.clone(), boot },
        sent: Stamp(heard),
        council: CouncilEpoch(line.voice.council),
        kill_bound: line.voice.kill_bound.unwrap_or(timing.kill_bound),
        armed: if line.voice.unarmed { Armed::No } else { Armed::Yes },
        idle: !line.voice.busy,
    };
    world.hear(&beat, heard, heard);
}

/// Reads one line.
pub(super) fn read(world: &World, words: &[String], now: Time) -> Line {
    let mut draft = Draft { world, now, tree: json!({}), rev: None, silent: None, voice: Voice::default() };
    let rest = words.get(2..).unwrap_or_default();
    let kind = match words[0].as_str() {
        "node" => draft.node(&words[1], rest),
        "pod" => draft.pod(&words[1], rest),
        "lease" => draft.lease(&words[1], rest),
        "replicaset" => draft.workload(Kind::ReplicaSet, &words[1], rest),
        "deployment" => draft.workload(Kind::Deployment, &words[1], rest),
        "statefulset" => draft.workload(Kind::StatefulSet, &words[1], rest),
        "daemonset" => draft.workload(Kind::DaemonSet, &words[1], rest),
        "volume" => draft.volume(&words[1], rest),
        "claim" => draft.claim(&words[1], rest),
        "attachment" => draft.attachment(&words[1], rest),
        "service" => draft.service(&words[1], rest),
        "slice" => draft.slice(&words[1], rest),
        "incident" => draft.incident(&words[1], rest),
        "tombstone" => draft.tombstone(&words[1], rest),
        "council" => draft.council(&words[1], rest),
        other => panic!("no line begins with {other}"),
    };
    let bytes = draft.tree.to_string();
    let view = View::read(kind, bytes.as_bytes()).unwrap_or_else(|e| panic!("{words:?}: {e}: {bytes}"));
    Line { view, rev: draft.rev, silent: draft.silent, voice: draft.voice }
}

/// `key=value`, or the word and nothing.
fn split(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

/// `something@90s`: the time, if it is there.
fn stamped(text: &str) -> (&str, Option<Time>) {
    text.rsplit_once('@').map_or((text, None), |(text, at)| (text, Some(time(at))))
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|t| !t.is_empty())
}

/// Well-known taint keys may be written without their prefix.
fn taint_key(key: &str) -> String {
    let short = [
        "not-ready",
        "unreachable",
        "unschedulable",
        "memory-pressure",
        "disk-pressure",
        "pid-pressure",
        "network-unavailable",
        "out-of-service",
    ];
    if short.contains(&key) { format!("node.kubernetes.io/{key}") } else { key.to_owned() }
}

fn toleration(text: &str) -> Value {
    let parts: Vec<&str> = text.split(':').collect();
    let (key, value) = split(parts[0]);
    let mut out = if parts[0].contains('=') {
        json!({"key": taint_key(key), "operator": "Equal", "value": value})
    } else if key == "*" {
        json!({"operator": "Exists"})
    } else {
        json!({"key": taint_key(key), "operator": "Exists"})
    };
    if let Some(effect) = parts.get(1).filter(|e| **e != "*") {
        out["effect"] = json!(effect);
    }
    if let Some(secs) = parts.get(2) {
        out["tolerationSeconds"] = json!(secs.parse::<i64>().expect("tolerated for a number of seconds"));
    }
    out
}

fn mode(text: &str) -> &'static str {
    match text {
        "RWO" => "ReadWriteOnce",
        "ROX" => "ReadOnlyMany",
        "RWX" => "ReadWriteMany",
        "RWOP" => "ReadWriteOncePod",
        _ => panic!("no access mode {text}"),
    }
}

fn resources(text: &str) -> Value {
    list(text).map(split).map(|(k, v)| (k.to_owned(), json!(v))).collect::<serde_json::Map<_, _>>().into()
}

// === impl Draft: words of every kind ===

impl Draft<'_> {
    /// The place of a field, made where it is missing.
    fn at(&mut self, path: &[&str]) -> &mut Value {
        path.iter().fold(&mut self.tree, |tree, part| &mut tree[*part])
    }

    fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        *self.at(path) = value.into();
    }

    fn push(&mut self, path: &[&str], value: impl Into<Value>) {
        let place = self.at(path);
        if place.is_null() {
            *place = json!([]);
        }
        place.as_array_mut().expect("the field is a list").push(value.into());
    }

    fn name(&mut self, name: &str) {
        self.set(&["metadata", "name"], name);
        self.set(&["metadata", "uid"], format!("uid-{name}"));
    }

    fn full_name<'n>(&mut self, text: &'n str) -> &'n str {
        let (namespace, name) = text.split_once('/').unwrap_or_else(|| panic!("{text} has no namespace"));
        self.name(name);
        self.set(&["metadata", "namespace"], namespace);
        name
    }

    /// A word that every kind takes.
    fn common(&mut self, word: &str) {
        if let Some((path, value)) = word.split_once(":=") {
            let value: Value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            let path: Vec<&str> = path.split('.').collect();
            self.set(&path, value);
            return;
        }
        let (key, value) = split(word);
        match key {
            "uid" => self.set(&["metadata", "uid"], value),
            "rev" => self.rev = Some(Rev(value.parse().expect("a revision is a number"))),
            "generation" => self.set(&["metadata", "generation"], value.parse::<u64>().expect("a number")),
            "created" => self.set(&["metadata", "creationTimestamp"], json!(time(value))),
            "finalizer" => self.push(&["metadata", "finalizers"], value),
            "label" => {
                let (key, value) = split(value);
                self.set(&["metadata", "labels", key], value);
            }
            "annotation" => {
                let (key, value) = split(value);
                self.set(&["metadata", "annotations", key], value);
            }
            "terminating" => {
                let at = if value.is_empty() { self.now } else { time(value) };
                self.set(&["metadata", "deletionTimestamp"], json!(at));
                self.set(&["metadata", "deletionGracePeriodSeconds"], 30);
            }
            "owner" => self.owner(value),
            _ => panic!("no word {word}"),
        }
    }

    fn owner(&mut self, text: &str) {
        let (kind, name) = text.split_once('/').unwrap_or_else(|| panic!("an owner is Kind/name: {text}"));
        let namespace = Namespace::from(self.tree["metadata"]["namespace"].as_str().unwrap_or_default());
        let known = Kind::ALL.into_iter().find(|k| k.noun() == kind);
        let uid = known.and_then(|kind| uid_of(self.world, kind, &namespace, &Name::from(name)));
        let uid = uid.unwrap_or_else(|| format!("uid-{name}"));
        let version = known.map_or_else(|| "v1".to_owned(), Kind::api_version);
        let owner = json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true,
            "blockOwnerDeletion": true});
        self.push(&["metadata", "ownerReferences"], owner);
        if self.tree["metadata"]["labels"]["app"].is_null() {
            self.set(&["metadata", "labels", "app"], name);
        }
    }

    /// The uid of a node as the world has it now.
    fn node_uid(&self, name: &str) -> String {
        let node = self.world.node(&NodeName::from(name));
        node.map_or_else(|| format!("uid-{name}"), |n| n.metadata.uid.to_string())
    }

    fn condition(&mut self, kind: &str, text: &str) {
        let (text, at) = stamped(text);
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        let mut condition = json!({"type": kind, "status": part(), "reason": part(), "message": part()});
        condition["lastTransitionTime"] = json!(at.unwrap_or_default());
        let place = self.at(&["status", "conditions"]);
        if let Some(conditions) = place.as_array_mut() {
            conditions.retain(|c| c["type"] != kind);
        }
        self.push(&["status", "conditions"], condition);
    }
}

fn uid_of(world: &World, kind: Kind, namespace: &Namespace, name: &Name) -> Option<String> {
    let uid = if kind == Kind::ReplicaSet {
        &world.replica_set(namespace, name)?.metadata.uid
    } else if kind == Kind::StatefulSet {
        &world.stateful_set(namespace, name)?.metadata.uid
    } else if kind == Kind::DaemonSet {
        &world.daemon_set(namespace, name)?.metadata.uid
    } else if kind == Kind::Deployment {
        &world.deployment(namespace, name)?.metadata.uid
    } else {
        return None;
    };
    Some(uid.to_string())
}

// === impl Draft: one function per kind ===

impl Draft<'_> {
    /// `ready=True|False|Unknown|-[:Reason][@t]` (`-`: no conditions at all; the default is True with no pressure),
    /// `heartbeat=t`, `condition=Type:Status[:Reason[:message]][@t]`, `taint=key[=value]:Effect[@t]`, `boot=`, `zone=`,
    /// `unschedulable`, `allocatable=cpu=4,memory=8Gi` (default: room for 110 pods; `full`: none), `in-use=unique-name`, `attached=unique-name`. Its voice, where
    /// nodes beat: `silent=`, `mute` (never heard), `unarmed`, `busy` (something exclusive runs), `speaks=boot`,
    /// `kill-bound=`, `knows-council=epoch`.
    fn node(&mut self, name: &str, words: &[String]) -> Kind {
        self.name(name);
        self.set(&["status", "allocatable"], resources("pods=110"));
        let ready = words.iter().find_map(|w| w.strip_prefix("ready=")).unwrap_or("True");
        if ready != "-" {
            self.condition("Ready", ready);
            for pressure in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
                self.condition(pressure, "False");
            }
        }
        for word in words {
            let (key, value) = split(word);
            match key {
                "ready" => {}
                "heartbeat" => self.set(&["status", "conditions"], self.heartbeats(time(value))),
                "condition" => {
                    let (kind, rest) = value.split_once(':').expect("a condition has a status");
                    self.condition(kind, rest);
                }
                "taint" => self.taint(value),
                "boot" => {
                    self.set(&["metadata", "annotations", annotation::RECORDED_BOOT], value);
                    self.set(&["status", "nodeInfo", "bootID"], value);
                }
                "zone" => self.set(&["metadata", "labels", annotation::ZONE_LABELS[1]], value),
                "unschedulable" => self.set(&["spec", "unschedulable"], true),
                "allocatable" => {
                    for (name, amount) in list(value).map(split) {
                        self.set(&["status", "allocatable", name], amount);
                    }
                }
                "full" => self.set(&["status", "allocatable"], json!({})),
                "in-use" => self.push(&["status", "volumesInUse"], value),
                "attached" => self.push(&["status", "volumesAttached"], json!({"name": value})),
                "silent" => self.silent = Some(duration(value)),
                "mute" => self.voice.mute = true,
                "unarmed" => self.voice.unarmed = true,
                "busy" => self.voice.busy = true,
                "speaks" => self.voice.boot = Some(value.to_owned()),
                "kill-bound" => self.voice.kill_bound = Some(duration(value)),
                "knows-council" => self.voice.council = value.parse().expect("an epoch is a number"),
                _ => self.common(word),
            }
        }
        Kind::Node
    }

    fn heartbeats(&self, at: Time) -> Value {
        let mut conditions = self.tree["status"]["conditions"].clone();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = json!(at);
        }
        conditions
    }

    fn taint(&mut self, text: &str) {
        let (text, at) = stamped(text);
        let (name, effect) = text.rsplit_once(':').expect("a taint has an effect");
        let (key, value) = split(name);
        let mut taint = json!({"key": taint_key(key), "value": value, "effect": effect});
        if let Some(at) = at {
            taint["timeAdded"] = json!(at);
        }
        self.push(&["spec", "taints"], taint);
    }

    /// `on n1`, `phase=` (default Running if bound, else Pending), `reason=`, `running` (a container runs), `ready`,
    /// `unready`, `ip=`, `tolerate=key[=value]:Effect[:secs]` (`*` for any) or `tolerate=default` (300 s each), `claim=`,
    /// `condition=Type:Status[:Reason[:message]][@t]`, `priority=`, `requests=cpu=1`, `node-uid=` (`-` for none), `grace=`,
    /// `scheduler=`, `select=k=v`, `host-port=`, `static`, `exclusive`, `ended=143[@t]` (the container did, with this
    /// exit code), `pinned=n1` (by affinity, as daemon pods are).
    fn pod(&mut self, text: &str, words: &[String]) -> Kind {
        let _ = self.full_name(text);
        self.set(&["spec", "containers"], json!([{"name": "main", "image": "main"}]));
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "on" {
                let node = words.next().expect("on which node");
                self.bind(node);
            } else if !self.pod_status(word) && !self.pod_spec(word) {
                self.common(word);
            }
        }
        Kind::Pod
    }

    /// True if the word was about the status of a pod.
    fn pod_status(&mut self, word: &str) -> bool {
        let (key, value) = split(word);
        match key {
            "phase" => self.set(&["status", "phase"], value),
            "reason" => self.set(&["status", "reason"], value),
            "ip" => self.set(&["status", "podIP"], value),
            "running" => self.set(
                &["status", "containerStatuses"],
                json!([{"name": "main", "ready": true, "state": {"running": {}}}]),
            ),
            "ended" => {
                let (code, at) = stamped(value);
                let code: i32 = code.parse().expect("an exit code");
                let ended = json!({"exitCode": code, "finishedAt": at.unwrap_or_default()});
                let status = json!({"name": "main", "state": {"terminated": ended}});
                self.set(&["status", "containerStatuses"], json!([status]));
            }
            "ready" => self.condition("Ready", "True"),
            "unready" => self.condition("Ready", "False"),
            "condition" => {
                let (kind, rest) = value.split_once(':').expect("a condition has a status");
                self.condition(kind, rest);
            }
            _ => return false,
        }
        true
    }

    /// True if the word was about the spec or the annotations of a pod.
    fn pod_spec(&mut self, word: &str) -> bool {
        let (key, value) = split(word);
        match key {
            "tolerate" if value == "default" => {
                for key in [annotation::NOT_READY, annotation::UNREACHABLE] {
                    self.push(&["spec", "tolerations"], toleration(&format!("{key}:NoExecute:300")));
                }
            }
            "tolerate" => self.push(&["spec", "tolerations"], toleration(value)),
            "claim" => self.push(
                &["spec", "volumes"],
                json!({"name": value, "persistentVolumeClaim": {"claimName": value}}),
            ),
            "priority" => self.set(&["spec", "priority"], value.parse::<i32>().expect("a number")),
            "requests" => self.tree["spec"]["containers"][0]["resources"]["requests"] = resources(value),
            "host-port" => {
                let port: u16 = value.parse().expect("a port");
                self.tree["spec"]["containers"][0]["ports"] =
                    json!([{"containerPort": port, "hostPort": port}]);
            }
            "node-uid" if value == "-" => {
                if let Some(annotations) = self.at(&["metadata", "annotations"]).as_object_mut() {
                    annotations.remove(annotation::NODE_UID);
                }
            }
            "node-uid" => self.set(&["metadata", "annotations", annotation::NODE_UID], value),
            "grace" => {
                let secs = value.parse::<u64>().expect("seconds");
                self.set(&["spec", "terminationGracePeriodSeconds"], secs);
            }
            "scheduler" => self.set(&["spec", "schedulerName"], value),
            "select" => {
                let (key, value) = split(value);
                self.set(&["spec", "nodeSelector", key], value);
            }
            "pinned" => {
                let field = json!({"key": "metadata.name", "operator": "In", "values": [value]});
                let required = "requiredDuringSchedulingIgnoredDuringExecution";
                let terms = json!([{"matchFields": [field]}]);
                self.set(&["spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms"], terms);
            }
            "static" => self.set(&["metadata", "annotations", annotation::MIRROR], "x"),
            "exclusive" => self.set(&["metadata", "annotations", annotation::EXCLUSIVE], "true"),
            _ => return false,
        }
        true
    }

    fn bind(&mut self, node: &str) {
        self.set(&["spec", "nodeName"], node);
        if self.tree["status"]["phase"].is_null() {
            self.set(&["status", "phase"], "Running");
        }
        if self.world.settings().is_automatic() {
            let uid = self.node_uid(node);
            self.set(&["metadata", "annotations", annotation::NODE_UID], uid);
        }
    }

    /// `renewed=t`, `holder-uid=`.
    fn lease(&mut self, name: &str, words: &[String]) -> Kind {
        self.name(name);
        self.set(&["metadata", "namespace"], annotation::NODE_LEASES);
        self.set(&["spec", "holderIdentity"], name);
        for word in words {
            let (key, value) = split(word);
            match key {
                "renewed" => self.set(&["spec", "renewTime"], json!(time(value))),
                "holder-uid" => self.set(&["spec", "holderUid"], value),
                _ => self.common(word),
            }
        }
        Kind::Lease
    }

    /// `replicas=`, `template=` (one claim template of that name, RWO), `parallel`, `service=`, `select=k=v` and
    /// `tolerate=` for the pods.
    fn workload(&mut self, kind: Kind, text: &str, words: &[String]) -> Kind {
        let name = self.full_name(text);
        self.set(&["spec", "selector", "matchLabels", "app"], name);
        self.set(&["spec", "template", "metadata", "labels", "app"], name);
        self.set(&["spec", "template", "spec", "containers"], json!([{"name": "main", "image": "main"}]));
        for word in words {
            let (key, value) = split(word);
            match key {
                "replicas" => self.set(&["spec", "replicas"], value.parse::<u32>().expect("a number")),
                "template" => self.push(
                    &["spec", "volumeClaimTemplates"],
                    json!({"metadata": {"name": value}, "spec": {"accessModes": ["ReadWriteOnce"]}}),
                ),
                "parallel" => self.set(&["spec", "podManagementPolicy"], "Parallel"),
                "service" => self.set(&["spec", "serviceName"], value),
                "select" => {
                    let (key, value) = split(value);
                    self.set(&["spec", "template", "spec", "nodeSelector", key], value);
                }
                "tolerate" => self.push(&["spec", "template", "spec", "tolerations"], toleration(value)),
                _ => self.common(word),
            }
        }
        kind
    }

    /// `handle=`, `driver=`, `mode=RWO`, `claim=ns/name` (bound to it), `only=n1` (reachable from that node alone).
    fn volume(&mut self, name: &str, words: &[String]) -> Kind {
        self.name(name);
        for word in words {
            let (key, value) = split(word);
            match key {
                "handle" => {
                    self.set(&["spec", "csi", "volumeHandle"], value);
                    if self.tree["spec"]["csi"]["driver"].is_null() {
                        self.set(&["spec", "csi", "driver"], "csi.example");
                    }
                }
                "driver" => self.set(&["spec", "csi", "driver"], value),
                "mode" => self.push(&["spec", "accessModes"], mode(value)),
                "claim" => {
                    let (namespace, claim) = value.split_once('/').expect("a claim has a namespace");
                    self.set(&["spec", "claimRef"], json!({"namespace": namespace, "name": claim}));
                }
                "only" => {
                    let field = json!({"key": "metadata.name", "operator": "In", "values": [value]});
                    let terms = json!([{"matchFields": [field]}]);
                    self.set(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"], terms);
                }
                _ => self.common(word),
            }
        }
        Kind::PersistentVolume
    }

    /// `volume=`, `mode=RWO`, `phase=`.
    fn claim(&mut self, text: &str, words: &[String]) -> Kind {
        let _ = self.full_name(text);
        for word in words {
            let (key, value) = split(word);
            match key {
                "volume" => self.set(&["spec", "volumeName"], value),
                "mode" => self.push(&["spec", "accessModes"], mode(value)),
                "phase" => self.set(&["status", "phase"], value),
                _ => self.common(word),
            }
        }
        Kind::PersistentVolumeClaim
    }

    /// `attachment pv0 n1 [attached] [name=…]`; the name is `va-<volume>-<node>` unless said otherwise.
    fn attachment(&mut self, volume: &str, words: &[String]) -> Kind {
        let node = words.first().expect("to which node");
        self.name(&format!("va-{volume}-{node}"));
        self.set(
            &["spec"],
            json!({"attacher": "csi.example", "nodeName": node,
            "source": {"persistentVolumeName": volume}}),
        );
        for word in &words[1..] {
            let (key, value) = split(word);
            match key {
                "attached" => self.set(&["status", "attached"], true),
                "attacher" => self.set(&["spec", "attacher"], value),
                "name" => self.name(value),
                _ => self.common(word),
            }
        }
        Kind::VolumeAttachment
    }

    /// Selects `app=<name>` unless `select=k=v`; `publish-not-ready`.
    fn service(&mut self, text: &str, words: &[String]) -> Kind {
        let name = self.full_name(text);
        self.set(&["spec", "selector", "app"], name);
        for word in words {
            let (key, value) = split(word);
            match key {
                "select" => {
                    let (key, value) = split(value);
                    self.set(&["spec", "selector"], json!({key: value}));
                }
                "publish-not-ready" => self.set(&["spec", "publishNotReadyAddresses"], true),
                _ => self.common(word),
            }
        }
        Kind::Service
    }

    /// `service=`, `endpoint=address[@node][/pod]` (ready and serving), `unready-endpoint=…`.
    fn slice(&mut self, text: &str, words: &[String]) -> Kind {
        let _ = self.full_name(text);
        self.set(&["addressType"], "IPv4");
        for word in words {
            let (key, value) = split(word);
            match key {
                "service" => self.set(&["metadata", "labels", annotation::SERVICE_NAME], value),
                "endpoint" | "unready-endpoint" => {
                    let (value, pod) = value.split_once('/').unwrap_or((value, ""));
                    let (address, node) = value.split_once('@').unwrap_or((value, ""));
                    let ready = key == "endpoint";
                    let namespace = self.tree["metadata"]["namespace"].clone();
                    let mut endpoint = json!({"addresses": [address], "nodeName": node,
                        "conditions": {"ready": ready, "serving": ready, "terminating": false}});
                    if !pod.is_empty() {
                        endpoint["targetRef"] = json!({"kind": "Pod", "namespace": namespace, "name": pod,
                            "uid": format!("uid-{pod}")});
                    }
                    self.push(&["endpoints"], endpoint);
                }
                _ => self.common(word),
            }
        }
        Kind::EndpointSlice
    }

    /// `phase=`, `boot=` (default: the node's recorded boot), `node-uid=`, `name=`, `step=Name@t`,
    /// `evidence=kind@t`, `brake=`, `end=`, `kill-bound=2200ms`. The name is `<node>-incident` unless said otherwise.
    fn incident(&mut self, node: &str, words: &[String]) -> Kind {
        self.name(&format!("{node}-incident"));
        let boot = self.world.node(&NodeName::from(node)).map(|n| n.recorded_boot()).unwrap_or_default();
        let uid = self.node_uid(node);
        self.set(&["spec"], json!({"nodeName": node, "nodeUID": uid, "bootID": boot}));
        for word in words {
            let (key, value) = split(word);
            match key {
                "phase" => self.set(&["status", "phase"], value),
                "boot" => self.set(&["spec", "bootID"], value),
                "node-uid" => self.set(&["spec", "nodeUID"], value),
                "name" => self.name(value),
                "step" => {
                    let (name, at) = stamped(value);
                    self.push(&["status", "steps"], json!({"name": name, "at": at.unwrap_or_default()}));
                }
                "evidence" => {
                    let (kind, at) = stamped(value);
                    let evidence = json!({"kind": kind, "at": at.unwrap_or_default(), "detail": ""});
                    self.push(&["status", "evidence"], evidence);
                }
                "brake" => self.push(&["status", "brakes"], value),
                "end" => self.set(&["status", "end"], value),
                "kill-bound" => self.set(&["status", "killBoundMs"], duration(value).ms()),
                _ => self.common(word),
            }
        }
        Kind::NodeIncident
    }

    /// `tombstone POD-UID pod=ns/name node=n1 [node-uid=] [boot=] [claims=a,b] [reason=]`.
    fn tombstone(&mut self, pod_uid: &str, words: &[String]) -> Kind {
        self.name(pod_uid);
        self.set(&["spec", "podUID"], pod_uid);
        for word in words {
            let (key, value) = split(word);
            match key {
                "pod" => {
                    let (namespace, name) = value.split_once('/').expect("a pod has a namespace");
                    self.set(&["spec", "podNamespace"], namespace);
                    self.set(&["spec", "podName"], name);
                }
                "node" => {
                    let uid = self.node_uid(value);
                    self.set(&["spec", "nodeName"], value);
                    self.set(&["spec", "nodeUID"], uid);
                }
                "node-uid" => self.set(&["spec", "nodeUID"], value),
                "boot" => self.set(&["spec", "bootID"], value),
                "claims" => self.set(&["spec", "claims"], list(value).collect::<Vec<_>>()),
                "reason" => self.set(&["spec", "reason"], value),
                _ => self.common(word),
            }
        }
        Kind::Tombstone
    }

    /// `council n1,n2,n3`: one membership of epoch 1; further lists are further memberships.
    fn council(&mut self, seats: &str, words: &[String]) -> Kind {
        self.name("council");
        let lists: Vec<&str> = std::iter::once(seats).chain(words.iter().map(String::as_str)).collect();
        for (epoch, seats) in (1u64..).zip(lists) {
            let seats: Vec<Value> =
                list(seats).map(|n| json!({"nodeName": n, "nodeUID": self.node_uid(n)})).collect();
            self.push(&["spec", "memberships"], json!({"epoch": epoch, "seats": seats}));
        }
        Kind::Council
    }
}
