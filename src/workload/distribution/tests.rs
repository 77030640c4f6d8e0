//! Values of each family against what is known of them.

use super::super::keys::{Keys, TomlText};
use super::*;

/// A distribution from its keys.
fn read(text: &str, unit: Unit) -> Result<Distribution, WorkloadError> {
    let source = TomlText::new("x.toml", text);
    let table = toml::de::DeTable::parse(text).expect("TOML");
    Distribution::read(Keys::top(&source, table.get_ref()), unit)
}

fn of(text: &str, unit: Unit) -> Distribution {
    read(text, unit).unwrap_or_else(|error| panic!("{error}"))
}

/// The mean over `n` evenly spaced probabilities.
fn mean(distribution: &Distribution, n: u32) -> f64 {
    let at = |i: u32| distribution.at((f64::from(i) + 0.5) / f64::from(n));
    (0..n).map(at).sum::<f64>() / f64::from(n)
}

#[test]
fn a_mixture_is_the_inverse_of_the_sum_of_its_parts() {
    let text = "distribution = \"mixture\"\nweights = [3, 1]\nmu = [2.0, 6.0]\nsigma = [0.5, 1.0]";
    let mixture = of(text, SECONDS);
    for u in [0.001, 0.3, 0.7, 0.75, 0.76, 0.9, 0.9999] {
        let x = libm::log(mixture.at(u));
        let below = |mu: f64, sigma: f64| super::super::normal::normal_cdf((x - mu) / sigma);
        let back = 0.75 * below(2.0, 0.5) + 0.25 * below(6.0, 1.0);
        assert!((back - u).abs() < 1e-6, "{u}: {back}");
    }
    let one = of("distribution = \"mixture\"\nweights = [9]\nmu = [5.24]\nsigma = [1.84]", TOKENS);
    let plain = of("distribution = \"lognormal\"\nmu = 5.24\nsigma = 1.84", TOKENS);
    assert!((0..1_000).all(|i| {
        let u = (f64::from(i) + 0.5) / 1_000.0;
        (one.at(u) - plain.at(u)).abs() <= 1.0
    }));
}

#[test]
fn means_are_those_asked_for() {
    let check = |text: &str, unit: Unit, expect: f64| {
        let got = mean(&of(text, unit), 200_000);
        assert!((got / expect - 1.0).abs() < 0.002, "{text}: {got} for {expect}");
    };
    check("distribution = \"exponential\"\nmean = 40", SECONDS, 40.0);
    check("distribution = \"geometric\"\nmean = 4.2", TURNS, 4.2);
    check("distribution = \"geometric\"\nmean = 1", TURNS, 1.0);
    check("distribution = \"uniform\"\nmin = 0.5\nmax = 2", SECONDS, 1.25);
    check("distribution = \"fixed\"\nseconds = 0.25", SECONDS, 0.25);
    // 1, 2 and 3 with weights 1, 1/2 and 1/3.
    check("distribution = \"zipf\"\nexponent = 1\nmax = 3", TOKENS, 3.0 / (11.0 / 6.0));
    let gamma_mean = libm::exp(1.0 + 0.5 * 0.25);
    check("distribution = \"lognormal\"\nmu = 1\nsigma = 0.5", SECONDS, gamma_mean);
}

#[test]
fn caps_make_atoms() {
    let capped = of("distribution = \"lognormal\"\nmu = 5\nsigma = 1\nmin = 20\nmax = 300", TOKENS);
    let values: Vec<f64> = (0..1_000).map(|i| capped.at((f64::from(i) + 0.5) / 1_000.0)).collect();
    assert_eq!((values[0], values[999]), (20.0, 300.0));
    // P(ln X > ln 300) = 1 − Φ(0.7038) = 0.2408.
    assert_eq!(values.iter().filter(|value| **value >= 300.0).count(), 241);
    assert!(values.is_sorted());
}

#[test]
fn a_files_values_are_all_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
    write("plain.txt", "30\n10\n\n20\n20\n");
    write("rows.csv", "at_s,n\n0,7\n1,9\n");
    write("half.txt", "1.5\n");
    let read = |keys: &str| {
        let text = format!("distribution = \"empirical\"\n{keys}");
        let name = folder.path().join("w.toml").display().to_string();
        let source = TomlText::new(&name, &text);
        let table = toml::de::DeTable::parse(&text).expect("TOML");
        Distribution::read(Keys::top(&source, table.get_ref()), TOKENS)
    };
    let plain = read("file = \"plain.txt\"").expect("numbers");
    let at: Vec<f64> = [0.1, 0.3, 0.6, 0.9].map(|u| plain.at(u)).into();
    assert_eq!(at, [10.0, 20.0, 20.0, 30.0]);
    let column = read("file = \"rows.csv\"\ncolumn = \"n\"").expect("a column");
    assert_eq!((column.at(0.4), column.at(0.6)), (7.0, 9.0));
    let fails = |keys: &str, part: &str| {
        let error = read(keys).map(|_| ()).expect_err(keys).to_string();
        assert!(error.contains(part) && error.contains("line 2"), "{error}");
    };
    fails("file = \"rows.csv\"", "line 1 is no number; name a `column`");
    fails("file = \"rows.csv\"\ncolumn = \"m\"", "without a column `m`; it has at_s, n");
    fails("file = \"none.txt\"", "cannot be read");
    fails("file = \"half.txt\"", "whose value 1 is 1.5; it must hold whole numbers from 1");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let check = |text: &str, unit: Unit, part: &str| {
        let error = read(text, unit).map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    };
    let mixture = "distribution = \"mixture\"\nweights = [1, 1]\n";
    check(
        &format!("{mixture}mu = [1]\nsigma = [1, 1]"),
        TOKENS,
        "`mu` at the top level has 1 entries",
    );
    check(&format!("{mixture}mu = [1, 99]\nsigma = [1, 1]"), TOKENS, "holds 99");
    check("distribution = \"zipf\"\nexponent = 1\nmax = 9000000", TOKENS, "there must be 1 to");
    check("distribution = \"zipf\"\nexponent = 1", TOKENS, "`max` is missing");
    check("distribution = \"zipf\"\nexponent = 1\nmax = 5", SECONDS, "unknown distribution `zipf`");
    check("distribution = \"fixed\"\nturns = 5000", TURNS, "from 1 to 4095");
    check("distribution = \"fixed\"\ntoken = 5", TOKENS, "did you mean `tokens`?");
    check("distribution = \"lognormal\"\nmu = 19\nsigma = 1", TOKENS, "from -10 to 18.5");
}
