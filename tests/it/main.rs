//! Whole-program tests: one binary, so that they link once. They run the real program against the
//! simulated server and assert counts, order and outcomes, never tight times.

mod architecture;
mod bad_input;
mod plan;
mod program;
mod prompts;
mod replay;
mod virtual_time;
