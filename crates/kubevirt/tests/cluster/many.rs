//! Two hundred consoles at once, through virt-api and a handler.

use anyhow::Result;
use test_kit::{API_SERVER, Test};

use super::api::{Api, instance};
use super::crowd::{COUNT, Crowd, alone, is_slow, name, visit};
use super::door::Door;

#[test]
fn two_hundred_consoles_at_once_through_virt_api() {
    alone("many::two_hundred_consoles_at_once_through_virt_api", async |crowd| {
        API_SERVER.run("consoles", async |test| through_virt_api(test, crowd).await).await.unwrap();
    });
}

async fn through_virt_api(test: &Test, crowd: &Crowd) -> Result<()> {
    let behind = crowd.behind(test.namespace());
    let folder = behind.records.with_file_name("api");
    let door = Door::open(behind).await;
    let api = &Api::start(test, &door, &folder).await?;
    for number in 0..COUNT {
        instance(test, &name(number)).await?;
    }
    let own = std::process::id();
    let ports = [door.address.port(), api.address.port()];
    // Connections to the API server are kept for a while, and are not counted.
    let count = || vec![sockets(api.id(), &ports), sockets(own, &ports), crowd.files()];
    let open = |number: usize| async move {
        let client = if is_slow(number) { api.narrow_client().await } else { api.client().await };
        client.stream(&api.path(&name(number), "console")).await.unwrap()
    };
    visit(crowd, &[api.id(), own], count, open).await;
    Ok(())
}

/// How many sockets a process has open whose one end is one of these ports.
fn sockets(pid: u32, ports: &[u16]) -> usize {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap_or_default(), 16).ok();
    let ours: Vec<String> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[1..3].iter().any(|end| port(end).is_some_and(|port| ports.contains(&port))))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let is_ours = |link: &std::path::Path| ours.iter().any(|own| link.as_os_str() == own.as_str());
    open.filter(|file| {
        file.as_ref().is_ok_and(|file| std::fs::read_link(file.path()).is_ok_and(|link| is_ours(&link)))
    })
    .count()
}
