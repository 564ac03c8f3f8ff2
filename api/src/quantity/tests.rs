use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

/// Text in, canonical text out.
const CANONICAL: &[(&str, &str)] = &[
    ("0", "0"),
    ("00", "0"),
    ("0n", "0"),
    ("0Ki", "0"),
    ("0E9", "0"),
    ("-0", "0"),
    ("1", "1"),
    ("+1", "1"),
    ("-1", "-1"),
    ("1.", "1"),
    ("1.G", "1G"),
    (".001", "1m"),
    (".0001k", "100m"),
    ("0.1", "100m"),
    ("0.5", "500m"),
    ("1.5", "1500m"),
    ("1.001", "1001m"),
    ("1.2345", "1234500u"),
    ("9.01", "9010m"),
    ("1000m", "1"),
    ("5000m", "5"),
    ("1080000000n", "1080m"),
    ("1000", "1k"),
    ("1024", "1024"),
    ("1000M", "1G"),
    ("1000000k", "1G"),
    ("0.001T", "1G"),
    ("123456789k", "123456789k"),
    ("1234567M", "1234567M"),
    ("10.035M", "10035k"),
    ("100.035k", "100035"),
    ("6.987654321G", "6987654321"),
    ("300.2T", "300200G"),
    ("1.01E", "1010P"),
    ("12E", "12E"),
    ("18446744073709551616", "18446744073709551616"),
    ("1000E", "1e21"),
    ("5000E", "5e21"),
    ("1000000E", "1e24"),
    // Binary.
    ("1Ki", "1Ki"),
    ("1024Ki", "1Mi"),
    ("1024Mi", "1Gi"),
    ("1025024Mi", "1001Gi"),
    ("307200Ki", "300Mi"),
    ("1.5Gi", "1536Mi"),
    ("-1.5Gi", "-1536Mi"),
    ("0.5Mi", "512Ki"),
    ("0.5Ki", "512"),
    ("1025", "1025"),
    ("100.035Ki", "102435840m"),
    ("0.05Gi", "53687091200m"),
    (".001Ki", "1024m"),
    (".000001Ki", "1024u"),
    (".000000001Ki", "1024n"),
    (".000000000001Ki", "2n"),
    ("7Ei", "7Ei"),
    ("8Ei", "9223372036854775807"),
    ("9Ei", "9223372036854775807"),
    ("-9Ei", "-9223372036854775807"),
    ("9223372036854775807Ki", "9223372036854775807"),
    // Exponents.
    ("1e3", "1e3"),
    ("1E3", "1e3"),
    ("1e+3", "1e3"),
    ("1.2e3", "1200"),
    ("1e14", "100e12"),
    ("1E-3", "1e-3"),
    ("0.001e0", "1e-3"),
    ("0.5e-1", "50e-3"),
    (".001e12", "1e9"),
    ("1000e-12", "1e-9"),
    ("1.3E+6", "1300e3"),
    ("1e27", "1e27"),
    // Finer than a nano: away from zero.
    ("0.9n", "1n"),
    ("3.001n", "4n"),
    ("-3.001n", "-4n"),
    ("1.1E-9", "2e-9"),
    ("0.5e-9", "1e-9"),
    ("1e-99999999", "1e-9"),
    ("0.0000000001", "1n"),
    ("0.00000012345", "124n"),
];

#[test]
fn texts_become_canonical() {
    for (text, canonical) in CANONICAL {
        let once = quantity(text);
        assert_eq!(once.to_string(), *canonical, "{text}");
        assert_eq!(quantity(canonical), once, "{text}");
        assert_eq!(quantity(canonical).to_string(), *canonical, "{text}");
    }
}

#[test]
fn wrong_texts_are_refused_in_one_sentence() {
    let refused = |text: &str| Quantity::parse(text).unwrap_err();
    for text in ["1.1.M", "+", "-", ".", "aoeu", " 1", "--1", "1.1.1", "é"] {
        assert_eq!(refused(text).problem, Problem::Shape, "{text}");
    }
    for text in [
        "1+1.0M", "0.1mi", "0.1am", ".5i", "1i", "-3.01i", "-3.01e-", "1 ", "1e", "1K", "1ki", "1e3Mi", "1Eé",
    ] {
        assert_eq!(refused(text).problem, Problem::Suffix, "{text}");
    }
    assert_eq!(refused("").problem, Problem::Empty);
    for text in ["1e28", "1000000001E", "-1e28", "1e99999999999999999", "1e9223372036854775807"] {
        let problem = refused(text).problem;
        assert!(problem == Problem::Large || problem == Problem::Suffix, "{text}");
    }
    assert_eq!(refused(&"1".repeat(38)).problem, Problem::Long);
    assert_eq!(refused(&"0".repeat(129)).problem, Problem::Long);
    assert_eq!(
        refused("1x").to_string(),
        "\"1x\" is no quantity: its suffix must be one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or e and a whole number"
    );
}

#[test]
fn many_digits_are_exact() {
    assert_eq!(quantity("0.1234567890123456789012345678901234567").to_string(), "123456790n");
    assert_eq!(
        quantity("1234567890123456789012345.123456789").to_string(),
        "1234567890123456789012345123456789n"
    );
    // 2^30 * 0.1234567890123456789012345678 = 132560717.8192…
    assert_eq!(quantity("0.1234567890123456789012345678Gi").value(), 132_560_718);
    assert_eq!(quantity(&format!("{}1", "0".repeat(120))).value(), 1);
}

