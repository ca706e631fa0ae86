//! Defaults and validation: pure functions on the API types.
