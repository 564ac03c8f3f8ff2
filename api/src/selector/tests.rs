use proptest::prelude::*;

use super::*;

fn labels(text: &str) -> Labels {
    let pair = |p: &str| p.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    text.split(',').filter_map(pair).collect()
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

fn from_json(json: &str) -> LabelSelector {
    serde_json::from_str(json).unwrap()
}

// === LabelSelector ===

#[test]
fn absent_selects_nothing_and_empty_selects_everything() {
    let some = labels("a=b");
    assert_eq!(LabelSelector::default(), LabelSelector::Absent);
    assert_eq!(from_json("null"), LabelSelector::Absent);
    assert!(!LabelSelector::Absent.matches(&some));
    assert!(!LabelSelector::Absent.matches(&Labels::new()));
    assert_eq!(LabelSelector::Absent.to_selector(), None);
    for json in ["{}", r#"{"matchLabels":null,"matchExpressions":null}"#, r#"{"matchLabels":{}}"#] {
        let empty = from_json(json);
        assert!(empty.is_everything(), "{json}");
        assert!(empty.matches(&some) && empty.matches(&Labels::new()), "{json}");
        assert_eq!(empty.to_selector(), Some(Selector::default()));
    }
    assert_eq!(serde_json::to_string(&LabelSelector::Absent).unwrap(), "null");
    assert_eq!(serde_json::to_string(&LabelSelector::everything()).unwrap(), "{}");
}

#[test]
fn all_terms_of_a_label_selector_must_hold() {
    let json = r#"{"matchLabels":{"app":"db"},"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]},{"key":"zone","operator":"NotIn","values":["z"]},{"key":"on","operator":"Exists"},{"key":"old","operator":"DoesNotExist"}]}"#;
    let s = from_json(json);
    assert_eq!(serde_json::to_string(&s).unwrap(), json);
    assert_eq!(s.to_selector().unwrap().to_string(), "app=db,!old,on,tier in (a,b),zone notin (z)");
    for (text, is_meant) in [
        ("app=db,tier=a,on=1", true),
        ("app=db,tier=b,on=,zone=y", true),
        ("app=db,tier=c,on=1", false),
        ("app=db,tier=a", false),
        ("app=db,on=1", false),
        ("tier=a,on=1", false),
        ("app=web,tier=a,on=1", false),
        ("app=db,tier=a,on=1,zone=z", false),
        ("app=db,tier=a,on=1,old=", false),
    ] {
        assert_eq!(s.matches(&labels(text)), is_meant, "{text}");
        assert_eq!(s.to_selector().unwrap().matches(&labels(text)), is_meant, "{text}");
    }
    assert!(LabelSelector::of([("app", "db")]).matches(&labels("app=db,x=y")));
}

#[test]
fn all_problems_are_told() {
    let s = from_json(
        r#"{"matchLabels":{"-a":"b","c":"d e"},"matchExpressions":[{"key":"","operator":"In"},{"key":"x","operator":"Exists","values":["_"]}]}"#,
    );
    let paths: Vec<_> = s.problems().into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "matchLabels[-a]",
            "matchLabels[c]",
            "matchExpressions[0].key",
            "matchExpressions[0].values",
            "matchExpressions[1].values",
            "matchExpressions[1].values[0]"
        ]
    );
    assert!(LabelSelector::Absent.problems().is_empty());
    assert!(LabelSelector::of([("app.kubernetes.io/name", "db")]).problems().is_empty());
    assert!(
        serde_json::from_str::<LabelSelector>(r#"{"matchExpressions":[{"key":"a","operator":"Is"}]}"#)
            .is_err()
    );
}

// === the text form of label selectors ===

/// Text in, text out.
#[test]
fn texts_are_read_and_printed() {
    for (text, printed) in [
        ("", ""),
        (" \t", ""),
        ("a=b,c!=d,e in (x,y),f notin (z),g,!h,i==j", "a=b,c!=d,e in (x,y),f notin (z),g,!h,i=j"),
        ("x=a,a=x", "a=x,x=a"),
        ("x=", "x="),
        ("x= ,z= ", "x=,z="),
        ("x!=", "x!="),
        ("x>1,z<5", "x>1,z<5"),
        ("\rx", "x"),
        ("! x", "!x"),
        ("x notin\n (abc)", "x notin (abc)"),
        ("x in (def, abc,abc)", "x in (abc,def)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (abc,)", "x in (,abc)"),
        ("x in (,abc)", "x in (,abc)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (in,notin)", "x in (in,notin)"),
        ("in in (in)", "in in (in)"),
        ("notin=in", "notin=in"),
        (
            "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
            "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)",
        ),
    ] {
        assert_eq!(selector(text).to_string(), printed, "{text}");
        assert_eq!(selector(printed), selector(text), "{text}");
    }
    assert!(selector("").is_everything());
    assert_eq!(selector("b,a").requirements()[0], Requirement { key: "a".into(), test: Test::Exists });
}

