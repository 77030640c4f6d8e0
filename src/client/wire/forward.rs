//! What a connection carries bytes over, whichever kind it is, and the writing that every layer of it
//! only passes on.
//!
//! Deliberately absent: reading, which each layer does in a way of its own.

use tokio::io::{AsyncRead, AsyncWrite};

/// Anything that bytes are read from and written to.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}

/// Passes all writing of a layer on to the one below it, which `$below` finds in `$this`.
macro_rules! forward_writes {
    ($layer:ty, |$this:ident| $below:expr) => {
        impl tokio::io::AsyncWrite for $layer {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                std::pin::Pin::new($below).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                parts: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self.get_mut();
                std::pin::Pin::new($below).poll_write_vectored(context, parts)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self.get_mut();
                std::pin::Pin::new($below).poll_flush(context)
            }

            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self.get_mut();
                std::pin::Pin::new($below).poll_shutdown(context)
            }
        }
    };
}

pub(super) use forward_writes;