#[test]
fn formats_are_remembered() {
    for (text, format) in [
        ("0", Format::DecimalSi),
        ("1k", Format::DecimalSi),
        ("0Ki", Format::BinarySi),
        ("1Ki", Format::BinarySi),
        ("0.000000000001Ki", Format::DecimalSi),
        ("1e3", Format::DecimalExponent),
        ("1E", Format::DecimalSi),
    ] {
        assert_eq!(quantity(text).format(), format, "{text}");
    }
    assert_eq!(Quantity::from_milli(1024, Format::BinarySi).to_string(), "1024m");
    assert_eq!(Quantity::from_milli(1024 * 1024, Format::BinarySi).to_string(), "1048576m");
    assert_eq!(Quantity::from_value(1024 * 1024, Format::BinarySi).to_string(), "1Mi");
    assert_eq!(Quantity::from_value(1_234_000, Format::DecimalSi).to_string(), "1234k");
    assert_eq!(Quantity::from_value(1_000_000, Format::DecimalExponent).to_string(), "1e6");
}

#[test]
fn rounding_is_away_from_zero() {
    assert_eq!(quantity("9.01").value(), 10);
    assert_eq!(quantity("-9.01").value(), -10);
    assert_eq!(quantity("9.01").milli(), 9010);
    assert_eq!(quantity("1n").milli(), 1);
    assert_eq!(quantity("-1n").milli(), -1);
    assert_eq!(quantity("0").milli(), 0);
    assert_eq!(quantity("0.0005").rounded_to_milli().to_string(), "1m");
    assert_eq!(quantity("0.0005").rounded_to_unit().to_string(), "1");
    assert_eq!(quantity("1e27").value(), i64::MAX);
    assert_eq!(quantity("-1e27").milli(), i64::MIN);
}

#[test]
fn equal_is_what_counts_the_same() {
    assert_eq!(quantity("1Gi"), quantity("1073741824"));
    assert_eq!(quantity("1"), quantity("1000m"));
    assert!(quantity("10000T") > quantity("100Gi"));
    assert!(quantity("50m") < quantity("100m"));
    assert!(quantity("-1").is_negative());
    assert_eq!(Quantity::default(), Quantity::ZERO);
}

#[test]
fn sums_keep_the_suffix_of_the_first_that_is_not_zero() {
    let zero = Quantity::ZERO;
    for text in ["100m", "1Gi", "1e3"] {
        let q = quantity(text);
        assert_eq!((q + zero).to_string(), text);
        assert_eq!((zero + q).to_string(), text);
        assert_eq!((q - zero).to_string(), text);
        assert_eq!((zero - q).to_string(), (-q).to_string());
    }
    assert_eq!((quantity("1Gi") + quantity("1M")).to_string(), "1074741824");
    assert_eq!((quantity("1M") + quantity("1Ki")).to_string(), "1001024");
    let parts = ["100m", "0.2", "300m"].map(quantity);
    assert_eq!(parts.into_iter().sum::<Quantity>().to_string(), "600m");
    let greatest = quantity("1e27");
    assert_eq!(greatest + greatest, greatest);
    assert_eq!(-greatest - greatest, -greatest);
    let mut q = quantity("7Ei");
    q += quantity("7Ei");
    // Beyond what a binary text may say, it is decimal and still exact.
    assert_eq!(q.to_string(), "16140901064495857664");
    q -= quantity("7Ei");
    assert_eq!(q.to_string(), "7Ei");
}

#[test]
fn json_has_texts_numbers_and_null() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|q| q.to_string());
    for (json, text) in [
        ("\"100m\"", "100m"),
        ("\" 1\"", "1"),
        ("\"1 \"", "1"),
        ("10", "10"),
        ("-1", "-1"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1e3", "1k"),
        ("18446744073709551615", "18446744073709551615"),
        ("null", "0"),
    ] {
        assert_eq!(read(json).unwrap(), text, "{json}");
    }
    assert!(read("\"\"").is_err());
    assert!(read("true").is_err());
    assert!(read("1e300").is_err());
    assert_eq!(serde_json::to_string(&quantity("1024Mi")).unwrap(), "\"1Gi\"");
}

fn formats() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::DecimalSi), Just(Format::BinarySi), Just(Format::DecimalExponent)]
}

/// Amounts of every size, many of them with factors of ten and of two in them.
fn amounts() -> impl Strategy<Value = Quantity> {
    let nanos = prop_oneof![
        any::<i64>().prop_map(i128::from),
        (any::<i32>(), 0..26_u32).prop_map(|(n, e)| i128::from(n) * 10_i128.pow(e)),
        (any::<i32>(), 0..40_u32).prop_map(|(n, e)| (i128::from(n) * NANOS) << e),
    ];
    (nanos, formats()).prop_map(|(n, format)| Quantity { nanos: n.clamp(-NANOS_MAX, NANOS_MAX), format })
}

proptest! {
    #[test]
    fn canonical_texts_read_back(q in amounts()) {
        let text = q.to_string();
        let back = quantity(&text);
        prop_assert_eq!(back, q);
        // A binary amount without a factor of 1024 has no suffix, and reads back as a decimal one, as upstream has it.
        prop_assert!(back.to_string() == text || q.format == Format::BinarySi);
    }

    #[test]
    fn sums_and_differences_are_inverse(a in amounts(), b in amounts()) {
        prop_assume!(a.nanos.abs() + b.nanos.abs() <= NANOS_MAX);
        prop_assert_eq!(a + b - b, a);
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!(a - b, -(b - a));
    }

    #[test]
    fn reading_never_panics(text in "[+-]?[0-9]{0,40}[.]?[0-9]{0,40}([eEinumkKMGTP]{0,2}[+-]?[0-9]{0,20})") {
        if let Ok(q) = Quantity::parse(&text) {
            prop_assert_eq!(quantity(&q.to_string()), q);
        }
    }
}
