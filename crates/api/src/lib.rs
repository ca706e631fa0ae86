//! The types users write, their CRDs, names and quantities.
