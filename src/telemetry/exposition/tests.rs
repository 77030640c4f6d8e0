//! What a page says, and what is said of a page that is none.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

fn page(text: &str) -> Exposition<'_> {
    parse(text.as_bytes(), Limits::default()).expect(text)
}

fn fault(text: &str) -> String {
    parse(text.as_bytes(), Limits::default()).expect_err(text).to_string()
}

#[test]
fn a_sample_has_name_labels_and_value() {
    let text = "# HELP a b {c=\"d\"} 1\n# TYPE a_total counter\n\n a_total{x=\"1\", y=\"z\",} 3.5e2 1700000000000\nb 7\r\n";
    let page = page(text);
    assert_eq!(page.kinds["a_total"], Kind::Counter);
    let [a, b] = &page.samples[..] else { panic!("two: {page:?}") };
    assert_eq!((a.name.as_ref(), a.value), ("a_total", 350.0));
    assert_eq!((a.label("x"), a.label("y"), a.label("z")), (Some("1"), Some("z"), None));
    assert_eq!((b.name.as_ref(), b.value, b.labels.len()), ("b", 7.0, 0));
}

#[test]
fn label_values_hold_quotes_newlines_and_braces() {
    let text = r#"a{m="say \"hi\"\nC:\\x {b} , # = \d"} 1"#;
    assert_eq!(page(text).samples[0].label("m"), Some("say \"hi\"\nC:\\x {b} , # = \\d"));
}

#[test]
fn no_number_and_no_bound_are_values_too() {
    let page = page("a NaN\na +Inf\na -Inf\n");
    let values: Vec<f64> = page.samples.iter().map(|sample| sample.value).collect();
    assert!(values[0].is_nan());
    assert_eq!(values[1..], [f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn exemplars_fractional_times_and_the_end_are_read_over() {
    let text = "# TYPE a counter\n# UNIT a s\na_total{le=\"1.0\"} 17 1700000000.25 # {trace=\"x y\"} 0.5 1.5\n\
                a_created 1.7e9\n# EOF\nnot a line at all {{{\n";
    let page = page(text);
    assert_eq!(page.samples.len(), 2);
    assert_eq!((page.samples[0].value, page.samples[0].label("le")), (17.0, Some("1.0")));
}

#[test]
fn names_that_need_quotes_stand_inside_the_braces() {
    let page = page("{\"my.tokens\", \"l.x\"=\"1\"} 4\n");
    assert_eq!(
        (page.samples[0].name.as_ref(), page.samples[0].label("l.x")),
        ("my.tokens", Some("1"))
    );
}

#[test]
fn what_is_no_page_is_told_with_its_line() {
    for (text, part) in [
        ("a 1\n<html>\n", "line 2: no metric name at the beginning of \"<html>\""),
        ("a{b=\"c 1", "line 1: a label value of `a` has no closing quote on its line"),
        ("a{b=\"c\nd\"} 1", "line 1: a label value of `a` has no closing quote"),
        ("a{b=\"c\" 1", "line 1: a label of `a` is not written"),
        ("a{", "line 1: the labels of `a` have no end"),
        ("a{b=1} 1", "a label of `a`"),
        ("a{=\"1\"} 1", "a label of `a`"),
        ("a", "`a` has no value"),
        ("a one", "the value of `a` is \"one\", which is no number"),
        ("a 1 x", "what follows the value of `a` is \"x\""),
        ("a 1 2 3", "what follows the value of `a` is \"3\""),
        ("{} 1", "no metric name"),
        ("1a 1", "no metric name"),
    ] {
        assert!(fault(text).contains(part), "{text}: {}", fault(text));
    }
    let bytes = parse(b"a 1\nb\xff 1\n", Limits::default()).expect_err("no text");
    assert_eq!(bytes.to_string(), "line 2: not UTF-8 text");
}

#[test]
fn a_page_has_its_limits() {
    let limits = Limits { bytes: 100, samples: 3, labels: 2 };
    let fault = |text: &str| parse(text.as_bytes(), limits).expect_err(text).to_string();
    assert!(fault(&"a 1\n".repeat(26)).contains("longer than 100 bytes"));
    assert!(fault(&"a 1\n".repeat(4)).contains("line 4: more than 3 samples"));
    assert!(fault("a{b=\"\",c=\"\",d=\"\"} 1").contains("more than 2 labels"));
}

/// Writes a page as servers do.
fn print(samples: &[Sample<'_>]) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut text = String::new();
    for sample in samples {
        text += &sample.name;
        if !sample.labels.is_empty() {
            let labels: Vec<String> = sample
                .labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escape(value)))
                .collect();
            write!(text, "{{{}}}", labels.join(",")).expect("memory");
        }
        writeln!(text, " {}", sample.value).expect("memory");
    }
    text
}

fn samples() -> impl Strategy<Value = Vec<Sample<'static>>> {
    let label = ("[a-z_][a-z0-9_]{0,6}", any::<String>());
    let value = prop_oneof![
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()),
        Just(f64::INFINITY),
    ];
    let sample = ("[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", prop::collection::vec(label, 0..4), value);
    let sample = sample.prop_map(|(name, labels, value)| Sample {
        name: name.into(),
        labels: labels.into_iter().map(|(label, value)| (label.into(), value.into())).collect(),
        value,
    });
    prop::collection::vec(sample, 0..12)
}

proptest! {
    #[test]
    fn what_is_printed_is_what_is_read(samples in samples()) {
        let text = print(&samples);
        let read = parse(text.as_bytes(), Limits::default());
        prop_assert_eq!(read.expect("a page").samples, samples);
    }

    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes, Limits::default());
    }

    #[test]
    fn no_text_of_the_format_is_a_panic(text in "[a{}\"=, #\\\\n1\n]{0,60}") {
        let _ = parse(text.as_bytes(), Limits::default());
    }
}
