//! [`Nanos`] as a bare integer in JSON and CSV, for fields whose name ends in `_ns` there.

use serde::{Deserialize, Deserializer, Serializer};

use crate::units::Nanos;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn serialize<S: Serializer>(value: &Nanos, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(value.0)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Nanos, D::Error> {
    u64::deserialize(input).map(Nanos)
}

/// The same, where nothing is an empty cell.
pub(super) mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::units::Nanos;

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Nanos>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|value| value.0).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Nanos>, D::Error> {
        Ok(Option::<u64>::deserialize(input)?.map(Nanos))
    }
}
