//! The life of the program: from its start to the exit code that tells the pod's fate.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::names::events;
use kubevirt_launcher_rpc::{DomainReport, NOTIFY_SOCKET};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::arguments::Arguments;
use crate::board::Notice;
use crate::launcher::{Launcher, Stage};
use crate::notify::Teller;
use crate::programs::farewell;
use crate::{capability, lifecycle, orphans, server};

/// How long the handler may take to hear of the end before the launcher leaves anyway.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Exit code of a launcher that could not begin.
const CANNOT_BEGIN: u8 = 2;

/// Runs a machine for its whole life. The exit code is 0 if it ended as somebody wished, 1 if it failed, and 2 if
/// the launcher could not begin.
pub fn run(arguments: Arguments) -> ExitCode {
    kubevirt_logs::init("virt-launcher", arguments.verbosity.unwrap_or(kubevirt_logs::DEFAULT_VERBOSITY));
    // Before there are threads, each of which would have its own.
    capability::take_low_ports();
    // One thread: a launcher mostly waits, and there may be hundreds beside each other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.and_then(|runtime| {
        let code = runtime.block_on(live(arguments));
        // What still waits for a guest that no longer exists would wait in vain.
        runtime.shutdown_background();
        code
    });
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tracing::error!(%error, "the launcher cannot begin");
            ExitCode::from(CANNOT_BEGIN)
        }
    }
}

/// The life of the launcher, and what its end means for the rest of the pod.
async fn live(arguments: Arguments) -> std::io::Result<u8> {
    let keep = arguments.keep_after_failure;
    let container_disks = arguments.container_disk_dir.clone();
    let began = Instant::now();
    let mut signals = Signals::new()?;
    orphans::reap()?;
    let code = serve(arguments, &mut signals).await;
    farewell::dismiss_others(&container_disks, began.elapsed()).await;
    if keep && !matches!(code, Ok(0)) {
        tracing::warn!(
            ?code,
            "staying after the failure, as --keep-after-failure asks; send SIGTERM to end it"
        );
        signals.next().await;
    }
    code
}

/// Has the machine for its whole life.
async fn serve(arguments: Arguments, signals: &mut Signals) -> std::io::Result<u8> {
    if arguments.simulate_crash {
        tracing::error!("ending at once, as --simulate-crash asks");
        return Ok(1);
    }
    if arguments.hypervisor != "kvm" {
        tracing::error!(hypervisor = arguments.hypervisor, "--hypervisor: only kvm is known");
        return Ok(CANNOT_BEGIN);
    }
    let patience = arguments.qemu_timeout;
    let (share, sockets) = (arguments.kubevirt_share_dir.clone(), arguments.sockets());
    let (launcher, notices) = Launcher::new(arguments);
    launcher.make_folders()?;
    let (teller, told) = Teller::new(share.join(NOTIFY_SOCKET), &launcher.board, notices);
    tokio::spawn(teller.run());
    server::listen(launcher.clone(), &sockets)?;
    // By the time a machine is asked for, this is mostly known.
    tokio::spawn({
        let launcher = launcher.clone();
        async move { launcher.host.learn().await }
    });
    tracing::info!("ready");

    let code = outlive(&launcher, signals, patience).await;
    say_goodbye(&launcher, told).await;
    Ok(code)
}

/// Waits for the machine and for its end.
async fn outlive(launcher: &Arc<Launcher>, signals: &mut Signals, patience: Duration) -> u8 {
    let mut stage = launcher.follow_stage();
    let began = async { stage.wait_for(|stage| *stage != Stage::Waiting).await.map(|stage| *stage) };
    tokio::select! {
        began = timeout(patience, began) => match began {
            Ok(Ok(Stage::Dismissed)) => return 0,
            Ok(_) => {}
            Err(_) => {
                tracing::error!(?patience, "nobody asked for the machine in time");
                return 1;
            }
        },
        name = signals.next() => {
            tracing::info!(signal = name, "ending before there is a machine");
            return 0;
        }
    }
    let mut stage = launcher.follow_stage();
    let ended =
        async { stage.wait_for(|stage| matches!(stage, Stage::Ended | Stage::Dismissed)).await.is_ok() };
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => break,
            name = signals.next() => {
                tracing::info!(signal = name, "the guest is asked to shut down");
                launcher.board.notice(told_to_end(name));
                let launcher = launcher.clone();
                tokio::spawn(async move { launcher.shut_down_gracefully().await });
            }
        }
    }
    let (state, reason) = launcher.state();
    lifecycle::exit_code(state, reason)
}

/// Nobody else tells an instance why its guest has to go.
fn told_to_end(signal: &str) -> Notice {
    let message = format!(
        "The guest is asked to shut down since its container is told to end ({signal}); events of the pod say why, \
         such as a failed liveness probe"
    );
    Notice { kind: "Normal", reason: events::vmi::SHUTTING_DOWN, message }
}

/// Waits until the handler has heard of the end, if it is there.
async fn say_goodbye(launcher: &Launcher, mut told: watch::Receiver<Option<DomainReport>>) {
    let last = launcher.board.report();
    if last.metadata.deletion_timestamp.is_some() {
        let heard = told.wait_for(|told| told.as_ref() == Some(&last));
        if timeout(LAST_WORDS, heard).await.is_err() {
            tracing::warn!("the handler has not heard of the end");
        }
    } else if launcher.stage() != Stage::Dismissed {
        return;
    }
    // The answer to the command that ended the machine, or the wait for one, is still on its way.
    sleep(Duration::from_millis(50)).await;
}

/// The signals that mean: come to an end.
struct Signals {
    list: [(&'static str, Signal); 4],
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let list = [
            ("SIGTERM", signal(SignalKind::terminate())?),
            ("SIGINT", signal(SignalKind::interrupt())?),
            ("SIGQUIT", signal(SignalKind::quit())?),
            ("SIGHUP", signal(SignalKind::hangup())?),
        ];
        Ok(Self { list })
    }

    async fn next(&mut self) -> &'static str {
        let [term, int, quit, hup] = &mut self.list;
        tokio::select! {
            _ = term.1.recv() => term.0,
            _ = int.1.recv() => int.0,
            _ = quit.1.recv() => quit.0,
            _ = hup.1.recv() => hup.0,
        }
    }
}
