//! Makes instances of machines, and pods of instances.
