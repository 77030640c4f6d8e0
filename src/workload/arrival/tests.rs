//! Arrivals under envelopes and in bursts, against what is known of them.

use super::super::keys::{Keys, TomlText};
use super::*;

fn read(text: &str) -> Result<Arrival, WorkloadError> {
    let source = TomlText::new("x.toml", text);
    let table = toml::de::DeTable::parse(text).expect("TOML");
    Arrival::read(Keys::top(&source, table.get_ref()))
}

/// The first `count` arrivals, in seconds.
fn arrivals(text: &str, count: usize) -> Vec<f64> {
    let arrival = read(text).unwrap_or_else(|error| panic!("{error}"));
    let (mut clock, mut draws) = (Clock::default(), Draws::new(5, 0));
    (0..count).map(|_| clock.next(&arrival, &mut draws).as_secs_f64()).collect()
}

/// How many arrivals fall into each stretch of `span` seconds.
fn counts(at: &[f64], span: f64, stretches: u32) -> Vec<usize> {
    let inside = |from: f64| at.iter().filter(|at| (from..from + span).contains(*at)).count();
    (0..stretches).map(|stretch| inside(f64::from(stretch) * span)).collect()
}

#[test]
fn even_arrivals_show_the_envelope_itself() {
    let even = "process = \"constant\"\nrate = 1\n[envelope]\n";
    // A rate of t from 0 to 10: the nth arrival at sqrt(2n).
    let ramp = arrivals(&format!("{even}kind = \"ramp\"\nfrom = 0\nto = 10\nover = \"10s\""), 61);
    for (n, at) in ramp.iter().enumerate() {
        let expect =
            if n <= 50 { libm::sqrt(2.0 * n as f64) } else { 10.0 + (n as f64 - 50.0) / 10.0 };
        assert!((at - expect).abs() < 2e-9, "{n}: {at} for {expect}");
    }
    let steps = format!("{even}kind = \"steps\"\nfactors = [4, 0, 2]\nevery = \"10s\"\n");
    assert_eq!(counts(&arrivals(&steps, 100), 10.0, 4), [40, 0, 20, 20], "the last one holds");
    let repeated = arrivals(&format!("{steps}repeat = true"), 200);
    assert_eq!(counts(&repeated, 10.0, 7), [40, 0, 20, 40, 0, 20, 40]);
    let spike = "kind = \"spike\"\nat = \"10s\"\nlasts = \"10s\"\nfactor = 3\nrise = \"10s\"";
    assert_eq!(counts(&arrivals(&format!("{even}{spike}"), 100), 10.0, 5), [10, 20, 30, 20, 10]);
}

#[test]
fn a_day_has_its_peak_and_its_trough() {
    let day = "process = \"constant\"\nrate = 1\n[envelope]\nkind = \"diurnal\"\npeak = 1.6\n\
               trough = 0.4\npeak_at = \"14h\"";
    let hours = counts(&arrivals(day, 200_000), 3_600.0, 48);
    assert_eq!(hours[..24].iter().sum::<usize>().abs_diff(86_400), 0, "the mean is 1");
    let peak = (0..24).max_by_key(|&hour| hours[hour]).expect("hours");
    assert!(peak == 13 || peak == 14, "{hours:?}");
    assert!((hours[peak] as f64 / 3_600.0 - 1.6).abs() < 0.01 && hours[2].min(hours[1]) < 1_470);
    assert!((0..24).all(|hour| hours[hour].abs_diff(hours[hour + 24]) <= 1), "every day alike");
}

#[test]
fn a_curve_comes_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let curve = |text: &str| {
        std::fs::write(folder.path().join("curve.csv"), text).expect("written");
        let toml =
            "process = \"constant\"\nrate = 1\n[envelope]\nkind = \"curve\"\nfile = \"curve.csv\"";
        let name = folder.path().join("w.toml").display().to_string();
        let source = TomlText::new(&name, toml);
        let table = toml::de::DeTable::parse(toml).expect("TOML");
        Arrival::read(Keys::top(&source, table.get_ref()))
    };
    let arrival = curve("t_s,factor\n0,0\n10,10\n20.5,0\n").expect("a curve");
    let (mut clock, mut draws) = (Clock::default(), Draws::new(0, 0));
    let at: Vec<Nanos> = (0..51).map(|_| clock.next(&arrival, &mut draws)).collect();
    assert_eq!(at[50], Nanos::from_secs(10), "the area below the first line is 50");
    let fails = |text: &str, part: &str| {
        let error = curve(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    };
    fails("t,f\n0,1\n", "does not begin with the line `t_s,factor`");
    fails("t_s,factor\n0,1\n5,x\n", "line 3: `factor` is x");
    fails("t_s,factor\n5,1\n2,1\n", "line 3: `t_s` goes back");
    fails("t_s,factor\n0,0\n9,0\n", "lets nothing arrive");
}

#[test]
fn bursts_have_their_sizes_and_silences() {
    let text = "process = \"constant\"\nrate = 10\n\
                [bursts.size]\ndistribution = \"fixed\"\nrequests = 3\n\
                [bursts.off]\ndistribution = \"fixed\"\nseconds = 5";
    assert_eq!(arrivals(text, 7), [0.0, 0.1, 0.2, 5.2, 5.3, 5.4, 10.4]);
    let paced = format!("{text}\n[bursts.pace]\ndistribution = \"fixed\"\nfactors = 2");
    assert_eq!(arrivals(&paced, 4), [0.0, 0.05, 0.1, 5.1], "the pace is the burst's alone");
    let twice = format!("{text}\n[envelope]\nkind = \"steps\"\nfactors = [2]\nevery = \"1s\"");
    assert_eq!(arrivals(&twice, 4), [0.0, 0.05, 0.1, 2.6], "the envelope moves silences too");
}

#[test]
fn a_gap_longer_than_many_rounds_is_passed_at_once() {
    let text = "process = \"constant\"\nrate = 1e-6\n[envelope]\nkind = \"steps\"\nfactors = [0, 2]\n\
                every = \"1ms\"\nrepeat = true";
    assert_eq!(arrivals(text, 3), [0.001, 1_000_000.001, 2_000_000.001]);
    // Nothing ever again.
    let ends = "process = \"constant\"\nrate = 1\n[envelope]\nkind = \"ramp\"\nfrom = 1\nto = 0\nover = \"4s\"";
    let arrival = read(ends).expect("a ramp");
    let (mut clock, mut draws) = (Clock::default(), Draws::new(0, 0));
    let at: Vec<Nanos> = (0..4).map(|_| clock.next(&arrival, &mut draws)).collect();
    assert_eq!(at[3], Nanos::MAX);
}

#[test]
fn a_closed_loop_spreads_its_first_requests() {
    let arrival = read("process = \"closed\"\nconcurrency = 4\nramp = \"2s\"").expect("closed");
    let Arrival::Closed(closed) = &arrival else { panic!("no closed loop") };
    assert_eq!((closed.slots, closed.ramp), (4, Nanos::from_secs(2)));
    let at = arrivals("process = \"closed\"\nconcurrency = 4\nramp = \"2s\"", 6);
    assert_eq!(at, [0.0, 0.5, 1.0, 1.5, 2.0, 2.0]);
}
