//! Sends a plan on schedule.
