//! What the schemas of Kubernetes' own types leave out.

use serde_json::Value;

/// Adds to a definition of Kubernetes what its generated schema does not say.
pub(super) fn adjust(_name: &str, _schema: &mut Value) {}
