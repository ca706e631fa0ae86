//! Custom resource definitions, made from the types.

mod definition;
mod foreign;
mod kinds;
mod structural;

pub use definition::{definition, schema, strict_schema};
pub(crate) use foreign::checked_conditions;
pub use kinds::{Column, KINDS, Kind, Scale, Scope, Version};
pub use structural::RootSchema;

use schemars::SchemaGenerator;
use serde_json::Value;

/// A kind whose schema can be generated from its types.
pub(crate) trait Documented {
    /// The schemas of spec and status, as references into the generator's definitions.
    fn schema(generator: &mut SchemaGenerator) -> RootSchema;

    /// An object, read as its type and written again.
    fn through_types(object: &Value) -> serde_json::Result<Value>;
}
