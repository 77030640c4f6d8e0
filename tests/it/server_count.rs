//! A run's tokens held against the server's own count of them.

use crate::program::{Place, json, small_trace};
use crate::reach::server::{Server, good};
use crate::sockets::Sim;

fn verdict(place: &Place, run: &str) -> serde_json::Value {
    json(&place.read(&format!("{run}/run.json")))["verdicts"]["server"].clone()
}

#[test]
fn both_count_the_same_tokens_and_files_say_so() {
    let place = Place::new();
    place.write("t.csv", small_trace(300, 10));
    let said = place.run(&["run", "t.csv", "--out", "run"]).expect(0);
    assert!(said.stdout.contains("the server's own count: client "), "{said:#?}");
    let server = verdict(&place, "run");
    assert_eq!(server["finding"], "agree", "{server}");
    assert_eq!(server["whole"]["client_tok"], 1200.0);
    assert_eq!(server["whole"]["server_tok"], 1200.0);
    assert_eq!((&server["ok_here"], &server["finished_there"]), (&300.into(), &300.0.into()));
    let samples = place.read("run/server.csv");
    let mut lines = samples.lines();
    assert_eq!(lines.next(), Some("t_s,utc,target,metric,labels,value"));
    let first = lines.find(|line| line.contains(",output_tok,")).expect("a reading");
    assert!(first.starts_with('-') && first.ends_with(",0"), "before the start: {first}");
    let last = samples.lines().rfind(|line| line.contains(",output_tok,")).expect("a reading");
    assert!(last.ends_with(",1200"), "after the end: {last}");
    let timeline = place.read("run/timeline.csv");
    assert!(
        timeline.lines().next().expect("a header").contains(
            "client_cpu,server_output_tok,server_input_tok,server_running,server_waiting"
        )
    );
    let in_flight = &json(&place.read("run/run.json"))["verdicts"]["in_flight"];
    assert!(in_flight["by_rows"].as_f64().expect("a mean") > 0.0, "{in_flight}");
}

#[test]
fn somebody_elses_requests_are_told_from_ours() {
    let place = Place::new();
    let sim = Sim::start(&place, &[]);
    place.write("t.csv", small_trace(100, 20)).write("u.csv", small_trace(50, 20));
    let url = sim.url.clone();
    let mut other = place.command(&["run", "u.csv", "--url", &url, "--out", "other", "--quiet"]);
    let mut other = other.spawn().expect("the program starts");
    let said = place.run(&["run", "t.csv", "--url", &url, "--out", "run"]).expect(0);
    other.wait().expect("an end");
    assert!(said.stdout.contains("somebody else sends to it too"), "{said:#?}");
    assert_eq!(verdict(&place, "run")["finding"], "foreign traffic");
}

#[test]
fn a_count_that_moves_with_finished_requests_is_compared_in_all() {
    let place = Place::new();
    let sim = Sim::start(&place, &["--metrics", "sglang"]);
    place.write("t.csv", small_trace(100, 10));
    place.run(&["run", "t.csv", "--url", &sim.url, "--out", "run"]).expect(0);
    let server = verdict(&place, "run");
    assert_eq!(
        (&server["finding"], &server["window"]),
        (&"agree".into(), &json("null")),
        "{server}"
    );
}

/// Seconds in which nothing came are no agreement.
#[test]
fn a_window_without_a_token_is_not_what_is_compared() {
    let place = Place::new();
    place.write("t.csv", "at_s,input_tok,output_tok\n0,10,4\n3.5,10,4\n");
    let said = place.run(&["run", "t.csv", "--out", "run"]).expect(0);
    assert!(said.stdout.contains("client 8, server 8 tokens over the whole run"), "{said:#?}");
    assert!(!said.stdout.contains("agree within all"), "{said:#?}");
}

#[test]
fn a_server_without_a_page_is_one_note() {
    let server = Server::start(good);
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let said = place.run(&["run", "t.csv", "--url", &server.url(), "--out", "run"]).expect(0);
    assert!(said.stderr.contains("no metrics page, so nobody else counts"), "{said:#?}");
    assert!(!place.path("run/server.csv").exists());
    let asked = ["run", "t.csv", "--url", &server.url(), "--metrics", &server.url(), "--out", "b"];
    let said = place.run(&asked).expect(2);
    assert!(said.stderr.contains("answered 404"), "who names a page wants it: {said:#?}");
}

#[test]
fn nothing_is_read_where_that_is_not_wanted() {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    place.run(&["run", "t.csv", "--metrics", "off", "--out", "run"]).expect(0);
    assert!(!place.path("run/server.csv").exists());
    assert_eq!(verdict(&place, "run"), json("null"));
}

#[test]
fn a_page_that_is_named_twice_is_not_counted_twice() {
    let place = Place::new();
    let sim = Sim::start(&place, &[]);
    place.write("t.csv", small_trace(20, 10));
    let (url, page) = (sim.url.as_str(), format!("{}/metrics", sim.url));
    let run = ["run", "t.csv", "--url", url, "--out", "run"];
    let said = place.run(&[&run[..], &["--metrics", url, "--metrics", &page]].concat()).expect(2);
    assert!(said.stderr.contains("is given twice, and would be counted twice"), "{said:#?}");
    // Load may go to one server twice; it counts once.
    place.run(&[&run[..], &["--url", url]].concat()).expect(0);
    let server = verdict(&place, "run");
    let told = (&server["finding"], &server["whole"]["server_tok"]);
    assert_eq!(told, (&"agree".into(), &80.0.into()));
}
