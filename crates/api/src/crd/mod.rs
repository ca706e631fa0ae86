//! Custom resource definitions, made from the types.

mod definition;
mod foreign;
mod kinds;
mod structural;

pub use definition::{definition, schema};
pub use kinds::{Column, KINDS, Kind, Scale, Scope, Version};
pub use structural::RootSchema;

use schemars::{Schema, SchemaGenerator, json_schema};

/// A kind whose schema can be generated from its types.
pub(crate) trait Documented {
    /// The schemas of spec and status, as references into the generator's definitions.
    fn schema(generator: &mut SchemaGenerator) -> RootSchema;
}

/// An integer without a format, as Go's `int` appears in a CRD.
pub(crate) fn plain_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}
