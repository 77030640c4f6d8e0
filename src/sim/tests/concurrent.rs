//! Several requests to one server: the queue, clients that leave, connections, readers that come late.

use super::client::Client;
use super::{CHAT, COMPLETIONS, chat, exact, ms, streamed, with};
use crate::sim::settings::Settings;
use crate::sim::truth::{Ended, TruthRow};
use crate::units::Nanos;

#[test]
fn requests_queue_in_order_of_arrival() {
    let settings = Settings { max_running: 1, max_queued: 1, ..exact() };
    let (firsts, refused, truth) = with(settings, |world| async move {
        let (mut a, mut b, mut c) = (world.connect(), world.connect(), world.connect());
        a.send(CHAT, &streamed(3)).await;
        world.sleep_until(ms(10)).await;
        b.send(CHAT, &streamed(1)).await;
        world.sleep_until(ms(20)).await;
        assert_eq!((world.server.running(), world.server.queued()), (1, 1));
        let refused = c.post(CHAT, &streamed(1)).await;
        let firsts = [a.reply().await.token_times()[0], b.reply().await.token_times()[0]];
        (firsts, refused, world.truth())
    });
    // The second starts when the first ends, at 200 + 2 × 50.
    assert_eq!(firsts, [ms(200), ms(500)]);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["code"], 503);
    assert!(refused.body.contains("`max_queued` is 1"), "{}", refused.body);
    let row = |id: &str| truth.iter().find(|row| row.request_id == id).expect(id);
    assert_eq!(row("chatcmpl-sim-1").queued, Some(ms(290)));
    assert_eq!(row("chatcmpl-sim-2").ended, Ended::Refused);
    assert_eq!((row("chatcmpl-sim-2").queued, row("chatcmpl-sim-2").first), (None, None));
}

#[test]
fn a_client_that_goes_away_frees_its_slot_at_once() {
    let settings = Settings { max_running: 1, ..exact() };
    let truth = with(settings, |world| async move {
        let (mut a, mut b, mut c, mut d) =
            (world.connect(), world.connect(), world.connect(), world.connect());
        a.send(CHAT, &streamed(1_000)).await;
        world.sleep_until(ms(1)).await;
        b.send(CHAT, &chat(1_000, "")).await;
        world.sleep_until(ms(2)).await;
        c.send(CHAT, &chat(2, "")).await;
        world.sleep_until(ms(3)).await;
        d.send(CHAT, &streamed(1_000)).await;
        world.sleep_until(ms(260)).await;
        // A stream after its second token; one that waits in the queue; one that is not streamed.
        drop(a);
        drop(d);
        world.sleep_until(ms(300)).await;
        drop(b);
        let reply = c.reply().await.json();
        assert_eq!(reply["usage"]["completion_tokens"], 2);
        assert_eq!((world.server.running(), world.server.queued()), (0, 0));
        world.truth()
    });
    let row = |id: &str| truth.iter().find(|row| row.request_id == id).expect(id);
    let a = row("chatcmpl-sim-0");
    assert_eq!((a.ended, a.output_tok, a.last), (Ended::Cancelled, 2, Some(ms(250))));
    let b = row("chatcmpl-sim-1");
    assert_eq!((b.ended, b.output_tok, b.queued), (Ended::Cancelled, 0, Some(ms(259))));
    let d = row("chatcmpl-sim-3");
    assert_eq!((d.ended, d.first, d.queued), (Ended::Cancelled, None, Some(ms(257))));
    let c = row("chatcmpl-sim-2");
    assert_eq!((c.ended, c.first), (Ended::Done, Some(ms(300 + 200 + 50))));
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let truth = with(exact(), |world| async move {
        let mut client = world.connect();
        for _ in 0..3 {
            let reply = client.post(CHAT, &streamed(2)).await;
            assert!(!reply.head.contains("connection: close"), "{}", reply.head);
        }
        world.truth()
    });
    let firsts: Vec<_> = truth.iter().map(|row| row.first).collect();
    assert_eq!(firsts, [200, 450, 700].map(|at| Some(ms(at))));
}

#[test]
fn streams_keep_their_own_phase() {
    with(exact(), |world| async move {
        let (mut a, mut b) = (world.connect(), world.connect());
        a.send(CHAT, &streamed(3)).await;
        world.sleep_until(ms(7)).await;
        b.send(COMPLETIONS, r#"{"prompt":"x","max_tokens":3,"stream":true}"#).await;
        let (a, b) = tokio::join!(a.reply(), b.reply());
        assert_eq!(a.token_times(), [200, 250, 300].map(ms));
        assert_eq!(b.token_times(), [207, 257, 307].map(ms));
    });
}

#[test]
fn a_reader_that_comes_late_finds_one_event_per_token() {
    with(exact(), |world| async move {
        let mut client = world.connect();
        client.send(CHAT, &streamed(2_000)).await;
        // The pipe holds 64 KiB: the server has to wait, and loses nothing.
        world.sleep_until(Nanos::from_secs(200)).await;
        assert_eq!(client.reply().await.token_times().len(), 2_000);
        assert_eq!(world.truth()[0].output_tok, 2_000);
    });
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_times() {
    let run = |seed: u64| -> (Vec<(Nanos, String)>, Vec<TruthRow>) {
        let settings =
            Settings { seed, mean_output_tok: Some(20.0), max_running: 3, ..Settings::default() };
        with(settings, |world| async move {
            let mut clients: Vec<Client> = (0..8).map(|_| world.connect()).collect();
            for client in &mut clients {
                client.send(CHAT, &streamed(64)).await;
            }
            let mut pieces = Vec::new();
            for client in &mut clients {
                pieces.extend(client.reply().await.pieces);
            }
            (pieces, world.truth())
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}
