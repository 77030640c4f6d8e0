//! Connections dialled before the first row.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use underfire::record::{Outcome, Row};

use crate::program::{Place, json, small_trace};

fn reused(rows: &[Row]) -> usize {
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:#?}");
    for row in rows {
        assert_eq!(row.connect.is_none(), row.conn_reused == Some(true), "{row:?}");
    }
    rows.iter().filter(|row| row.conn_reused == Some(true)).count()
}

/// Rows that found a connection, and what the manifest says of dialling.
fn run(rows: u32, arguments: &[&str]) -> (usize, serde_json::Value) {
    let place = Place::new();
    place.write("t.csv", small_trace(rows, 0));
    place.run(&[&["run", "t.csv", "--out", "run"], arguments].concat()).expect(0);
    let found = place.rows("run");
    assert_eq!(found.len(), rows as usize);
    (reused(&found), json(&place.read("run/run.json"))["predial"].clone())
}

#[test]
fn a_closed_loop_finds_its_connections_made() {
    let (reused, said) = run(12, &["--concurrency", "4", "--workers", "2"]);
    assert_eq!((reused, &said["dialled"], &said["failed"]), (12, &4.into(), &0.into()));
    assert!(said["connect_ms"]["max"].as_f64() >= said["connect_ms"]["p50"].as_f64());
    let (reused, said) = run(3, &["--concurrency", "8", "--workers", "2"]);
    assert_eq!((reused, &said["dialled"]), (3, &6.into()), "no more than rows can use");
    let (reused, said) = run(4, &["--concurrency", "4", "--predial", "0"]);
    assert_eq!((reused, said.is_null()), (0, true));
}

#[test]
fn an_open_loop_dials_ahead_when_asked() {
    // All at once, so that no connection serves two rows.
    let (reused, said) = run(9, &["--predial", "5", "--workers", "2"]);
    assert_eq!((reused, &said["dialled"]), (5, &5.into()));
    let (reused, said) = run(9, &["--workers", "2"]);
    assert_eq!((reused, said.is_null()), (0, true));
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

fn answer(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    // The whole request is small and comes at once.
    if stream.read(&mut bytes).is_ok_and(|n| n > 0) {
        // A client that went away needs no answer.
        let _ = stream.write_all(ANSWER.as_bytes());
    }
}

#[test]
fn a_connection_dropped_before_its_row_is_dialled_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let server = std::thread::spawn(move || {
        // Dialled ahead: both are dropped at once. The rows' own are answered.
        for _ in 0..2 {
            drop(listener.accept().expect("a connection"));
        }
        for _ in 0..2 {
            answer(listener.accept().expect("a connection").0);
        }
    });
    let place = Place::new();
    // Late enough for the close to have come.
    let late = small_trace(2, 0).replace("0.000,", "0.500,");
    place.write("t.csv", late);
    let bare = ["--no-preflight", "--metrics", "off", "--model", "m", "--workers", "1"];
    let run = ["run", "t.csv", "--url", &url, "--out", "run", "--predial", "2"];
    place.run(&[&run[..], &bare].concat()).expect(0);
    server.join().expect("every connection came");
    assert_eq!(reused(&place.rows("run")), 0);
    let said = json(&place.read("run/run.json"))["predial"].clone();
    assert_eq!((&said["dialled"], &said["failed"]), (&2.into(), &0.into()));
}

#[test]
fn what_cannot_be_dialled_is_told_and_dialled_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    drop(listener);
    let place = Place::new();
    place.write("t.csv", small_trace(2, 0));
    let run = ["run", "t.csv", "--url", &url, "--out", "run", "--predial", "3", "--no-preflight"];
    let said = place.run(&[&run[..], &["--metrics", "off", "--model", "m"]].concat()).expect(4);
    assert!(said.stderr.contains("3 of 3 connections could not be made before t0"), "{said:?}");
    let rows = place.rows("run");
    assert!(rows.iter().all(|row| row.outcome == Outcome::Connect), "{rows:#?}");
    let said = json(&place.read("run/run.json"))["predial"].clone();
    assert_eq!((&said["dialled"], &said["failed"]), (&0.into(), &3.into()));
    assert!(said["first_error"].as_str().is_some_and(|words| words.contains("refused")), "{said}");
}
