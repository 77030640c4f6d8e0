//! The real server on a real port under load: what it costs, and how late its tokens are.
//!
//! Figures, not proofs: ignored unless asked for, by
//! `cargo test --release --lib sim::tests::load -- --ignored --nocapture --test-threads 1`.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::super::settings::Settings;
use super::super::truth::{Ended, TruthRow};
use super::port::{Running, request};
use crate::units::{NS_PER_S, Nanos};

/// Reads one stream to its end; returns how many reads that took.
async fn stream(address: SocketAddr, output_tok: u64) -> u64 {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket.write_all(request(output_tok).as_bytes()).await.expect("sent");
    let (mut buffer, mut reads) = (Vec::with_capacity(64 << 10), 0);
    while socket.read_buf(&mut buffer).await.expect("a stream") > 0 {
        reads += 1;
        buffer.clear();
    }
    reads
}

/// All streams at once, on a runtime of its own.
fn load(address: SocketAddr, streams: usize, output_tok: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.expect("a runtime").block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..streams {
            tasks.spawn(stream(address, output_tok));
        }
        tasks.join_all().await.into_iter().sum()
    })
}

fn median_ms(values: impl Iterator<Item = Nanos>) -> f64 {
    let mut values: Vec<Nanos> = values.collect();
    values.sort_unstable();
    values[values.len() / 2].as_millis_f64()
}

fn measure(name: &str, settings: &Settings, streams: usize, output_tok: u64) {
    let server = Running::start(settings.clone());
    let reads = load(server.address, streams, output_tok);
    let (cpu_s, truth) = server.stop();
    assert_eq!(truth.len(), streams);
    assert!(truth.iter().all(|row| row.ended == Ended::Done && row.output_tok == output_tok));
    let first = truth.iter().filter_map(|row| row.first).min().expect("a token");
    let last = truth.iter().filter_map(|row| row.last).max().expect("a token");
    let (tokens, wall_s) = (streams as f64 * output_tok as f64, last.since(first).as_secs_f64());
    let gap = |value: fn(&TruthRow) -> Option<Nanos>| median_ms(truth.iter().filter_map(value));
    let ttft = truth.iter().filter_map(|row| Some(row.first?.since(row.arrival)));
    println!(
        "{name}: {streams} × {output_tok}: {:.0} tok/s, {:.2} µs/tok = {:.2} of a core, {:.2} tokens \
         a read, gap of {:.3} ms p50 {:.3} p99 {:.3}, ttft of {:.3} ms p50 {:.3}",
        tokens / wall_s,
        cpu_s * 1e6 / tokens,
        cpu_s / wall_s,
        tokens / reads as f64,
        settings.step(streams).as_millis_f64(),
        gap(|row| row.gap_p50),
        gap(|row| row.gap_p99),
        settings.prefill(1).as_millis_f64(),
        median_ms(ttft),
    );
}

/// So many steps a second, whatever the load.
fn paced(steps_s: u64, jitter: f64) -> Settings {
    Settings {
        step_base: Nanos(NS_PER_S / steps_s),
        step_per_stream: Nanos::ZERO,
        jitter,
        max_running: 10_000,
        ..Settings::default()
    }
}

#[test]
#[ignore = "figures of this machine"]
fn the_default_settings_carry_the_trace() {
    measure("defaults", &Settings::default(), 900, 800);
}

#[test]
#[ignore = "figures of this machine"]
fn one_event_per_write_at_several_loads() {
    measure("20 at 50 ms", &paced(20, 0.0), 20, 100);
    measure("50k", &paced(50, 0.1), 1_000, 300);
    measure("100k", &paced(100, 0.1), 1_000, 600);
    measure("100k without jitter", &paced(100, 0.0), 1_000, 600);
    measure("64 at 1 ms", &paced(1_000, 0.0), 64, 4_000);
    measure("unbounded", &paced(NS_PER_S, 0.0), 64, 4_000);
}
