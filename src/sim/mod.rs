//! The simulated server.
