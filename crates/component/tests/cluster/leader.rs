//! Two contenders for one lease, of which one is frozen, and how leadership is passed on.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kubevirt_component::leader::{Candidate, Ended, Term, Timing, lead};
use kubevirt_component::{Limits, Metrics, Role};
use serde_json::json;
use test_kit::{API_SERVER, Test};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::flags::common;

const PATIENCE: Duration = Duration::from_secs(90);
const LEASE: &str = "virt-controller";

fn candidate(test: &Test, identity: &str) -> Candidate {
    let timing = Timing {
        lease: Duration::from_secs(4),
        renew: Duration::from_secs(3),
        retry: Duration::from_millis(500),
    };
    Candidate { namespace: test.namespace().into(), lease: LEASE.into(), identity: identity.into(), timing }
}

/// What each contender did, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(&'static str, Instant)>>>);

impl Diary {
    fn note(&self, who: &'static str) {
        self.0.lock().unwrap().push((who, Instant::now()));
    }

    fn entries(&self) -> Vec<(&'static str, Instant)> {
        self.0.lock().unwrap().clone()
    }

    async fn until(&self, what: &str, condition: impl Fn(&[(&'static str, Instant)]) -> bool) -> Result<()> {
        let wait = async {
            while !condition(&self.entries()) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, wait).await.with_context(|| format!("waited in vain until {what}"))
    }
}

fn did(who: &str) -> impl Fn(&[(&'static str, Instant)]) -> bool {
    move |entries| entries.iter().any(|(name, _)| *name == who)
}

/// Works until it is told to end.
async fn work(who: &'static str, diary: Diary, token: CancellationToken) {
    while !token.is_cancelled() {
        diary.note(who);
        tokio::select! {
            () = sleep(Duration::from_millis(20)) => {}
            () = token.cancelled() => {}
        }
    }
}

#[tokio::test]
async fn a_frozen_leader_does_nothing_once_another_leads() -> Result<()> {
    API_SERVER
        .run("leader-frozen", async |test| {
            let diary = Diary::default();
            let frozen = {
                let (diary, candidate, cluster) =
                    (diary.clone(), candidate(test, "a"), test.cluster().clone());
                // A runtime of its own on one thread: what blocks the thread freezes all of this contender.
                thread::spawn(move || -> Result<Ended<()>> {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    runtime.block_on(async {
                        let client = client(&cluster).await?;
                        let stop = CancellationToken::new();
                        let ended = lead(client, candidate, &stop, |_| async move {
                            for step in 0.. {
                                diary.note("a");
                                if step == 20 {
                                    thread::sleep(Duration::from_secs(12));
                                    tokio::task::yield_now().await;
                                }
                                sleep(Duration::from_millis(20)).await;
                            }
                        });
                        Ok(ended.await?)
                    })
                })
            };
            diary.until("the first leads", did("a")).await?;
            let stop = CancellationToken::new();
            let second = tokio::spawn({
                let (client, candidate, stop) = (test.client(), candidate(test, "b"), stop.clone());
                let diary = diary.clone();
                async move { lead(client, candidate, &stop, |term| work("b", diary, term.stop)).await }
            });
            diary.until("the second leads", did("b")).await?;
            let ended = tokio::task::spawn_blocking(|| frozen.join()).await?;
            assert_eq!(ended.expect("no panic")?, Ended::Lost);
            let entries = diary.entries();
            let taken = entries.iter().position(|(who, _)| *who == "b").context("taken")?;
            assert!(entries[taken..].iter().all(|(who, _)| *who == "b"), "the first worked on");
            assert!(entries[..taken].iter().filter(|(who, _)| *who == "a").count() >= 20);

            stop.cancel();
            assert_eq!(timeout(PATIENCE, second).await???, Ended::Stopped);
            let lease = test.api::<Lease>().get(LEASE).await?.spec.context("spec")?;
            assert_eq!(lease.holder_identity.as_deref(), Some(""), "the lease is given back");
            assert_eq!(lease.lease_transitions, Some(2));
            Ok(())
        })
        .await
}

/// Says in an object, again and again, who is at work, and stands still once if told to.
async fn sign(maps: Api<ConfigMap>, who: &'static str, freeze: Option<Duration>) -> kube::Error {
    for step in 1.. {
        let signed = Patch::Merge(json!({ "data": { who: step.to_string() } }));
        if let Err(error) = maps.patch("signed", &PatchParams::default(), &signed).await {
            return error;
        }
        if step == 20
            && let Some(freeze) = freeze
        {
            // The next write follows at once, before anything else can be done.
            thread::sleep(freeze);
        } else {
            sleep(Duration::from_millis(20)).await;
        }
    }
    unreachable!("numbers do not end")
}

#[tokio::test]
async fn what_a_frozen_leader_spawned_changes_nothing_once_another_leads() -> Result<()> {
    API_SERVER
        .run("leader-spawned", async |test| {
            let maps = test.api::<ConfigMap>();
            let map = serde_json::from_value(json!({ "metadata": { "name": "signed" } }))?;
            maps.create(&PostParams::default(), &map).await?;
            let frozen = {
                let (candidate, cluster) = (candidate(test, "a"), test.cluster().clone());
                thread::spawn(move || -> Result<kube::Error> {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    runtime.block_on(async {
                        let (common, namespace) = (common(&cluster), candidate.namespace.clone());
                        let (stop, metrics) = (CancellationToken::new(), Metrics::new());
                        let lease = common.client(Role::Controller, &Limits::none(), &metrics).await?;
                        let (sender, error) = oneshot::channel();
                        let ended = lead(lease, candidate, &stop, async |term: Term| {
                            let client = common.leader_client(&term, Role::Controller, &Limits::none(), &metrics).await?;
                            let maps = Api::namespaced(client, &namespace);
                            tokio::spawn(async move {
                                let _ = sender.send(sign(maps, "a", Some(Duration::from_secs(12))).await);
                            });
                            std::future::pending::<Result<()>>().await
                        });
                        ensure!(matches!(ended.await?, Ended::Lost));
                        timeout(Duration::from_secs(10), error).await.context("it works on")?.map_err(Into::into)
                    })
                })
            };
            let signed = |who: &'static str| move |map: &ConfigMap| map.data.as_ref()?.get(who).cloned();
            test.wait(&maps, "signed", "the first leads", |map| signed("a")(map).is_some()).await?;
            let second = tokio::spawn({
                let (client, candidate, maps) = (test.client(), candidate(test, "b"), maps.clone());
                async move { lead(client, candidate, &CancellationToken::new(), |_| sign(maps, "b", None)).await }
            });
            let seen = test.wait(&maps, "signed", "the second leads", |map| signed("b")(map).is_some()).await?;
            let error = tokio::task::spawn_blocking(|| frozen.join()).await?.expect("no panic")?;
            second.abort();
            let kube::Error::Service(error) = error else { bail!("{error}") };
            assert_eq!(error.to_string(), "this is not the leader any more");
            assert_eq!(signed("a")(&maps.get("signed").await?), signed("a")(&seen), "the first worked on");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn what_is_left_of_the_work_changes_nothing_once_the_lease_is_free() -> Result<()> {
    API_SERVER
        .run("leader-left", async |test| {
            let (common, metrics) = (common(test.cluster()), Metrics::new());
            let stop = CancellationToken::new();
            let kept = lead(test.client(), candidate(test, "a"), &stop, async |term: Term| {
                let client = common.leader_client(&term, Role::Controller, &Limits::none(), &metrics).await?;
                let maps = Api::<ConfigMap>::namespaced(client, test.namespace());
                let map = serde_json::from_value(json!({ "metadata": { "name": "signed" } }))?;
                maps.create(&PostParams::default(), &map).await?;
                anyhow::Ok(maps)
            });
            let Ended::Done(maps) = kept.await? else { bail!("the work did not end") };
            let maps = maps?;
            assert!(maps.delete("signed", &DeleteParams::default()).await.is_err());
            maps.get("signed").await?;
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_lease_that_is_given_back_is_taken_without_a_wait() -> Result<()> {
    API_SERVER
        .run("leader-release", async |test| {
            // Nobody could wait for the end of such a lease.
            let long = |identity| {
                let mut candidate = candidate(test, identity);
                candidate.timing.lease = Duration::from_secs(3600);
                candidate
            };
            let stop = CancellationToken::new();
            let ended = lead(test.client(), long("a"), &stop, |_| async { 7 }).await?;
            assert_eq!(ended, Ended::Done(7));
            let second = lead(test.client(), long("b"), &stop, |_| async { 8 });
            assert_eq!(timeout(PATIENCE, second).await??, Ended::Done(8));
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_the_work() -> Result<()> {
    API_SERVER
        .run("leader-robbed", async |test| {
            let (diary, stop) = (Diary::default(), CancellationToken::new());
            let leader = tokio::spawn({
                let (client, candidate, diary) = (test.client(), candidate(test, "a"), diary.clone());
                async move { lead(client, candidate, &stop, |term| work("a", diary, term.stop)).await }
            });
            diary.until("the first leads", did("a")).await?;
            let robbed = json!({ "spec": { "holderIdentity": "b" } });
            test.api::<Lease>().patch(LEASE, &PatchParams::default(), &Patch::Merge(robbed)).await?;
            assert_eq!(timeout(PATIENCE, leader).await???, Ended::Lost);
            let lease = test.api::<Lease>().get(LEASE).await?.spec.context("spec")?;
            assert_eq!(lease.holder_identity.as_deref(), Some("b"), "it stays the other's");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn times_that_let_two_lead_are_refused() -> Result<()> {
    API_SERVER
        .run("leader-times", async |test| {
            let mut candidate = candidate(test, "a");
            candidate.timing.renew = candidate.timing.lease;
            let stop = CancellationToken::new();
            match lead(test.client(), candidate, &stop, |_| async {}).await {
                Err(_) => Ok(()),
                Ok(ended) => bail!("{ended:?}"),
            }
        })
        .await
}

/// A client that belongs to the runtime that makes it.
async fn client(cluster: &xtask::cluster::Cluster) -> Result<Client> {
    use kube::config::{Config, KubeConfigOptions, Kubeconfig};
    let file = Kubeconfig::read_from(cluster.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}
