//! Structural schemas: validate, default and prune raw JSON.
