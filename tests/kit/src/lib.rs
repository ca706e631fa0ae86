//! What tests on a real Kubernetes need: a cluster that all tests of a run share, a namespace for each test,
//! waiting for conditions, and failures that say what was seen.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use test_kit::{NODES, conditions};
//!
//! # async fn example() -> anyhow::Result<()> {
//! // As the body of a `#[tokio::test]`.
//! NODES
//!     .run("pods", async |test| {
//!         test.apply(&serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}})).await?;
//!         test.wait(&test.api::<Pod>(), "one", "is ready", conditions::has("Ready")).await?;
//!         assert_eq!(test.kubectl(&["exec", "one", "--", "hostname"])?, "one\n");
//!         Ok(())
//!     })
//!     .await
//! # }
//! ```
//!
//! The first test starts the cluster and nobody ends it: `cargo xtask cluster down --prefix test` does, at the
//! end of a run. A cluster that an earlier run left behind is used again when it is whole, and started anew
//! when it is not. With `TEST_KIT_KEEP` in the environment, namespaces stay to be looked at.

mod accounts;
pub mod conditions;
mod crds;
mod images;
mod objects;
mod report;
mod row;
mod shared;
mod test;
mod wait;

pub use accounts::Account;
pub use row::Row;
pub use shared::{API_SERVER, KUBEVIRT, NODES, Shared, system_images};
pub use test::Test;
