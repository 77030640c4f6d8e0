//! What each method does to rate and dispersion, against its formula.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Debug;

use super::*;
use crate::schedule::{Shape, plan};
use crate::trace::Request;
use crate::trace::read::TraceClock;
use crate::trace::stats::{ArrivalFigures, Arrivals};
use crate::units::{NS_PER_S, Nanos};

type Rows = Vec<Result<Request, Infallible>>;

/// Bursty rows: every second has its own number of them, in sessions of three.
fn bursty(seconds: u64) -> Rows {
    let mut rows = Vec::new();
    for second in 0..seconds {
        let burst = second.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        for _ in 0..burst {
            let row = rows.len() as u64;
            let at = Nanos::from_secs(second);
            let session = Some(format!("s{}", row / 3).into());
            let class = Some(if row.is_multiple_of(5) { "big" } else { "small" }.into());
            rows.push(Ok(Request { row, at, session, class, ..Request::default() }));
        }
    }
    rows
}

fn figures<'a>(rows: impl IntoIterator<Item = &'a Request>) -> ArrivalFigures {
    let mut arrivals = Arrivals::default();
    rows.into_iter().for_each(|row| arrivals.add(row.at));
    arrivals.figures()
}

fn collect<E: Debug>(rows: impl Iterator<Item = Result<Request, E>>) -> Vec<Request> {
    rows.map(Result::unwrap).collect()
}

fn idc(figures: &ArrivalFigures, scale: usize) -> f64 {
    figures.scales[scale].idc.unwrap()
}

fn near(found: f64, expect: f64, part: f64) {
    assert!((found / expect - 1.0).abs() < part, "{found} is not near {expect}");
}

#[test]
fn thinning_keeps_sessions_whole_is_nested_and_fades_bursts() {
    // Sessions of one row each: the formula is for rows that stay by themselves.
    let alone =
        bursty(20_000).into_iter().map(|row| row.map(|row| Request { session: None, ..row }));
    let all = figures(&collect(bursty(20_000).into_iter()));
    let kept = figures(&collect(thinned(alone, 0.5, 7)));
    near(kept.rate.unwrap(), 0.5 * all.rate.unwrap(), 0.03);
    near(idc(&kept, 0) - 1.0, 0.5 * (idc(&all, 0) - 1.0), 0.06);
    let rows = |share: f64| -> HashSet<u64> {
        thinned(bursty(500).into_iter(), share, 7).map(|row| row.unwrap().row).collect()
    };
    let (few, many) = (rows(0.2), rows(0.5));
    assert!(few.len() > 100 && few.is_subset(&many) && few.len() < many.len());
    assert!(
        many.iter().all(|row| (0..3).all(|turn| {
            let mate = row / 3 * 3 + turn;
            many.contains(&mate) || mate >= bursty(500).len() as u64
        })),
        "a session stays or goes as a whole"
    );
    assert_eq!(rows(1.0).len(), bursty(500).len());
    let other: HashSet<u64> =
        thinned(bursty(500).into_iter(), 0.2, 8).map(|row| row.unwrap().row).collect();
    assert_ne!(few, other, "another seed keeps others");
}

#[test]
fn cloning_multiplies_dispersion_and_numbers_copies_on() {
    let rows = bursty(5_000);
    let count = rows.len() as u64;
    let all = figures(&collect(rows.clone().into_iter()));
    let twice = collect(cloned(rows.clone().into_iter(), 2.0, 0, count));
    let made = figures(&twice);
    near(made.rate.unwrap(), 2.0 * all.rate.unwrap(), 0.001);
    near(idc(&made, 0), 2.0 * idc(&all, 0), 0.001);
    near(made.scales[2].peak_to_mean.unwrap(), all.scales[2].peak_to_mean.unwrap(), 0.001);
    let numbers: HashSet<u64> = twice.iter().map(|row| row.row).collect();
    assert_eq!(numbers, (0..2 * count).collect());
    assert_eq!((twice[1].row, twice[1].source_row), (count, Some(0)));
    assert_eq!(twice[1].session.as_deref(), Some("s0~1"));
    let broken = collect(cloned(rows.into_iter(), 1.25, 0, count)).len() as f64;
    near(broken, 1.25 * count as f64, 0.02);
}

#[test]
fn compressing_moves_dispersion_along_the_scales() {
    let rows = bursty(20_000);
    let all = figures(&collect(rows.clone().into_iter()));
    let shape = Shape { speed: speed_of(10.0), ..Shape::default() };
    let planned = plan(rows, &shape).map(|row| row.unwrap());
    let moved: Vec<Request> =
        planned.map(|row| Request { at: row.due.unwrap(), ..row.request }).collect();
    let made = figures(&moved);
    near(made.rate.unwrap(), 10.0 * all.rate.unwrap(), 1e-6);
    near(made.gap_cv.unwrap(), all.gap_cv.unwrap(), 1e-6);
    near(idc(&made, 0), idc(&all, 1), 1e-6);
}

#[derive(Debug)]
struct Failed;

impl From<ClientError> for Failed {
    fn from(_: ClientError) -> Self {
        Self
    }
}

