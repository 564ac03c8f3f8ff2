//! Worlds and decisions as text, for tests of decisions: a world goes in as lines, a decision comes out as lines.
//!
//! A text is a *history*. Lines are folded into the world one after the other, each with the next revision; a second
//! line about the same object replaces it. `at` moves the time at which the lines below it are seen; `now` says when
//! the decision is made.
//!
//! ```text
//! profile kubernetes                     the timing profile; `default` if there is no such line
//! set pod_gc_period 10s                  one value of the profile
//! flaw no-fresh-read                     a safeguard that is left out
//! set max_wait_for_unmount 1000m         a value of the profile
//! now 100s                               when the decision is made
//! at 30s                                 the lines below are seen then (0s at first: the start of the process)
//! node n1 ready=Unknown@90s taint=unreachable:NoExecute@90s boot=b1 zone=a silent=40s
//! pod default/db-0 on n1 owner=StatefulSet/db claim=data-db-0 running ready tolerate=default
//! claim default/data-db-0 volume=pv0 mode=RWO
//! volume pv0 handle=h0 mode=RWO claim=default/data-db-0
//! attachment pv0 n1 attached
//! replicaset default/web replicas=3      likewise deployment, statefulset (template=data), daemonset
//! incident n1 phase=Dead step=DeclaredDead@90s evidence=lease-expiry@95s brake=Storm
//! tombstone uid-db-0 pod=default/db-0 node=n1 boot=b1 claims=data-db-0
//! council n1,n2,n3
//! lease n1 renewed=20s
//! service default/web
//! slice default/web-1 service=web endpoint=10.0.0.1@n1
//! gone node/n1                           the object is deleted
//! ```
//!
//! - Words of every kind: `uid=`, `label=k=v`, `annotation=k=v`, `created=10s`, `finalizer=x`, `owner=Kind/name`,
//!   `terminating` or `terminating=90s` (when its grace ends), `generation=2`, `rev=12`; and any field by its path,
//!   as JSON: `spec.priority:=5`. Words of one kind stand in `text/line.rs`.
//! - Uids are `uid-<name>` unless said otherwise; an owner's or a node's uid is that of its line, if there was one.
//! - A pod is made in the identity of the node it is on, except under the profile `kubernetes`.
//! - A pod with an owner has the label `app=<owner>`, which is also what workloads and services select by.
//! - A time is `90s`, `1500ms` or `2m` after the epoch.
//! - A node is heard at `now`, unless it is `silent=40s`: then its line is seen, and its last beat was heard, 40 s
//!   before `now`. It is armed and idle unless said otherwise.
//! - Parts of a word in `"…"` may hold spaces; `#` at the beginning of a word begins a comment.
//!
//! Panics on a text that it does not understand: a test that says nothing must not pass.

mod line;
mod show;

use api::flaw::Flaw;
use api::timing::Profile;
use api::{Duration, Kind, Name, Namespace, ObjectKey, Time};
use expect_test::Expect as Golden;

use crate::controller::{Change, Controller, Key};
use crate::decision::Decision;
use crate::world::{Settings, World};

pub(crate) use show::{act, show};

/// Decides `key` in the world of `text` and compares the answer. A key is `cluster`, `node/n1`, `pod/default/db-0`.
#[track_caller]
pub(crate) fn check(controller: &dyn Controller, key: &str, text: &str, golden: Golden) {
    let story = Story::read(text);
    golden.assert_eq(&show(&story.decide(controller, key), story.now));
}

/// Compares which keys the *last* line of `text` touches.
#[track_caller]
pub(crate) fn check_touched(controller: &dyn Controller, text: &str, golden: Golden) {
    let story = Story::read(text);
    let mut keys = Vec::new();
    for change in &story.changes {
        controller.touched(change, &story.world, &mut keys);
    }
    keys.sort();
    keys.dedup();
    let lines: Vec<String> = keys.iter().map(|k| format!("{k}\n")).collect();
    golden.assert_eq(&lines.concat());
}

/// A world made of text, and the moment at which it is looked at.
#[derive(Debug)]
pub(crate) struct Story {
    /// The world.
    pub(crate) world: World,
    /// When the decision is made.
    pub(crate) now: Time,
    /// What the last line changed.
    changes: Vec<Change>,
}

impl Story {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Self {
        let lines: Vec<Vec<String>> = text.lines().map(words).filter(|w| !w.is_empty()).collect();
        let value = |verb: &str| lines.iter().find(|l| l[0] == verb).map(|l| l[1].as_str());
        let now = value("now").map_or(Time::ZERO, time);
        let flaw = value("flaw").map(|name| Flaw::named(name).expect("the flaw is known"));
        let profile = value("profile").unwrap_or("default");
        let mut timing = Profile::named(profile).expect("the profile is known").timing;
        for set in lines.iter().filter(|l| l[0] == "set") {
            timing.set(&set[1], &set[2]).unwrap_or_else(|e| panic!("{set:?}: {e}"));
        }
        let world = World::new(Settings { timing, flaw }, value("started").map_or(Time::ZERO, time));
        let mut story = Self { world, now, changes: Vec::new() };
        let mut at = story.world.started();
        for words in &lines {
            match words[0].as_str() {
                "now" | "flaw" | "profile" | "set" | "started" => {}
                "at" => {
                    at = time(&words[1]);
                    // Zones and deadlines are asked about `at`, so a history must not run ahead of the decision.
                    assert!(at <= now, "seen after now: {words:?}");
                }
                _ => story.fold(words, at),
            }
        }
        story
    }

