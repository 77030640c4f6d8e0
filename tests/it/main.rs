//! Whole-program tests: one binary, so that they link once. They run the real program against the
//! simulated server and assert counts, order and outcomes, never tight times.

mod architecture;
mod bad_input;
mod calibrate;
mod captures;
mod columns;
mod faults;
mod golden;
mod health;
mod in_flight;
mod natural;
mod outputs;
mod plan;
mod predial;
mod program;
mod prompts;
mod reach;
mod replay;
mod retries;
mod server_count;
mod sessions;
mod sockets;
mod survival;
mod tokenizer;
mod traces;
mod virtual_time;
