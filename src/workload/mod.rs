//! What to ask for: a workload file, and the rows it generates.
