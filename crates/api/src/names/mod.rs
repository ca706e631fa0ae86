//! The names by which KubeVirt marks and finds objects, exactly as clusters know them.

pub mod accounts;
pub mod annotations;
pub mod components;
pub mod conditions;
pub mod events;
pub mod external;
pub mod finalizers;
pub mod groups;
pub mod labels;
pub mod reasons;
pub mod resources;
pub mod taints;
pub mod values;
