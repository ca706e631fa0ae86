use axum::routing::post;
use kubevirt_component::{NamespacedName, Queue};
use kubevirt_launcher_rpc::cmd::info::cmd_info_server::{CmdInfo, CmdInfoServer};
use kubevirt_launcher_rpc::cmd::info::{CmdInfoRequest, CmdInfoResponse};
use kubevirt_launcher_rpc::cmd::{DomainResponse, EmptyRequest};
use kubevirt_launcher_rpc::{LAUNCHER_SOCKET, NOTIFY_SOCKET, connect, version};
use tokio::sync::mpsc;
use tonic::service::Routes;
use tonic_prost::ProstCodec;

use super::super::{Launchers, Settings};
use super::*;
use crate::domains::{Disbelief, Domains};
use crate::testing::Folder;

const PATIENCE: Duration = Duration::from_secs(60);

struct Info;

#[tonic::async_trait]
impl CmdInfo for Info {
    async fn info(
        &self,
        _: tonic::Request<CmdInfoRequest>,
    ) -> Result<tonic::Response<CmdInfoResponse>, tonic::Status> {
        let supported_cmd_versions = version::COMMANDS.to_vec();
        Ok(tonic::Response::new(CmdInfoResponse { supported_cmd_versions }))
    }
}

/// The answer of a launcher without a domain.
async fn no_domain(
    question: axum::http::Request<axum::body::Body>,
) -> axum::http::Response<tonic::body::Body> {
    let answer = tower::service_fn(async |_: tonic::Request<EmptyRequest>| {
        Ok::<_, tonic::Status>(tonic::Response::new(DomainResponse::default()))
    });
    tonic::server::Grpc::new(ProstCodec::default()).unary(answer, question).await
}

/// A launcher without a machine, and a handler that looks after it.
struct Scene {
    folder: Folder,
    launchers: Launchers,
    _launcher: AbortOnDropHandle<()>,
}

impl Scene {
    fn new(volumes: &[&str]) -> Self {
        let folder = Folder::new();
        for volume in ["sockets"].iter().chain(volumes) {
            std::fs::create_dir_all(volume_of(&folder, volume)).unwrap();
        }
        let incoming = connect::listen(&volume_of(&folder, "sockets").join(LAUNCHER_SOCKET)).unwrap();
        let routes = Routes::new(CmdInfoServer::new(Info)).into_axum_router();
        let routes = routes.route("/kubevirt.cmd.v1.Cmd/GetDomain", post(no_domain));
        let server = tonic::transport::Server::builder().add_routes(routes.into());
        let serve = async move { server.serve_with_incoming(incoming).await.unwrap() };
        let domains = Arc::new(Domains::load(&folder.path().join("records")).unwrap());
        let settings = Settings::new(folder.path().join("pods"), Duration::from_secs(30));
        let launchers = Launchers::new(settings, domains, Queue::new("test"), mpsc::unbounded_channel().0);
        Self { folder, launchers, _launcher: AbortOnDropHandle::new(tokio::spawn(serve)) }
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let began = std::time::Instant::now();
        while !is(self) {
            assert!(began.elapsed() < PATIENCE, "never {what}: {:?}", self.launchers.contact("ad00"));
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn volume_of(folder: &Folder, volume: &str) -> std::path::PathBuf {
    folder.path().join("pods/b2a7/volumes/kubernetes.io~empty-dir").join(volume)
}

fn owner() -> Owner {
    Owner { key: NamespacedName::new("default", "web"), uid: "ad00".into(), pod: "b2a7".into() }
}

#[tokio::test]
async fn a_launcher_is_reached_also_where_it_cannot_be_heard() {
    let scene = Scene::new(&[]);
    scene.launchers.look_after(&owner()).unwrap();
    scene.until("connected", |scene| matches!(scene.launchers.contact("ad00"), Contact::Connected(_))).await;
    // It is heard as soon as that is possible.
    let public = volume_of(&scene.folder, "public");
    std::fs::create_dir(&public).unwrap();
    scene.until("heard", |_| public.join(NOTIFY_SOCKET).exists()).await;
    assert!(matches!(scene.launchers.contact("ad00"), Contact::Connected(_)));
}

#[test]
fn only_the_launcher_itself_loses_its_machine() {
    let system = |error: Errno| found(Err(error.into()));
    for ours in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO, Errno::AGAIN, Errno::ACCESS] {
        assert!(matches!(system(ours), Found::Unseen(_)), "{ours:?}");
    }
    for theirs in [Errno::LOOP, Errno::XDEV, Errno::NOTDIR] {
        assert!(matches!(system(theirs), Found::Lost(Loss::Strange(_))), "{theirs:?}");
    }
    assert!(matches!(found(Err(io::Error::other("it is no socket"))), Found::Lost(Loss::Strange(_))));
    assert!(matches!(system(Errno::NOENT), Found::Nothing));
    assert!(matches!(found(Ok(None)), Found::Nothing));
}

#[test]
fn troubles_of_our_own_are_not_the_launchers_silence() {
    let disk_full = Unreached::Tell(TellError::Record(Errno::NOSPC.into()));
    let lie = Disbelief::AnotherInstance { ours: "1".into(), theirs: "2".into() };
    let broken = |error: Errno| {
        let status = tonic::Status::from_error(Box::new(io::Error::from(error)));
        Unreached::Connect(ConnectError::Handshake(Box::new(status)))
    };
    for (error, expected) in [
        (disk_full, true),
        (broken(Errno::MFILE), true),
        (broken(Errno::CONNRESET), false),
        (Unreached::Tell(TellError::Disbelief(lie)), false),
        (Unreached::Ask(CommandError::Silent(PATIENCE)), false),
    ] {
        assert_eq!(is_our_own(&error), expected, "{error}");
        assert!(!is_refused(&error), "{error}");
    }
    assert!(is_refused(&broken(Errno::CONNREFUSED)));
}

/// A folder with more than a path may have cannot be looked at, whoever we are.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_at_is_waited_for() {
    let scene = Scene::new(&["public"]);
    let unseen = Owner { pod: "b".repeat(300), ..owner() };
    scene.launchers.look_after(&unseen).unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!(matches!(scene.launchers.contact("ad00"), Contact::Awaited));
    let gone = Owner { pod: "c3".into(), ..owner() };
    scene.launchers.look_after(&gone).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(scene.launchers.contact("ad00"), Contact::Lost(Loss::Ended)));
}
