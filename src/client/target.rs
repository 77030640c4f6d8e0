//! Where requests go: `--url` joined with the path of an API.
