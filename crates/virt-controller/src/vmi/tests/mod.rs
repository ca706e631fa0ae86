//! Tests of the whole decision.
