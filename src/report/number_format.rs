//! Numbers as people read them. Deliberately absent: anything that a program should read back.

use crate::units::{NS_PER_S, Nanos};

/// What stands for a figure that is not there.
pub const NONE: &str = "–";

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three decimals below 10, two below 100, one above.
pub(super) fn decimal(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.3}"),
        v if v < 100.0 => format!("{v:.2}"),
        v => format!("{v:.1}"),
    }
}

/// A rate with its unit: two decimals, three below one.
pub(super) fn rate(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(value) if value > 0.0 && value < 1.0 => format!("{value:.3} {unit}"),
        Some(value) => format!("{value:.2} {unit}"),
        None => NONE.to_owned(),
    }
}

/// A share as a percentage. One in a million is not 0.0%.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p > 0.0 && p < 0.05 => format!("{percent:.4}%"),
        _ => format!("{percent:.1}%"),
    }
}

/// `754.2 s`, from ten minutes on `1h 02m 03s`, and in milliseconds what would read as nothing.
#[must_use]
pub fn span(span: Nanos) -> String {
    let s = span.0 / NS_PER_S;
    if span > Nanos::ZERO && span < Nanos::from_millis(100) {
        return format!("{} ms", decimal(span.as_millis_f64()));
    }
    if s < 600 {
        return format!("{:.1} s", span.as_secs_f64());
    }
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 { format!("{h}h {m:02}m {s:02}s") } else { format!("{m}m {s:02}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([grouped(0), grouped(999), grouped(1_000)], ["0", "999", "1,000"]);
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(
            [decimal(0.02), decimal(12.345), decimal(1234.56)],
            ["0.020", "12.35", "1234.6"]
        );
        assert_eq!(
            [percent(0.0), percent(0.125), percent(0.000_001)],
            ["0.0%", "12.5%", "0.0001%"]
        );
        assert_eq!(span(Nanos::from_millis(12_345)), "12.3 s");
        assert_eq!([span(Nanos::ZERO), span(Nanos::from_millis(25))], ["0.0 s", "25.00 ms"]);
        assert_eq!(
            [span(Nanos::from_secs(754)), span(Nanos::from_secs(3_723))],
            ["12m 34s", "1h 02m 03s"]
        );
        let rates = [None, Some(0.0), Some(0.0123), Some(9.974)].map(|value| rate(value, "req/s"));
        assert_eq!(rates, ["–", "0.00 req/s", "0.012 req/s", "9.97 req/s"]);
    }
}
