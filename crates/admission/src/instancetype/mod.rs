//! Instance types and preferences: found, inferred, checked and expanded.
