use std::collections::BTreeSet;

use proptest::prelude::*;

use super::laws::Scope;
use super::*;

fn timing(profile: &str) -> Timing {
    Profile::named(profile).unwrap().timing
}

fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

#[test]
fn every_profile_is_lawful() {
    for profile in PROFILES {
        assert_eq!(check(&profile.timing), [], "{}", profile.name);
    }
    assert_eq!(PROFILES[0].timing, Timing::default());
    let unknown = Profile::named("slow").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no timing profile \"slow\"; there are default, fast, kubernetes"
    );
}

/// Switching the automatic layer on under `kubernetes` needs beats, and nothing else.
#[test]
fn kubernetes_can_be_made_automatic() {
    let mut t = timing("kubernetes");
    t.automatic = Automatic::On;
    let broken = check(&t);
    assert_eq!(broken.len(), 1);
    assert_eq!(
        broken[0].to_string(),
        "timing law L-AUTOMATIC violated: detection by beats = 0 must be at least automatic layer = 1 \
         (without beats there are no grants, and silence proves nothing)"
    );
    t.detection = Detection::Beats;
    assert_eq!(check(&t), []);
}

/// Law, profile, field and the value that breaks it. The other laws may break with it.
const BROKEN: &[(&str, &str, &str, &str)] = &[
    ("L-DRIFT", "default", "drift_ppm", "0ppm"),
    ("L-DRIFT-BOUND", "kubernetes", "drift_ppm", "100001ppm"),
    ("L-KILL-DECLARED", "default", "kill_bound", "0ms"),
    ("L-KILL", "default", "unmount", "1601ms"),
    ("L-WATCHDOG", "default", "watchdog", "2001ms"),
    ("L-AUTOMATIC", "default", "detection", "leases"),
    ("L-BLIP", "default", "blip", "3157ms"),
    ("L-READ", "default", "leader_read", "157ms"),
    ("L-OUTAGE", "default", "contact_window", "3374ms"),
    ("L-RETURN", "default", "council_answer", "4494ms"),
    ("L-NOISE", "default", "contact_window", "1199ms"),
    ("L-DEAD-BLIP", "default", "dead", "3600ms"),
    ("L-ORDER", "default", "suspect", "4s"),
    ("L-LOST-BEAT", "default", "suspect", "1099ms"),
    ("L-MARGIN", "default", "dead", "1799ms"),
    ("L-PACE", "default", "beat", "99ms"),
    ("L-ASKING", "default", "asking", "99ms"),
    ("L-HIDDEN", "default", "dead", "4295ms"),
    ("L-FENCED", "default", "kill_bound", "2383ms"),
    ("L-TRAFFIC", "default", "withdraw", "881ms"),
    ("L-PATIENCE", "default", "redial", "2001ms"),
    ("L-PATIENCE-BOOT", "default", "patience_after_boot", "5999ms"),
    ("L-REBOOT", "default", "reboot_patience", "7s"),
    ("L-COUNCIL", "default", "council_size_max", "2"),
    ("L-STORM", "default", "storm_window", "2001ms"),
    ("L-STORM-BEATS", "default", "storm_window", "999ms"),
    ("L-STORM-SHARE", "default", "storm_share_percent", "51%"),
    ("L-INCIDENTS", "default", "nodes_per_incident", "1"),
    ("L-FLAP", "default", "flap_patience", "3999ms"),
    ("L-FLAP-WINDOW", "default", "flap_window", "11999ms"),
    ("L-RENEW", "kubernetes", "lease_renew", "40s"),
    ("L-LEASE", "kubernetes", "lease_duration", "50s"),
    ("L-LEASE-MARGIN", "kubernetes", "lease_retry_cycle", "45001ms"),
    ("L-STARTUP", "kubernetes", "node_startup_grace", "49999ms"),
    ("L-STATUS", "kubernetes", "status_frequency", "301s"),
    ("L-EVICTION", "kubernetes", "eviction_interval_secondary", "9999ms"),
    ("L-ZONE", "kubernetes", "unhealthy_threshold_percent", "101%"),
    ("L-QUARANTINE", "kubernetes", "gc_quarantine", "19999ms"),
];

#[test]
fn each_law_fails_when_its_number_is_broken() {
    for (id, profile, field, value) in BROKEN {
        let mut t = timing(profile);
        t.set(field, value).unwrap();
        let broken = check(&t);
        assert!(broken.iter().any(|v| v.law.id == *id), "{id}: {broken:?}");
        assert!(!laws::is_lawful(&t), "{id}");
        for violation in broken {
            let told = violation.to_string();
            assert!(told.starts_with("timing law L-") && !told.contains('{'), "{told}");
        }
    }
    let tested: Vec<_> = BROKEN.iter().map(|b| b.0).collect();
    let listed: Vec<_> = LAWS.iter().map(|l| l.id).collect();
    assert_eq!(tested, listed, "each law of the list is broken here once, in its order");
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len());
}

