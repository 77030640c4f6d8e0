//! Server-sent events, decoded.
