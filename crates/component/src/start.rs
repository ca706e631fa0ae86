//! How a daemon starts: logs, runtime, and a token that signals cancel.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::flags::Common;
use crate::pace::Pace;
use crate::role::Role;

/// After this time a daemon has started, and most of what it ran until then does not run again.
const STARTED: Duration = Duration::from_secs(10);
/// What did not run for this time is not kept in memory; to take up the rest again costs a millisecond.
const LATELY: Duration = Duration::from_secs(600);

/// Runs a daemon until it ends; SIGTERM and SIGINT cancel its token, and a second one ends it at once.
pub fn run(
    role: Role,
    flags: &Common,
    body: impl AsyncFnOnce(CancellationToken) -> Result<ExitCode>,
) -> Result<ExitCode> {
    kubevirt_logs::init(role.name(), flags.verbosity);
    // Each connection and each watch is one. Daemons start no programs that would inherit this.
    if let Err(error) = kubevirt_host::files::allow_many() {
        tracing::warn!(%error, "no more files than usual can be open");
    }
    // Only `ring` is built in, but several libraries each ask for the default.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = runtime(role).enable_all().build().context("start the runtime")?;
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        cancel_on_signals(&stop)?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "{} starts", role.name());
        tokio::spawn(let_code_go());
        body(stop).await
    });
    // What hangs in a system call is not waited for.
    runtime.shutdown_background();
    if let Err(error) = &result {
        tracing::error!("{} ends: {error:#}", role.name());
    }
    result
}

/// What runs the tasks of a daemon.
fn runtime(role: Role) -> Builder {
    match role {
        // It mostly waits for the API server, and nobody waits for it. A second thread would be woken, and sent to sleep
        // again, for each answer, which costs more than what it takes over.
        Role::Controller => {
            let pace = Pace::new();
            let mut builder = Builder::new_current_thread();
            builder.on_thread_park(move || pace.rest());
            builder
        }
        _ => {
            let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 4));
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    }
}

/// Keeps no more of the program in memory than what ran lately.
async fn let_code_go() {
    sleep(STARTED).await;
    loop {
        if let Err(error) = kubevirt_host::code::let_go() {
            tracing::debug!(%error, "the code stays in memory");
        }
        sleep(LATELY).await;
    }
}

fn cancel_on_signals(stop: &CancellationToken) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("handle SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("handle SIGINT")?;
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(1);
            }
            tracing::info!("told to stop");
            stop.cancel();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use clap::Parser;

    use super::*;

    /// Says that a test runs where few files can be open.
    const FEW_FILES: &str = "KUBEVIRT_TEST_FEW_FILES";

    #[derive(Parser)]
    struct Daemon {
        #[command(flatten)]
        common: Common,
    }

    /// So many times something is due that each is a look of its own.
    fn time_of_looks(role: Role, count: u32) -> Duration {
        let begin = Instant::now();
        runtime(role).enable_all().build().unwrap().block_on(async {
            for _ in 0..count {
                sleep(Duration::from_millis(1)).await;
            }
        });
        begin.elapsed()
    }

    #[test]
    fn a_busy_controller_rests() {
        // The first hundred are free, and a second passes during the others.
        assert!(time_of_looks(Role::Controller, 125) >= Duration::from_millis(900));
    }

    #[test]
    fn a_daemon_may_have_many_files_open() {
        if std::env::var_os(FEW_FILES).is_none() {
            let line =
                "ulimit -S -n 100 && exec \"$0\" --exact start::tests::a_daemon_may_have_many_files_open";
            let mut again = Command::new("sh");
            again.args(["-c", line]).arg(std::env::current_exe().unwrap()).env(FEW_FILES, "yes");
            assert!(again.status().unwrap().success());
            return;
        }
        let limits = || {
            let text = std::fs::read_to_string("/proc/self/limits").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
            line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(limits()[0], "100");
        let flags = Daemon::parse_from(["virt-api"]).common;
        run(Role::Api, &flags, async |_| Ok(ExitCode::SUCCESS)).unwrap();
        let now = limits();
        assert_eq!(now[0], now[1]);
    }
}