#[test]
fn per_client_keeps_shares_and_the_curve() {
    let rows = || bursty(6_000).into_iter().map(|row| row.map_err(|_| Failed));
    let count = bursty(6_000).len();
    let of = |rows: &[Request], name: &str| {
        rows.iter().filter(|row| row.class.as_deref() == Some(name)).count() as f64
    };
    let all = collect(rows());
    for factor in [2.0, 0.5, 1.0, 3.7] {
        let made = collect(per_client(rows(), factor, count as u64));
        assert!(made.is_sorted_by_key(|row| row.at));
        near(made.len() as f64, factor * count as f64, 0.02);
        near(of(&made, "big"), factor * of(&all, "big"), 0.05);
        let ten_minutes = |rows: &[Request], place: u64| {
            rows.iter().filter(|row| row.at.0 / (600 * NS_PER_S) == place).count() as f64
        };
        for place in 0..10 {
            near(ten_minutes(&made, place), factor * ten_minutes(&all, place), 0.06);
        }
        let numbers: HashSet<u64> = made.iter().map(|row| row.row).collect();
        assert_eq!(numbers.len(), made.len(), "every row has its own number");
    }
    let same = collect(per_client(rows(), 1.0, count as u64));
    assert!(same.iter().zip(&all).all(|(a, b)| (a.row, a.at) == (b.row, b.at)));
    let nameless = rows().map(|row| row.map(|row| Request { class: None, ..row }));
    assert!(per_client(nameless, 2.0, 0).next().unwrap().is_err());
}

#[test]
fn rounded_times_are_spread_over_their_grain_and_no_further() {
    let rows: Rows = [0_u64, 0, 0, 3, 3, 3, 60]
        .into_iter()
        .enumerate()
        .map(|(row, second)| {
            Ok(Request { row: row as u64, at: Nanos::from_secs(second), ..Request::default() })
        })
        .collect();
    let spread = collect(dequantised(rows.clone().into_iter(), Nanos::from_secs(3), 1));
    assert!(spread.is_sorted_by_key(|row| row.at));
    assert_eq!(spread.iter().map(|row| row.row).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    let within = |row: &Request, from: u64| {
        row.at >= Nanos::from_secs(from) && row.at < Nanos::from_secs(from + 3)
    };
    assert!(spread[..3].iter().all(|row| within(row, 0)));
    assert!(spread[3..6].iter().all(|row| within(row, 3)) && within(&spread[6], 60));
    let distinct: HashSet<_> = spread.iter().map(|row| row.at).collect();
    assert_eq!(distinct.len(), 7);
    let again = collect(dequantised(rows.clone().into_iter(), Nanos::from_secs(3), 1));
    assert!(again.iter().zip(&spread).all(|(a, b)| a.at == b.at));
    let other = collect(dequantised(rows.into_iter(), Nanos::from_secs(3), 2));
    assert!(other.iter().zip(&spread).any(|(a, b)| a.at != b.at));
}

#[test]
fn rows_without_times_and_sessions_without_starts_come_at_the_rate() {
    let rows: Rows = (0..20_000).map(|row| Ok(Request { row, ..Request::default() })).collect();
    let rate = "5.5".parse().unwrap();
    let timed = collect(paced(rows.into_iter(), TraceClock::Absent, rate, 3).unwrap());
    let made = figures(&timed);
    near(made.rate.unwrap(), 5.5, 0.03);
    near(made.gap_cv.unwrap(), 1.0, 0.03);
    near(idc(&made, 0), 1.0, 0.1);
    // 400 sessions of 5 rows, one every second within each.
    let rows: Rows = (0..2_000)
        .map(|row| {
            let session =
                Some(format!("s{}{}", row / 5, if row % 5 == 4 { "/sub" } else { "" }).into());
            Ok(Request { row, at: Nanos::from_secs(row % 5), session, ..Request::default() })
        })
        .collect();
    let timed = collect(paced(rows.into_iter(), TraceClock::PerSession, rate, 3).unwrap());
    assert!(timed.is_sorted_by_key(|row| row.at));
    near(figures(&timed).rate.unwrap(), 5.5, 0.15);
    let at = |wanted: u64| timed.iter().find(|row| row.row == wanted).unwrap().at;
    assert_eq!(at(14).since(at(10)), Nanos::from_secs(4), "a sub-agent starts with its session");
}

#[test]
fn words_and_factors_out_of_reach_are_refused() {
    let rate: Rate = "10".parse().unwrap();
    for word in ["0", "-1", "x", "inf", "nan", ""] {
        assert!(word.parse::<Rate>().unwrap_err().to_string().contains("requests per second"));
    }
    let refused = |method: Method, recorded: f64, part: &str| {
        let message = method.factor(recorded, rate).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    };
    refused(Method::Thin, 5.0, "cannot raise");
    refused(Method::Clone, 20.0, "cannot lower");
    refused(Method::Compress, 0.0, "no rate of its own");
    refused(Method::Compress, f64::INFINITY, "no rate of its own");
    assert_eq!(Method::PerClient.factor(5.0, rate), Ok(2.0));
    for word in ["compress", "thin", "clone", "per-client"] {
        assert_eq!(word.parse::<Method>().unwrap().to_string(), word);
    }
    assert!("every-kth".parse::<Method>().unwrap_err().to_string().contains("per-client"));
    assert_eq!("uniform".parse::<Dequantise>().unwrap().to_string(), "uniform");
    assert!("evenly".parse::<Dequantise>().is_err());
}