#[test]
fn wrong_texts_say_where_and_what() {
    for (text, message) in [
        ("x=a||y=b", "at byte 2: \"a||y\" is no value: the value must be empty, or"),
        ("x==a==b", "at byte 4: expected ',' or the end, found \"==\""),
        ("!x=a", "at byte 2: expected ',' or the end, found \"=\""),
        ("x<a", "at byte 2: expected a whole number, found \"a\""),
        ("x>", "at byte 2: expected a whole number, found \"\""),
        ("x>-1", "at byte 2: \"-1\" is no value"),
        ("a,", "at byte 2: expected a label, found the end"),
        (",a", "at byte 0: expected a label, found \",\""),
        ("a,,b", "at byte 2: expected a label, found \",\""),
        ("!", "at byte 1: expected a label, found the end"),
        ("a b", "at byte 2: expected = == != in notin > or <, found \"b\""),
        ("a ! b", "at byte 2: expected = == != in notin > or <, found \"!\""),
        ("a in b", "at byte 5: expected '(', found \"b\""),
        ("a in (b", "at byte 7: expected ',' or ')', found the end"),
        ("a in (b c)", "at byte 8: expected ',' or ')', found \"c\""),
        ("a in (b=c)", "at byte 7: expected ',' or ')', found \"=\""),
        ("a in", "at byte 4: expected '(', found the end"),
        ("a=(b)", "at byte 2: expected a value, found \"(\""),
        ("-a", "at byte 0: \"-a\" is no label: the name must have"),
        ("a/b/c=d", "at byte 0: \"a/b/c\" is no label: the name must have"),
        ("é=1", "at byte 0: \"é\" is no label"),
    ] {
        let told = Selector::parse(text).unwrap_err().to_string();
        assert!(told.contains(message), "{text}: {told}");
    }
    assert!(Selector::parse(&"a".repeat(TEXT_MAX + 1)).is_err());
}

#[test]
fn texts_match_as_upstream_has_it() {
    for (text, on, is_meant) in [
        ("", "x=y", true),
        ("x=y", "x=y", true),
        ("x=y,z=w", "x=y,z=w", true),
        ("x!=y,z!=w", "x=z,z=a", true),
        ("x!=y", "", true),
        ("notin=in", "notin=in", true),
        ("x", "x=z", true),
        ("!x", "y=z", true),
        ("x>1", "x=2", true),
        ("x<1", "x=0", true),
        ("x>1", "x=v2", false),
        ("x>1", "", false),
        ("x=z", "", false),
        ("x=", "", false),
        ("x=", "x=", true),
        ("x=y", "x=z", false),
        ("x=y,z=w", "x=w,z=w", false),
        ("x!=y,z!=w", "x=z,z=w", false),
        ("x", "y=z", false),
        ("!x", "x=z", false),
        ("x>1", "x=0", false),
        ("x<1", "x=2", false),
        ("x in (a,b)", "x=b", true),
        ("x in (a,b)", "", false),
        ("x in (a,)", "x=", true),
        ("x notin (a,b)", "x=c", true),
        ("x notin (a,b)", "", true),
        ("x notin (a,b)", "x=a", false),
    ] {
        assert_eq!(selector(text).matches(&labels(on)), is_meant, "{text} on {on}");
    }
}

// === FieldSelector ===

