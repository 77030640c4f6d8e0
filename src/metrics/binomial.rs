//! Binomial tails, and the order statistics that they bound.
//!
//! Of `n` independent values, the number below the `p` quantile is Binomial(`n`, `p`), whatever the
//! distribution is. So the ranks between which a quantile lies with 95% confidence need no model.
//! Deliberately absent: normal approximations (they fail where samples are few, which is where an
//! interval matters).

/// Probability left out on either side of a two-sided 95% interval.
const TAIL: f64 = 0.025;

/// `P(B ≤ k)` for `B` ~ Binomial(`n`, `p`), `0 < p < 1`.
///
/// Sums from `k` away from the mode until the terms vanish: about √n of them.
#[must_use]
pub fn at_most(n: u64, k: u64, p: f64) -> f64 {
    if k >= n {
        1.0
    } else if (k as f64) < n as f64 * p {
        lower_tail(n, k, p)
    } else {
        1.0 - lower_tail(n, n - k - 1, 1.0 - p)
    }
}

fn lower_tail(n: u64, k: u64, p: f64) -> f64 {
    let odds_against = (1.0 - p) / p;
    let mut term = ln_pmf(n, k, p).exp();
    let mut sum = term;
    for j in (1..=k).rev() {
        term *= j as f64 / (n - j + 1) as f64 * odds_against;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// `ln P(B = k)`.
fn ln_pmf(n: u64, k: u64, p: f64) -> f64 {
    let ln_factorial = |m: u64| libm::lgamma(m as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
        + k as f64 * p.ln()
        + (n - k) as f64 * (-p).ln_1p()
}

/// The least number of values whose smallest and largest bound the `p` quantile, each side missing
/// it with at most 2.5%: the least `n` with `max(p, 1 − p)^n ≤ 0.025`.
///
/// `p^n` is the probability that all values lie below the quantile, `(1 − p)^n` that all lie above:
/// 6 for the median, 36 for p10 and p90, 72 for p5 and p95, 368 for p1 and p99, 3,688 for p99.9.
#[must_use]
pub fn least_n(p: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "p is inside (0, 1)"
    )]
    let least = (TAIL.ln() / p.max(1.0 - p).ln()).ceil() as u64;
    least
}

/// The 1-based ranks among `n` ordered values between which the `p` quantile lies with at least 95%
/// confidence, each side missing it with at most 2.5%; `None` when `n` is too small for that.
#[must_use]
pub fn quantile_ranks(n: u64, p: f64) -> Option<(u64, u64)> {
    let lower = lower_rank(n, p);
    let upper = (n + 1).checked_sub(lower_rank(n, 1.0 - p))?;
    (lower >= 1 && upper <= n).then_some((lower, upper))
}

/// The largest rank whose value exceeds the `p` quantile with at most 2.5%; 0 when none does.
fn lower_rank(n: u64, p: f64) -> u64 {
    // Rank l exceeds the quantile when fewer than l values lie below it.
    let (mut fits, mut fails) = (0, n + 1);
    while fails - fits > 1 {
        let rank = fits + (fails - fits) / 2;
        if at_most(n, rank - 1, p) <= TAIL {
            fits = rank;
        } else {
            fails = rank;
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_equal_the_sums_written_out() {
        for n in 1..=40_u64 {
            for p in [0.01, 0.25, 0.5, 0.9, 0.999] {
                let mut pmf = (1.0_f64 - p).powi(i32::try_from(n).expect("small"));
                let mut sum = 0.0;
                for k in 0..=n {
                    sum += pmf;
                    assert!((at_most(n, k, p) - sum).abs() < 1e-9, "n={n} k={k} p={p}");
                    pmf *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
                }
            }
        }
        let half = at_most(1_000_000, 500_000, 0.5);
        assert!((half - 0.500_398_94).abs() < 1e-6, "{half}");
    }

    #[test]
    fn least_counts_are_those_of_the_contract() {
        let wanted = [
            (0.5, 6),
            (0.25, 13),
            (0.75, 13),
            (0.1, 36),
            (0.9, 36),
            (0.05, 72),
            (0.95, 72),
            (0.01, 368),
            (0.99, 368),
            (0.999, 3688),
        ];
        for (p, n) in wanted {
            assert_eq!(least_n(p), n, "p={p}");
            assert_eq!(quantile_ranks(n - 1, p), None, "p={p}");
            assert!(quantile_ranks(n, p).is_some(), "p={p}");
        }
    }

    #[test]
    fn ranks_of_the_median_are_those_of_the_tables() {
        assert_eq!(quantile_ranks(5, 0.5), None);
        assert_eq!(quantile_ranks(6, 0.5), Some((1, 6)));
        assert_eq!(quantile_ranks(10, 0.5), Some((2, 9)));
        assert_eq!(quantile_ranks(20, 0.5), Some((6, 15)));
        assert_eq!(quantile_ranks(100, 0.5), Some((40, 61)));
        assert_eq!(quantile_ranks(0, 0.5), None);
        let (low, high) = quantile_ranks(1_000_000, 0.5).expect("plenty");
        assert_eq!(low + high, 1_000_001);
        assert!((499_015..=499_025).contains(&low), "{low}");
    }
}
