//! Trace files in, [`crate::trace::Request`]s out.