    /// What the last line changed.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// What the controller decides about a key.
    pub(crate) fn decide(&self, controller: &dyn Controller, text: &str) -> Decision {
        controller.decide(&self.world, &key(text), self.now)
    }

    fn fold(&mut self, words: &[String], at: Time) {
        let next = self.world.revision().next();
        if words[0] == "gone" {
            let key = object_key(&words[1]);
            self.changes = self.world.fold(&key, None, next, at);
            assert!(!self.changes.is_empty(), "{key} was never there");
            return;
        }
        let line = line::read(&self.world, words, self.now);
        let rev = line.rev.unwrap_or(next);
        let seen = line.silent.map_or(at, |d| self.now.back(d));
        self.changes = self.world.fold(&line.view.key(), Some(line.view.clone()), rev, seen);
        line::hear(&mut self.world, &line, self.now);
    }
}

/// The words of a line.
fn words(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let (mut word, mut quoted) = (String::new(), false);
    for c in line.chars().chain([' ']) {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => out.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    assert!(!quoted, "unbalanced quotes: {line}");
    if let Some(comment) = out.iter().position(|w| w.starts_with('#')) {
        out.truncate(comment);
    }
    out
}

/// `90s`, `1500ms`, `2m`.
pub(crate) fn duration(text: &str) -> Duration {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or_else(|| panic!("{text} has no unit"));
    let (digits, unit) = text.split_at(at);
    let n: u64 = digits.parse().unwrap_or_else(|_| panic!("{text} is no time"));
    match unit {
        "ms" => Duration::from_ms(n),
        "s" => Duration::from_secs(n),
        "m" => Duration::from_secs(n * 60),
        _ => panic!("{text} has no unit that is known"),
    }
}

/// A moment, counted from the epoch.
pub(crate) fn time(text: &str) -> Time {
    Time::ZERO + duration(text)
}

/// `cluster`, `node/n1`, `pod/default/db-0`.
fn key(text: &str) -> Key {
    if text == "cluster" { Key::Cluster } else { Key::Object(object_key(text)) }
}

pub(crate) fn object_key(text: &str) -> ObjectKey {
    let parts: Vec<&str> = text.split('/').collect();
    let kind = Kind::ALL
        .into_iter()
        .find(|k| k.noun().to_lowercase() == parts[0])
        .unwrap_or_else(|| panic!("{text} has no kind that is known"));
    match parts[1..] {
        [name] => ObjectKey::cluster(kind, Name::from(name)),
        [namespace, name] => ObjectKey::namespaced(kind, &Namespace::from(namespace), Name::from(name)),
        _ => panic!("{text} is no key"),
    }
}

#[test]
fn a_text_is_read_word_by_word() {
    assert_eq!(words(r#"node n1 label=a="b c" # note"#), ["node", "n1", "label=a=b c"]);
    assert_eq!(time("1500ms"), Time::from_ms(1500));
    assert_eq!(key("pod/default/db-0").to_string(), "pod/default/db-0");
}

#[test]
fn a_line_of_every_kind_is_read() {
    let story = Story::read(
        r#"
        now 100s
        at 30s
        node n1 ready=Unknown@90s taint=unreachable:NoExecute@90s boot=b1 zone=a heartbeat=40s silent=40s
        node n2 ready=- unschedulable allocatable=cpu=4,memory=8Gi busy
        lease n1 renewed=20s
        volume pv0 handle=h0 mode=RWO only=n1
        claim default/data-db-0 volume=pv0 mode=RWO
        attachment pv0 n1 attached
        replicaset default/web replicas=3
        deployment default/web replicas=3
        statefulset default/db replicas=1 template=data service=db uid=u7
        daemonset default/log tolerate=*
        pod default/db-0 on n1 owner=StatefulSet/db claim=data-db-0 running ready tolerate=default requests=cpu=1
        pod default/web-1 owner=ReplicaSet/web select=disk=ssd spec.priority:=7 terminating label=note="a b"
        service default/web
        slice default/web-1 service=web endpoint=10.0.0.1@n1/web-1
        incident n1 phase=Dead step=DeclaredDead@90s evidence=lease-expiry@95s brake=Storm kill-bound=2200ms
        tombstone uid-x pod=default/x node=n1 boot=b1 claims=a,b
        council n1,n2
        gone lease/kube-node-lease/n1
        "#,
    );
    let world = &story.world;
    let n1 = world.node(&"n1".into()).expect("n1 was written");
    assert_eq!((n1.at, n1.recorded_boot()), (time("60s"), "b1".into()));
    assert_eq!(n1.spec.taints[0].time_added, Some(time("90s")));
    assert_eq!(world.pulse.last_heard(&"uid-n1".into()), Some(time("60s")));
    assert_eq!(world.pulse.last_heard(&"uid-n2".into()), Some(time("100s")));
    let db = world.pod(&"default".into(), &"db-0".into()).expect("db-0 was written");
    assert_eq!(
        (db.metadata.controller().map(|o| o.uid.as_str()), db.node_uid()),
        (Some("u7"), "uid-n1".into())
    );
    assert!(world.is_exclusive(db) && db.is_ready() && db.has_running_container());
    assert_eq!(world.open_incident(&"uid-n1".into()).map(|i| i.status.evidence.len()), Some(1));
    assert_eq!(world.tombstones().count() + world.attachments().count(), 2);
    assert_eq!(world.council().and_then(|c| c.newest()).map(|m| m.seats.len()), Some(2));
    assert!(world.node_lease(&"n1".into()).is_none());
}
