//! Two hundred consoles at once, through a handler's door.

use tokio::runtime::Handle;

use super::crowd::{Crowd, alone, files, is_slow, name, visit};
use super::door::Door;

#[test]
fn two_hundred_consoles_at_once() {
    alone("launcher::users::many::two_hundred_consoles_at_once", through_the_door);
}

async fn through_the_door(crowd: &Crowd) {
    let door = &Door::open(crowd.behind("default")).await;
    let own = std::process::id();
    let open = |number: usize| async move {
        let client = if is_slow(number) { door.narrow_client().await } else { door.client().await };
        let path = format!("/v1/namespaces/default/virtualmachineinstances/{}/console", name(number));
        client.stream(&path).await.unwrap()
    };
    let count = || vec![Handle::current().metrics().num_alive_tasks(), files(own), crowd.files()];
    visit(crowd, &[own], count, open).await;
}
