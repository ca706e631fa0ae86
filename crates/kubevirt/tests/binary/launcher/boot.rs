//! From the wish for a machine to its login prompt, and to its end.

use kubevirt_launcher_rpc::report::{Reason, State};
use serde_json::json;

use super::pod::{Pod, vmi};

#[tokio::test]
async fn a_guest_boots_to_its_login_and_shuts_itself_down() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    assert_eq!(pod.domain().await, None);
    let mut console = pod.boot(&vmi(json!({}))).await;
    assert_eq!(console.run("nproc").await.unwrap(), "1");
    let report = pod.wait_for(State::Running).await;
    assert_eq!(report.metadata.name, "web");
    assert_eq!(report.status.accelerator, "tcg");

    console.send_line("poweroff").await.unwrap();
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Shutdown);
    assert!(report.metadata.deletion_timestamp.is_some());
    assert_eq!(pod.exit_code().await, 0);
}
