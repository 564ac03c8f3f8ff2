//! Tests of the binary: what it prints, and how it ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests; the setting covers only #[test]")]

use std::process::{Command, Output, Stdio};

fn mainstay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mainstay")).args(arguments).output().expect("the binary was built")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

#[track_caller]
fn refused(arguments: &[&str], about: &str) {
    let output = mainstay(arguments);
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    assert!(said.starts_with("mainstay: ") && said.contains(about), "{arguments:?}: {said}");
}

/// A file of this test alone.
fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("mainstay-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("the temporary directory can be written");
    path.to_string_lossy().into_owned()
}

#[test]
fn clean_seeds_end_with_the_last_line() {
    let output = mainstay(&["sim", "--seeds", "6"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("seeds=6 safety=0 liveness=0 surplus=0 failover_p50_ms="), "{last}");
    assert!(last.contains(" failover_max_ms="), "{last}");
    assert!(output.stderr.is_empty(), "no progress where there is no terminal");
}

#[test]
fn a_mutation_is_caught_and_can_be_replayed() {
    let output = mainstay(&["sim", "--mutate", "c14-no-close", "--seeds", "10"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let replay = text.lines().find_map(|line| line.split_once("replay with: mainstay ")).expect("a replay").1;
    let words: Vec<&str> = replay.split(' ').collect();
    assert!(text.lines().any(|line| line.contains("  fault  ")), "the last events are there");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let again = Command::new(env!("CARGO_BIN_EXE_mainstay")).args(words).current_dir(root).output().unwrap();
    assert_eq!(again.status.code(), Some(3), "{}", stdout(&again));
}

#[test]
fn mutations_are_listed_by_name() {
    let output = mainstay(&["sim", "--mutate", "list"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    // Nothing else: `for m in $(mainstay sim --mutate list)` must work.
    let names: Vec<&str> = text.lines().collect();
    assert_eq!(names, api::flaw::Flaw::ALL.map(|(_, name, _)| name));
    let help = stdout(&mainstay(&["sim", "--help"]));
    assert!(api::flaw::Flaw::ALL.iter().all(|(_, name, text)| help.contains(name) && help.contains(text)));
}

#[test]
fn json_is_the_same_twice_but_for_time_and_memory() {
    let object = || {
        let output = mainstay(&["sim", "--seeds", "12", "--from", "40", "-o", "json"]);
        let mut value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        let members = value.as_object_mut().expect("an object");
        let differs = ["wall", "elapsed", "per_s", "rss", "mem"];
        members.retain(|name, _| !differs.iter().any(|part| name.contains(part)));
        value
    };
    let first = object();
    assert_eq!(first["seeds"], 12);
    assert!(first["decisions"].as_u64().unwrap() > 0);
    assert_eq!(first, object());
}

#[test]
fn findings_of_a_scenario_say_their_class_by_the_exit_code() {
    let head = "nodes n1 n2 n3\nworkload statefulset db replicas=1\n";
    let never = file("never.txt", &format!("{head}never 10s..15s pod db-0 running\nend 15s\n"));
    let late = file("late.txt", &format!("{head}by 15s pod db-0 gone\nend 15s\n"));
    let fine = file("fine.txt", &format!("{head}by 15s pod db-0 running\nend 15s\n"));
    let uncaught = file("uncaught.txt", &format!("{head}mutation c5-amnesia must fail\nend 15s\n"));
    for (path, code) in [(&never, 3), (&late, 4), (&fine, 0), (&uncaught, 3)] {
        let output = mainstay(&["sim", "--scenario", path, "--seeds", "1"]);
        assert_eq!(output.status.code(), Some(code), "{}", stdout(&output));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn bad_arguments_are_refused_in_one_sentence() {
    refused(&["sim", "--seeds", "0"], "0");
    refused(&["sim", "--seeds", "many"], "many");
    refused(&["sim", "--profile", "slow"], "there is no timing profile \"slow\"");
    refused(&["sim", "--mutate", "c99"], "there is no mutation \"c99\"");
    refused(&["sim", "--scenario", "no-such-file.txt"], "cannot read the scenario no-such-file.txt");
    refused(&["sim", "--pods", "5"], "--nodes");
    refused(&["sim", "--seeds", "-1"], "-1");
    refused(&["sim", "--profile", "a\n\n\u{1b}b"], "there is no timing profile");
    refused(&["sim", "--scenario", "no\nfile"], "no\\nfile");
    for more in [&["--seeds", "1"][..], &["--from", "1"], &["--mutate", "c5-amnesia"], &["--trace"]] {
        refused(&[&["sim", "--nodes", "5"], more].concat(), "cannot be used with");
    }
    refused(&["sim", "--scenario", "x", "--profile", "fast"], "cannot be used with");
    refused(&[], "sim, demo, bench, version");
    refused(&["bench"], "subcommand");
    refused(&["fly"], "fly");
    let bad = file("bad.txt", "nodes n1\nat 5s fly n1\n");
    refused(&["sim", "--scenario", &bad], "line 2, column 7: there is no act `fly`");
    std::fs::remove_file(bad).unwrap();
}

#[test]
fn files_that_are_no_scenarios_are_refused_in_one_sentence() {
    for (name, bytes, about) in [
        (
            "latin.txt",
            &b"# t\nnodes \xe4"[..],
            "line 2, column 7: here is something that is not text in UTF-8",
        ),
        ("large.txt", &[b'#'; 1024 * 1024 + 1], "it is larger than 1024 KiB"),
        ("empty.txt", b"", "line 1, column 1: the scenario names no nodes"),
    ] {
        let path = file(name, "");
        std::fs::write(&path, bytes).unwrap();
        refused(&["sim", "--scenario", &path], about);
        std::fs::remove_file(path).unwrap();
    }
    refused(&["sim", "--scenario", "/dev/zero"], "it is larger than 1024 KiB");
}

#[test]
fn the_last_seeds_of_all_are_seeds() {
    let last = u64::MAX.to_string();
    let about = "there are no 2 seeds from 18446744073709551615 on: the last is 18446744073709551615";
    refused(&["sim", "--from", &last, "--seeds", "2"], about);
    let story = file(
        "last.txt",
        &format!("seed {last}\nnodes n1\nmutation no-brake must fail within 9 seeds\nend 1s\n"),
    );
    refused(&["sim", "--scenario", &story, "--seeds", "2"], about);
    for (arguments, code) in [(&["sim", "--from", &last][..], 0), (&["sim", "--scenario", &story], 3)] {
        let output = mainstay(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stdout(&output));
        assert!(!stdout(&output).contains("seeds=0 "), "{arguments:?}");
    }
    std::fs::remove_file(story).unwrap();
}

#[test]
fn a_reader_that_goes_away_hears_no_panic() {
    for arguments in [&["sim", "--seeds", "3"][..], &["sim", "--mutate", "list"], &["version"], &["demo"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_replay_of_a_story_can_be_pasted() {
    let path = file("it's a story.txt", "nodes n1\nby 1s node n1 gone\n");
    let output = mainstay(&["sim", "--scenario", &path]);
    std::fs::remove_file(&path).unwrap();
    let quoted = format!("--scenario '{}' --from 1", path.replace('\'', r"'\''"));
    assert!(stdout(&output).contains(&quoted), "{}", stdout(&output));
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["sim", "--help"], &["bench", "--help"], &["version"], &["--version"]]
    {
        let output = mainstay(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_demo_ends_with_its_result() {
    let output = mainstay(&["demo"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("result: Mainstay: the database runs again after "), "{last}");
    assert!(last.ends_with("stock: it does not run again (watched for 15 minutes)"), "{last}");
}

#[test]
fn a_large_cluster_loses_a_node() {
    let output = mainstay(&["sim", "--nodes", "30", "--pods", "90", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(value["pods_running"], 90);
    assert!(value["failover_ms"].as_u64().unwrap() > 0);
}
