//! The engine against hand-computed times, and against what must hold for any load.

use proptest::prelude::*;

use super::*;

/// No jitter, 200 ms to the first token, 50 ms between tokens, whatever the load.
fn exact() -> Settings {
    Settings {
        prefill_base: Nanos::from_millis(200),
        prefill_per_tok: Nanos::ZERO,
        step_base: Nanos::from_millis(50),
        step_per_stream: Nanos::ZERO,
        jitter: 0.0,
        ..Settings::default()
    }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// All events up to the end of time.
fn drain(engine: &mut Engine) -> Vec<Event> {
    let mut events = Vec::new();
    engine.advance(Nanos::MAX, &mut |event| events.push(event));
    events
}

fn first(id: u64, at: u64, queued: u64) -> Event {
    Event::FirstToken { id, at: ms(at), queued: ms(queued) }
}

fn token(id: u64, at: u64) -> Event {
    Event::Token { id, at: ms(at) }
}

fn finished(id: u64, at: u64) -> Event {
    Event::Finished { id, at: ms(at) }
}

#[test]
fn one_stream_is_exact() {
    let mut engine = Engine::new(exact());
    engine.admit(ms(1_000), 0, 10, 3).unwrap();
    assert_eq!(engine.next_event(), Some(ms(1_200)));
    let expected = [first(0, 1_200, 0), token(0, 1_250), token(0, 1_300), finished(0, 1_300)];
    assert_eq!(drain(&mut engine), expected);
    assert_eq!((engine.next_event(), engine.running()), (None, 0));
}

#[test]
fn prefill_grows_with_the_prompt_and_steps_with_the_load() {
    let settings = Settings { prefill_per_tok: ms(1), step_per_stream: ms(10), ..exact() };
    let mut engine = Engine::new(settings);
    engine.admit(ms(0), 0, 100, 2).unwrap();
    engine.admit(ms(0), 1, 0, 3).unwrap();
    let expected = [
        first(1, 200, 0),
        // Two hold a slot, the one in prefill counted: 50 + 2 × 10.
        token(1, 270),
        first(0, 300, 0),
        token(1, 340),
        finished(1, 340),
        token(0, 370),
        finished(0, 370),
    ];
    assert_eq!(drain(&mut engine), expected);
}

#[test]
fn the_queue_is_first_in_first_out() {
    let mut engine = Engine::new(Settings { max_running: 1, ..exact() });
    for id in 0..3 {
        engine.admit(ms(id), id, 0, 1).unwrap();
    }
    assert_eq!((engine.running(), engine.queued()), (1, 2));
    let expected = [
        first(0, 200, 0),
        finished(0, 200),
        first(1, 400, 199),
        finished(1, 400),
        first(2, 600, 398),
        finished(2, 600),
    ];
    assert_eq!(drain(&mut engine), expected);
}

#[test]
fn a_full_queue_refuses_in_words() {
    let mut engine = Engine::new(Settings { max_running: 1, max_queued: 2, ..exact() });
    for id in 0..3 {
        engine.admit(ms(0), id, 0, 1).unwrap();
    }
    let error = engine.admit(ms(0), 3, 0, 1).expect_err("full");
    assert_eq!(error, QueueFull { queued: 2, limit: 2 });
    assert!(error.to_string().contains("max_queued"));
    assert_eq!(engine.cancel(ms(5), 2), Some(ms(5)));
    engine.admit(ms(5), 4, 0, 1).unwrap();
}

#[test]
fn cancelling_frees_the_slot_at_once() {
    let mut engine = Engine::new(Settings { max_running: 1, ..exact() });
    engine.admit(ms(0), 0, 0, 100).unwrap();
    engine.admit(ms(0), 1, 0, 1).unwrap();
    engine.admit(ms(0), 2, 0, 1).unwrap();
    assert_eq!(engine.cancel(ms(50), 1), Some(ms(50)), "from the queue");
    assert_eq!(engine.cancel(ms(100), 0), Some(ms(0)), "from the slot");
    assert_eq!(engine.cancel(ms(100), 0), None);
    assert_eq!(engine.next_event(), Some(ms(300)), "not the cancelled stream's 200");
    assert_eq!(drain(&mut engine), [first(2, 300, 100), finished(2, 300)]);
}

#[test]
fn a_late_driver_does_not_delay_the_model() {
    let mut engine = Engine::new(Settings { max_running: 1, ..exact() });
    engine.admit(ms(0), 0, 0, 2).unwrap();
    engine.admit(ms(0), 1, 0, 1).unwrap();
    let mut events = Vec::new();
    engine.advance(ms(10_000), &mut |event| events.push(event));
    assert_eq!(events.last(), Some(&finished(1, 450)));
}

/// Keeps the queue from running dry and counts what comes out of it, past the start.
fn saturated(settings: &Settings, prompt_tok: u64, output_tok: u64) -> (f64, f64) {
    let mut engine = Engine::new(settings.clone());
    let (warm, end) = (Nanos::from_secs(20), Nanos::from_secs(120));
    let (mut id, mut now, mut tokens, mut requests) = (0, Nanos::ZERO, 0_u64, 0_u64);
    while now <= end {
        while engine.queued() < 2 {
            engine.admit(now, id, prompt_tok, output_tok).unwrap();
            id += 1;
        }
        now = engine.next_event().expect("a full server");
        engine.advance(now, &mut |event| {
            let counted = now > warm && now <= end;
            match event {
                Event::Finished { .. } => requests += u64::from(counted),
                _ => tokens += u64::from(counted),
            }
        });
    }
    let window_s = end.since(warm).as_secs_f64();
    (tokens as f64 / window_s, requests as f64 / window_s)
}

#[test]
fn the_capacity_formulas_hold_under_saturation() {
    let small = Settings { max_running: 64, jitter: 0.2, ..Settings::default() };
    let near = |got: f64, want: f64| {
        assert!((got / want - 1.0).abs() < 0.01, "{got} against {want}");
    };
    let (tok_s, req_s) = saturated(&small, 1_155, 211);
    near(req_s, small.capacity_req_s(1_155.0, 211.0));
    near(tok_s, 211.0 * small.capacity_req_s(1_155.0, 211.0));
    let short = Settings { prefill_base: ms(5), ..small };
    near(saturated(&short, 10, 2_000).0, short.capacity_tok_s());
}

#[test]
fn half_as_much_again_as_the_trace_does_not_queue_on_the_defaults() {
    let mut engine = Engine::new(Settings::default());
    let (mut now, mut most) = (Nanos::ZERO, 0);
    // 500 req/s: 1.5 times the trace's mean hour at speed 60, and its fullest second (507).
    for id in 0..5_000 {
        engine.advance(now, &mut |_| {});
        engine.admit(now, id, 1_155, 211).unwrap();
        assert_eq!(engine.queued(), 0);
        most = most.max(engine.running());
        now += ms(2);
    }
    assert!((1_000..1_600).contains(&most), "{most}");
}

/// One step of a random load: wait, then admit (with these tokens) or cancel.
type Step = (u64, u64, u64, bool);

fn play(settings: &Settings, steps: &[Step]) -> (Vec<Event>, usize) {
    let mut engine = Engine::new(settings.clone());
    let (mut events, mut now, mut most) = (Vec::new(), Nanos::ZERO, 0);
    for (number, (wait_ms, prompt_tok, output_tok, is_cancel)) in steps.iter().enumerate() {
        now += ms(*wait_ms);
        engine.advance(now, &mut |event| events.push(event));
        if *is_cancel {
            engine.cancel(now, number as u64 / 2);
        } else {
            engine.admit(now, number as u64, *prompt_tok, *output_tok).unwrap();
        }
        most = most.max(engine.running());
        assert!(engine.queued() == 0 || engine.running() == settings.max_running, "no idle slot");
    }
    engine.advance(Nanos::MAX, &mut |event| events.push(event));
    assert_eq!((engine.running(), engine.queued()), (0, 0));
    (events, most)
}

fn at(event: &Event) -> Nanos {
    match event {
        Event::FirstToken { at, .. } | Event::Token { at, .. } | Event::Finished { at, .. } => *at,
    }
}

proptest! {
    #[test]
    fn any_load_keeps_the_rules(
        steps in prop::collection::vec(
            (0..80_u64, 0..50_u64, 1..20_u64, prop::bool::weighted(0.3)), 1..120),
        max_running in 1..6_usize,
        seed in 0..4_u64,
    ) {
        let settings = Settings { max_running, jitter: 0.3, seed, ..Settings::default() };
        let (events, most) = play(&settings, &steps);
        prop_assert!(most <= max_running);
        prop_assert!(events.is_sorted_by_key(at), "in order of time");
        // The same seed, the same times.
        prop_assert_eq!(&play(&settings, &steps).0, &events);
        // Whoever finishes has had every token asked for.
        for event in &events {
            if let Event::Finished { id, .. } = event {
                let tokens = events.iter().filter(|other| match other {
                    Event::FirstToken { id: other, .. } | Event::Token { id: other, .. } => other == id,
                    Event::Finished { .. } => false,
                });
                prop_assert_eq!(tokens.count() as u64, steps[usize::try_from(*id).unwrap()].2);
            }
        }
    }

    #[test]
    fn slots_are_given_in_the_order_of_arrival(
        steps in prop::collection::vec((0..80_u64, 0..50_u64, 1..20_u64, Just(false)), 1..80),
        max_running in 1..4_usize,
    ) {
        // One length of prompt and no jitter: first tokens come in the order of the slots.
        let settings = Settings { max_running, prefill_per_tok: Nanos::ZERO, ..exact() };
        let (events, _) = play(&settings, &steps);
        let firsts = events.iter().filter_map(|event| match event {
            Event::FirstToken { id, .. } => Some(*id),
            _ => None,
        });
        prop_assert!(firsts.eq(0..steps.len() as u64));
    }
}