#[test]
fn field_selectors_are_read_and_printed() {
    for (text, printed) in [
        ("", ""),
        (",,", ""),
        ("spec.nodeName=n1,status.phase!=Running", "spec.nodeName=n1,status.phase!=Running"),
        ("a==b", "a=b"),
        ("a=", "a="),
        ("a!=", "a!="),
        (r"a=b\,c", r"a=b\,c"),
        (r"a=b\=c,d=e", r"a=b\=c,d=e"),
        (r"a=b\\,c=d", r"a=b\\,c=d"),
        ("a=b c", "a=b c"),
        ("a=!b", "a=!b"),
        ("metadata.name=é", "metadata.name=é"),
    ] {
        let s = FieldSelector::parse(text).unwrap();
        assert_eq!(s.to_string(), printed, "{text}");
        assert_eq!(FieldSelector::parse(printed).unwrap(), s, "{text}");
    }
    let s = FieldSelector::parse(r"a=b\,c\=d\\").unwrap();
    assert_eq!(s.exact("a"), Some(r"b,c=d\"));
    assert_eq!(s.exact("b"), None);
    assert_eq!(FieldSelector::parse("a!=b").unwrap().exact("a"), None);
}

#[test]
fn wrong_field_selectors_say_where_and_what() {
    for (text, message) in [
        ("a", "at byte 0: expected a field, then = == or !=, then a value, found \"a\""),
        ("a=b,c", "at byte 4: expected a field"),
        (r"a\=b", "at byte 0: expected a field"),
        ("=b", "at byte 0: expected a field before the operator"),
        ("a=b=c", "at byte 3: expected \\= for an equals sign inside a value"),
        ("a===b", "at byte 3: expected \\="),
        (r"a=b\c", "at byte 3: expected \\\\ \\, or \\="),
        (r"a=b\", "at byte 3: expected \\\\ \\, or \\="),
    ] {
        let told = FieldSelector::parse(text).unwrap_err().to_string();
        assert!(told.contains(message), "{text}: {told}");
    }
}

#[test]
fn field_selectors_match() {
    let lookup = |field: &str| match field {
        "spec.nodeName" => Some("n1"),
        "status.phase" => Some("Running"),
        _ => None,
    };
    for (text, is_meant) in [
        ("", true),
        ("spec.nodeName=n1", true),
        ("spec.nodeName=n2", false),
        ("spec.nodeName!=n2", true),
        ("spec.nodeName=n1,status.phase!=Running", false),
        ("spec.nodeName=n1,status.phase!=Failed", true),
        ("missing=", true),
        ("missing!=", false),
        ("missing!=x", true),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap().matches(lookup), is_meant, "{text}");
    }
}

// === labels ===

#[test]
fn keys_and_values_have_limits() {
    let long = |n: usize| "a".repeat(n);
    for key in ["a", "A1", "1", "a.b-c_d", "example.com/a", "1.2.3/a", "a-b.c/X_y", &long(63)] {
        assert_eq!(check_key(key), Ok(()), "{key}");
    }
    assert_eq!(check_key(&format!("{}/a", long(253))), Ok(()));
    for key in [
        "",
        "/a",
        "a/",
        "a/b/c",
        "-a",
        "a-",
        ".a",
        "a b",
        "é",
        "A.com/a",
        "a..b/c",
        "-a.b/c",
        "a_b/c",
        &long(64),
    ] {
        assert!(check_key(key).is_err(), "{key}");
    }
    assert!(check_key(&format!("{}/a", long(254))).is_err());
    for value in ["", "a", "A.b_c-d1", &long(63)] {
        assert_eq!(check_value(value), Ok(()), "{value}");
    }
    for value in ["-a", "a-", "a/b", "a b", " ", &long(64)] {
        assert!(check_value(value).is_err(), "{value}");
    }
}

fn words() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-z_.-]{0,5}[a-z0-9])?"
}

fn tests() -> impl Strategy<Value = Test> {
    let sets = || proptest::collection::btree_set(prop_oneof![Just(String::new()), words()], 1..4);
    prop_oneof![
        words().prop_map(Test::Equals),
        words().prop_map(Test::NotEquals),
        sets().prop_map(Test::In),
        sets().prop_map(Test::NotIn),
        Just(Test::Exists),
        Just(Test::Absent),
        (0..i64::MAX).prop_map(Test::Greater),
        (0..i64::MAX).prop_map(Test::Less),
    ]
}

proptest! {
    #[test]
    fn what_was_printed_reads_back(parts in proptest::collection::vec((words(), tests()), 0..5)) {
        let s = Selector::new(parts.into_iter().map(|(key, test)| Requirement { key, test }).collect());
        prop_assert_eq!(Selector::parse(&s.to_string()).unwrap(), s);
    }

    #[test]
    fn fields_that_were_printed_read_back(value in ".*", different in any::<bool>()) {
        let wanted = if different { Wanted::Different } else { Wanted::Equal };
        let s = FieldSelector { terms: vec![FieldTerm { field: "a.b".into(), wanted, value }] };
        prop_assert_eq!(FieldSelector::parse(&s.to_string()).unwrap(), s);
    }

    #[test]
    fn reading_never_panics(text in "[ab=!(),<>\\\\ éinotn1]{0,20}") {
        let _ = Selector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }
}
