//! One request over one connection: bytes and their arrival times in, a record out.
pub mod dialect;
pub mod sse;
pub mod target;
