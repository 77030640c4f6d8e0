//! underfire replays LLM traffic: it reads a recorded trace or makes one up from a workload file,
//! sends it open loop to an OpenAI-compatible server over streaming SSE, and writes what happened.
//!
//! ```text
//!  trace file ─┐                                            ┌─ requests.csv
//!              ├─> Trace ─> Schedule ─> Pacer ─> Client ─> StreamRecord ─> Metrics ─> Summary ─> report
//!  workload ───┘  (pure)    (pure)      due!     bytes+time   (plain data)   (pure)
//!                                         │        ▲
//!                                         └ sim ───┘   built-in server: known truth
//! ```
//!
//! One way, no way back; a test (`tests/it/architecture.rs`) holds the arrows.
//!
//! | room | what it is for |
//! |---|---|
//! | [`units`] | exact time and speed, as integers |
//! | [`columns`] | a CSV file as one list of columns: header, writer, reader and documentation |
//! | [`random`] | numbers that depend on a key and a place alone |
//! | `json_scan` | a scanner for the plainest JSON |
//! | [`clock`] | the only place that reads time; real or virtual |
//! | [`machine`] | what the machine tells of itself and of this process; descriptors ready before `t0` |
//! | [`trace`] | what was asked, and when: rows, and the files they come from |
//! | [`workload`] | what to ask for: arrival and length models, and the rows they generate |
//! | [`schedule`] | rows to an ordered plan: speed, window, gap cap, limits |
//! | [`prompt`] | text or token ids of an exact length, prefix blocks, salts; prompts from files; a model's tokenizer |
//! | [`replay`] | what is due next, the pacer, a worker per core |
//! | [`client`] | one request over one connection: bytes and stamps in, a record out |
//! | [`server`] | what a server is asked before `t0`: its engine, models, tokenizer, metrics page |
//! | [`record`] | everything observed about one request; its row in `requests.csv` |
//! | [`metrics`] | rows to figures |
//! | [`report`] | figures to files and words |
//! | [`sim`] | the built-in server: an engine model of known capacity, and a log of the truth |
//! | [`telemetry`] | what a server's own metrics say: its Prometheus page, rates and percentiles of it |
//! | [`lab`] | replay and sim joined in virtual time; client against truth |
//! | [`cli`] | the commands |
//!
//! # Words
//!
//! - **due**: when the schedule says that a request leaves. Every latency without `send` in its name
//!   counts from here, so a late send is never hidden.
//! - **sent**: when the client starts the attempt, before connecting. `lag = sent − due` is our fault.
//! - **token event**: an SSE event with generated text of any kind. It may carry several tokens.
//! - **chunk gap**: time between two token events of a stream. **ITL**: the same, per token.
//! - **measured window**: from the end of warm-up to the last due time.
//!
//! # Invariants
//!
//! - The schedule is absolute, in integer nanoseconds from `t0`, and nothing between it and the send
//!   waits for a response. A late row goes at once; none is dropped, merged or thinned.
//! - A row that fell due is one row of `requests.csv`, and one POST at the most (more only by
//!   `--retries`): no redirect, no reconnect.
//! - A stream owns its record and hands it over once. No lock, log line or tokenizer per token.
//! - Arrival is stamped once per socket read, before anything is parsed.
//! - A value that does not apply is empty: never 0, NaN or infinity.
//! - Every queue, buffer and line has a limit, and the error names it.
//! - Same input and seed: the same plan, byte for byte, on every machine.
//! - Deliberately absent: a connection cap, a connection pool that dials by itself, environment
//!   proxies, a default timeout on answers, and a second clock.

pub mod cli;
pub mod client;
pub mod clock;
pub mod columns;
mod json_scan;
pub mod lab;
pub mod machine;
pub mod metrics;
pub mod prompt;
pub mod random;
pub mod record;
pub mod redact;
pub mod replay;
pub mod report;
pub mod run;
pub mod schedule;
pub mod server;
pub mod sim;
pub mod telemetry;
pub mod trace;
pub mod units;
pub mod workload;
