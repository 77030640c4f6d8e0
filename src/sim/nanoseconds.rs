//! [`Nanos`] as a bare integer in JSON, for fields whose name ends in `_ns` there.

use serde::{Deserialize, Deserializer, Serializer};

use crate::units::Nanos;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn serialize<S: Serializer>(value: &Nanos, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(value.0)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Nanos, D::Error> {
    u64::deserialize(input).map(Nanos)
}
