//! When the kernel received what a read hands over: `SO_TIMESTAMPNS` on TCP sockets.
//!
//! The stamp is on the wall clock, and of the last packet in the read, so it says how long *that* waited
//! for us; what came earlier in the same read waited longer. On other systems there are no stamps.
//! Deliberately absent: the clocks.

use crate::clock::Utc;

/// What a read gave.
pub(super) struct Received {
    pub(super) bytes: usize,
    /// When the kernel had the last of them; `None` where it does not say.
    pub(super) at: Option<Utc>,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::os::fd::AsRawFd as _;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
    use tokio::net::TcpStream;

    use super::Received;
    use crate::clock::Utc;
    use crate::units::NS_PER_S;

    /// Room for the control message with the stamp.
    const CONTROL_BYTES: usize = 64;

    pub(in super::super) fn ask_for(stream: &TcpStream) -> bool {
        setsockopt(stream, sockopt::ReceiveTimestampns, &true).is_ok()
    }

    pub(in super::super) fn receive(stream: &TcpStream, into: &mut [u8]) -> io::Result<Received> {
        let mut control = [0; CONTROL_BYTES];
        let mut parts = [IoSliceMut::new(into)];
        let message =
            recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let stamps = message.cmsgs().into_iter().flatten();
        let stamp = stamps.filter_map(|part| match part {
            ControlMessageOwned::ScmTimestampns(at) => Some(at),
            _ => None,
        });
        let at = stamp.last().map(|at| {
            Utc(i128::from(at.tv_sec()) * i128::from(NS_PER_S) + i128::from(at.tv_nsec()))
        });
        Ok(Received { bytes: message.bytes, at })
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{ask_for, receive};

/// No stamps on this system.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    use tokio::net::TcpStream;

    use super::Received;

    pub(in super::super) fn ask_for(_stream: &TcpStream) -> bool {
        false
    }

    pub(in super::super) fn receive(stream: &TcpStream, into: &mut [u8]) -> io::Result<Received> {
        stream.try_read(into).map(|bytes| Received { bytes, at: None })
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{ask_for, receive};