/// Each number of the table above is the first that breaks its law: one less (or more) is lawful for that law.
#[test]
fn laws_are_exact_to_the_millisecond() {
    for (id, field, value) in [
        ("L-BLIP", "blip", "3156ms"),
        ("L-READ", "leader_read", "156ms"),
        ("L-OUTAGE", "contact_window", "3372ms"),
        ("L-RETURN", "council_answer", "4495ms"),
        ("L-DEAD-BLIP", "dead", "3601ms"),
        ("L-HIDDEN", "dead", "4294ms"),
        ("L-FENCED", "kill_bound", "2382ms"),
        ("L-TRAFFIC", "withdraw", "880ms"),
        ("L-WATCHDOG", "watchdog", "2s"),
    ] {
        let mut t = timing("default");
        t.set(field, value).unwrap();
        assert!(check(&t).iter().all(|v| v.law.id != id), "{id}");
    }
}

#[test]
fn a_violation_says_what_would_follow() {
    let mut t = timing("default");
    t.grant = ms(4_200);
    let told: Vec<_> = check(&t).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "timing law L-BLIP violated: grant·(1−drift) = 4158 ms must be at least blip + 2·beat + 4·delay = 4200 ms \
             (a network blip of 3000 ms would stop exclusive work)",
            "timing law L-READ violated: grant·(1−drift) = 4158 ms must be at least \
             blip + 2·beat + 4·delay + leader_read = 4250 ms \
             (a beat that waits 50 ms for its batch would be answered too late after a blip of 3000 ms)",
        ]
    );
    assert_eq!(LAWS[6].to_string(), "L-BLIP: grant·(1−drift) must be at least blip + 2·beat + 4·delay");
}

/// Laws about beats are not asked where leases judge, and the other way round.
#[test]
fn laws_of_a_part_that_is_off_are_not_asked() {
    let mut t = timing("kubernetes");
    t.beat = ms(60_000);
    t.grant = Duration::ZERO;
    t.kill_bound = Duration::ZERO;
    assert_eq!(check(&t), []);
    let mut t = timing("default");
    t.lease_retry_cycle = ms(60_000);
    assert_eq!(check(&t), []);
    let scopes = |scope| LAWS.iter().filter(|l| l.scope == scope).count();
    assert!(scopes(Scope::Always) > 0 && scopes(Scope::Beats) > 0 && scopes(Scope::Leases) > 0);
}

/// The numbers that the protocol was checked with: 6.8 s and 3.8 s to fenced, blips of 3.15 s and 1.72 s.
#[test]
fn the_numbers_of_the_protocol() {
    let t = timing("default");
    assert_eq!(t.grant_by_server(), ms(4_444));
    assert_eq!(t.answer_by_server(), ms(10_100));
    assert_eq!(t.kill_by_server(t.kill_bound), ms(2_222));
    assert_eq!(t.clean_limit(), ms(10_203));
    assert_eq!(t.silent_death_to_fenced_worst(), ms(6_766));
    assert_eq!(t.silent_death_to_no_traffic_worst(), ms(2_620));
    assert_eq!(t.blip_survived(), ms(3_156));
    // After an outage in which the node was told none-here: A(1+ρ) + K(1+ρ).
    assert_eq!(t.answer_by_server() + t.kill_by_server(t.kill_bound), ms(12_322));
    let t = timing("fast");
    assert_eq!(t.grant_by_server(), ms(2_475));
    assert_eq!(t.silent_death_to_fenced_worst(), ms(3_787));
    assert_eq!(t.silent_death_to_no_traffic_worst(), ms(1_410));
    assert_eq!(t.blip_survived(), ms(1_725));
    // A blip of 3 s needs this grant in `fast`, and then fencing no longer fits.
    let t = Timing { grant: ms(3_740), blip: ms(3_000), ..t };
    assert!(check(&t).iter().all(|v| v.law.id != "L-BLIP"));
    assert!(check(&t).iter().any(|v| v.law.id == "L-FENCED"));
    assert_eq!(t.silent_death_to_fenced_worst(), ms(5_090));
}

#[test]
fn the_numbers_of_upstream() {
    let t = timing("kubernetes");
    assert_eq!((t.automatic, t.detection), (Automatic::Off, Detection::Leases));
    for (name, text) in [
        ("lease_duration", "40000 ms"),
        ("lease_renew", "10000 ms"),
        ("status_frequency", "10000 ms"),
        ("status_report", "300000 ms"),
        ("node_monitor_grace", "50000 ms"),
        ("node_monitor_period", "5000 ms"),
        ("node_startup_grace", "60000 ms"),
        ("eviction_interval", "10000 ms"),
        ("eviction_interval_secondary", "100000 ms"),
        ("large_zone", "50"),
        ("unhealthy_threshold_percent", "55 %"),
        ("default_toleration", "300000 ms"),
        ("pod_gc_period", "20000 ms"),
        ("gc_quarantine", "40000 ms"),
        ("terminated_pod_gc_threshold", "12500"),
        ("attach_detach_period", "100 ms"),
        ("max_wait_for_unmount", "360000 ms"),
    ] {
        let field = t.explain().into_iter().find(|e| e.name == name);
        assert_eq!(field.map(|e| e.value.to_string()).as_deref(), Some(text), "{name}");
    }
}

