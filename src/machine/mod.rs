//! What this machine tells of itself and of this process, and the little that is asked of it before a run.
//!
//! | file | what it reads |
//! |---|---|
//! | [`host`] | cores, memory and kernel of the machine |
//! | [`process`] | processor time, memory and threads of this process |
//! | [`cgroup`] | processor time that the process's groups allow, and held back |
//! | [`sockets`] | what connections take: descriptors, and local ports |
//! | [`disk`] | room for files |
//!
//! Most of it is Linux's own words under `/proc` and `/sys`; elsewhere nothing is known, and `None` says so.
//! Deliberately absent: what the figures mean, and every room but `units`.

pub mod cgroup;
pub mod disk;
pub mod host;
mod proc_text;
pub mod process;
pub mod sockets;
