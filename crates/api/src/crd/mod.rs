//! Custom resource definitions, made from the types.

mod definition;
mod foreign;
mod kind;
mod kinds;
mod structural;

pub use definition::{definition, schema, strict_schema};
pub use foreign::QUANTITY_PATTERN;
pub(crate) use foreign::checked_conditions;
pub use kind::{Column, Kind, Scale, Scope, Version};
pub use kinds::KINDS;
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