#[test]
fn every_field_is_explained_and_can_be_set() {
    let mut t = timing("default");
    let explained = t.explain();
    assert_eq!(explained.len(), explained.iter().map(|e| e.name).collect::<BTreeSet<_>>().len());
    for Explained { name, value, governs, source } in explained {
        assert!(governs.ends_with('.') && !source.is_empty(), "{name}");
        t.set(name, &value.to_string().replace(' ', "")).unwrap();
    }
    assert_eq!(t, timing("default"));
    let unit = |name: &str| t.explain().into_iter().find(|e| e.name == name).unwrap().value.unit();
    assert_eq!(
        [unit("beat"), unit("drift_ppm"), unit("storm_share_percent"), unit("flap_count")],
        ["ms", "ppm", "%", ""]
    );
}

#[test]
fn values_are_read_with_their_unit() {
    let mut t = timing("default");
    for (text, value) in [("4400ms", 4_400), ("5s", 5_000), ("5m", 300_000), ("1h", 3_600_000), ("0s", 0)] {
        t.set("grant", text).unwrap();
        assert_eq!(t.grant, ms(value), "{text}");
    }
    for text in
        ["", "5", "5 s", "-5s", "+5s", "4.4s", "s", "5d", "99999999999999999999s", "18446744073709551615h"]
    {
        assert!(t.set("grant", text).is_err(), "{text}");
    }
    t.set("automatic", "off").unwrap();
    assert_eq!(t.automatic, Automatic::Off);
    assert_eq!(t.set("Grant", "5s").unwrap_err().to_string(), "there is no timing value \"Grant\"");
    assert_eq!(
        t.set("drift_ppm", "1%").unwrap_err().to_string(),
        "timing value drift_ppm cannot be \"1%\": it must look like 10000ppm"
    );
    assert_eq!(
        t.set("detection", "guess").unwrap_err().to_string(),
        "timing value detection cannot be \"guess\": it must look like beats or leases"
    );
}

#[test]
fn brakes_and_patience() {
    let t = timing("default");
    for (nodes, incidents) in [(0, 1), (1, 1), (3, 1), (5, 1), (6, 2), (9, 3), (5_000, 1_666)] {
        assert_eq!(t.incidents_max(nodes), incidents, "{nodes}");
    }
    assert!(
        !t.is_storm(1, 2) && t.is_storm(2, 3) && t.is_storm(3, 5) && !t.is_storm(2, 5) && !t.is_storm(0, 0)
    );
    assert_eq!(t.patience_of(ms(119_999)), ms(120_000));
    assert_eq!(t.patience_of(ms(120_000)), ms(6_000));
    assert_eq!(t.kill_bound_with(None), ms(2_200));
    assert_eq!(t.kill_bound_with(Some(ms(1_000))), ms(2_200));
    assert_eq!(t.kill_bound_with(Some(ms(15_000))), ms(15_200));
}

proptest! {
    /// What the server waits is never shorter than what the slowest lawful clock takes.
    #[test]
    fn waits_cover_the_drift(span in 0..10_000_000_u64, drift in 1..=100_000_u64) {
        let t = Timing { drift_ppm: drift, council_answer: ms(span), ..timing("default") };
        let (span, up, down) = (u128::from(span), u128::from(t.with_drift_up(ms(span)).ms()), u128::from(t.with_drift_down(ms(span)).ms()));
        let million = u128::from(MILLION);
        let drift = u128::from(drift);
        prop_assert!(up * million >= span * (million + drift) && up * million < span * (million + drift) + million);
        prop_assert!(down * million <= span * (million - drift));
        // A member's clean limit, by a clock that runs fast, covers an answer by a clock that runs slow.
        let clean = u128::from(t.clean_limit().ms());
        prop_assert!(clean * (million - drift) >= span * (million + drift));
    }

    #[test]
    fn any_numbers_can_be_checked(values in proptest::collection::vec(any::<u64>(), 80)) {
        let mut t = timing("default");
        for (Explained { name, value, .. }, n) in t.explain().into_iter().zip(values) {
            let _ = t.set(name, &format!("{n}{}", value.unit()));
        }
        let broken = check(&t);
        prop_assert_eq!(broken.is_empty(), laws::is_lawful(&t));
    }
}
