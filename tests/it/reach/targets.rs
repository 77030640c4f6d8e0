//! Where requests go: several servers, both address families, unix sockets, proxies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use underfire::record::{Outcome, Row};

use super::server::{self, Asked, Server, good, models, response, stream};
use super::tls;
use crate::program::{Place, small_trace};

fn targets(rows: &[Row]) -> Vec<u32> {
    rows.iter().map(|row| row.target).collect()
}

#[test]
fn several_servers_share_the_load_in_turn_and_by_session() {
    fn other(asked: &Asked) -> String {
        let list = r#"{"data":[{"id":"m-2"}]}"#;
        if asked.is_post() { stream(4, "") } else { response("200 OK", "application/json", list) }
    }
    let (one, two) = (Server::start(good), Server::start(other));
    let place = Place::new();
    place.write("t.csv", small_trace(10, 10));
    let (url_one, url_two) = (one.url(), two.url());
    let urls = ["--url", &url_one, "--url", &url_two, "--no-preflight"];
    place.run(&[&["run", "t.csv", "--out", "run"], &urls[..]].concat()).expect(0);
    assert_eq!(targets(&place.rows("run")), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!((one.posts().len(), two.posts().len()), (5, 5));
    assert!(one.posts().iter().all(|post| post.body.contains(r#""model":"m-1""#)));
    assert!(two.posts().iter().all(|post| post.body.contains(r#""model":"m-2""#)));

    let mut trace = "at_s,input_tok,output_tok,session\n".to_owned();
    for row in 0..40 {
        writeln!(trace, "0.{row:02},10,4,s{}", row % 8).expect("memory");
    }
    place.write("s.csv", trace);
    place.run(&[&["run", "s.csv", "--out", "by"], &urls[..]].concat()).expect(0);
    let mut homes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for row in place.rows("by") {
        homes.entry(row.session.expect("a session").to_string()).or_default().push(row.target);
    }
    assert!(homes.values().all(|home| home.iter().all(|target| *target == home[0])), "{homes:?}");
    let used: Vec<u32> = homes.values().map(|home| home[0]).collect();
    assert!(used.contains(&0) && used.contains(&1), "{homes:?}");
}

/// A dead server among several fails its own rows only.
#[test]
fn a_dead_server_fails_its_own_rows() {
    let live = Server::start(good);
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
    let place = Place::new();
    place.write("t.csv", small_trace(6, 10));
    let (live_url, dead_url) = (live.url(), format!("http://127.0.0.1:{dead}"));
    let urls = ["--url", &live_url, "--url", &dead_url, "--model", "m"];
    let said = place.run(&[&["run", "t.csv", "--out", "run"], &urls[..]].concat()).expect(0);
    assert!(said.stderr.contains("rows are sent all the same"), "{said:#?}");
    // Rows and scopes call a server by its number.
    let named = format!("{live_url} (target 0), {dead_url} (target 1)");
    assert!(
        said.stdout.contains(&named) && said.stderr.contains("target 1 · engine: "),
        "{said:#?}"
    );
    let told = place.run(&["report", "run"]).expect(0);
    assert!(told.stdout.contains(&named), "{told:#?}");
    for row in place.rows("run") {
        let expect = if row.row % 2 == 0 { Outcome::Ok } else { Outcome::Connect };
        assert_eq!(row.outcome, expect, "{row:?}");
    }
}

/// drill#126, aiperf#625: `localhost` tried in one family only.
#[test]
fn localhost_is_both_families() {
    let place = Place::new();
    place.write("t.csv", small_trace(2, 10));
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else {
            continue; // A machine without this family.
        };
        let server = Server::on(listener, good, |socket| Some(Box::new(socket)));
        let out = if address.contains("::") { "six" } else { "four" };
        let url = format!("http://localhost:{}", server.port);
        place.run(&["run", "t.csv", "--out", out, "--url", &url]).expect(0);
        assert_eq!(server.posts().len(), 3);
        if out == "six" {
            let url = format!("http://[::1]:{}/v1", server.port);
            place.run(&["run", "t.csv", "--out", "literal", "--url", &url]).expect(0);
        }
    }
}

#[test]
fn a_unix_socket_is_a_server_too() {
    let place = Place::new();
    place.write("t.csv", small_trace(4, 30));
    let listener = UnixListener::bind(place.path("sock")).expect("a socket");
    let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let kept = log.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let kept = kept.clone();
            std::thread::spawn(move || server::serve(Box::new(socket), good, &kept));
        }
    });
    place.run(&["run", "t.csv", "--out", "run", "--unix-socket", "sock"]).expect(0);
    assert!(place.rows("run").iter().all(|row| row.outcome == Outcome::Ok));
    let log = log.lock().expect("no panic elsewhere");
    assert!(log.iter().all(|asked| asked.headers.contains(&"host: localhost".to_owned())));
}

/// A proxy that is asked in absolute form, as for plain HTTP.
fn absolute(asked: &Asked) -> String {
    if !asked.line.contains(" http://model.example:81/") {
        return response("400 Bad Request", "text/plain", "not in absolute form");
    }
    if asked.is_post() { stream(4, "") } else { models(asked) }
}

/// vllm#12356, #22058, aiperf#625: proxies taken from the environment, or not taken at all.
#[test]
fn a_proxy_is_used_when_named_and_never_otherwise() {
    let proxy = Server::start(absolute);
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let named = format!("http://me:s3cr3t@127.0.0.1:{}", proxy.port);
    let url = "http://model.example:81";
    let said =
        place.run(&["run", "t.csv", "--out", "run", "--url", url, "--proxy", &named]).expect(0);
    assert!(!said.stderr.contains("s3cr3t") && !place.read("run/run.json").contains("s3cr3t"));
    let header = "proxy-authorization: Basic bWU6czNjcjN0".to_owned();
    for asked in proxy.asked() {
        assert!(asked.headers.contains(&header), "{asked:?}");
        assert!(asked.headers.contains(&"host: model.example:81".to_owned()), "{asked:?}");
    }
    let direct = Server::start(good);
    let mut command = place.command(&["run", "t.csv", "--out", "direct", "--url", &direct.url()]);
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    let said = crate::program::Said::of(&command.output().expect("the program starts"));
    said.expect(0);
    assert_eq!(direct.posts().len(), 4);
}

/// A proxy that opens tunnels, and keeps what it was asked.
fn tunnels(asked: Arc<Mutex<Vec<String>>>, to: u16, status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut near in listener.incoming().flatten() {
            let mut head = BufReader::new(near.try_clone().expect("a socket")).lines();
            let lines: Vec<String> =
                head.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            asked.lock().expect("no panic elsewhere").extend(lines);
            let answer = format!("HTTP/1.1 {status}\r\nvia: test\r\n\r\n");
            near.write_all(answer.as_bytes()).expect("a client");
            let mut far = TcpStream::connect(("127.0.0.1", to)).expect("the server");
            let (mut near_too, mut far_too) =
                (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut near_too, &mut far_too));
            std::thread::spawn(move || std::io::copy(&mut far, &mut near));
        }
    });
    port
}

#[test]
fn tls_goes_through_a_tunnel() {
    let server = tls::localhost(good);
    let place = Place::new();
    place.write("t.csv", small_trace(3, 30));
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let proxy = format!("http://127.0.0.1:{}", tunnels(log.clone(), server.port, "200 OK"));
    let url = "https://localhost:4443/v1";
    let arguments = ["run", "t.csv", "--insecure", "--url", url, "--proxy"];
    place.run(&[&arguments[..], &[&proxy, "--out", "run"]].concat()).expect(0);
    assert!(place.rows("run").iter().all(|row| row.outcome == Outcome::Ok));
    let log = log.lock().expect("no panic elsewhere").clone();
    assert!(log.contains(&"CONNECT localhost:4443 HTTP/1.1".to_owned()), "{log:?}");

    let refused = tunnels(Arc::default(), server.port, "407 Proxy Authentication Required");
    let proxy = format!("http://127.0.0.1:{refused}");
    let said = place.run(&[&arguments[..], &[&proxy, "--out", "no"]].concat()).expect(4);
    assert!(said.stderr.contains("the proxy refused the tunnel: HTTP/1.1 407"), "{said:#?}");
}
