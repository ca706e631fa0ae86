//! The ssh programs of this machine, and the way to a guest that they are given.

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result};

use crate::connect::Connect;
use crate::failure::Failure;
use crate::target::Target;

/// What ssh does with a new key if nobody has told it anything else.
const UNDECIDED: &str = "ask";

/// What ssh and scp have in common.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// The user to log in as; without it, the user of this machine
    #[arg(long, short = 'l')]
    pub username: Option<String>,
    /// A private key to log in with; without it, those that ssh finds and those of the agent at $SSH_AUTH_SOCK
    #[arg(long, short = 'i', value_name = "FILE")]
    pub identity_file: Option<PathBuf>,
    /// Where the keys of guests are remembered from the first time on, if not in ~/.ssh/kubevirt_known_hosts; empty
    /// leaves it to ssh, which may ask
    #[arg(long, value_name = "FILE")]
    pub known_hosts: Option<String>,
    /// The port of the guest
    #[arg(long, short = 'p', default_value_t = 22)]
    pub port: u16,
    /// An option to pass on, as in -t "-o StrictHostKeyChecking=no"; once for each
    #[arg(long, short = 't', value_name = "OPTION")]
    pub local_ssh_opts: Vec<String>,
}

impl Flags {
    /// The name by which ssh knows the guest: no name of a host, but the same each time.
    pub fn host(&self, user: Option<&str>, target: &Target, namespace: &str) -> String {
        let host = name(target, namespace);
        match user.map(str::to_owned).or_else(|| self.username.clone()).or_else(own_name) {
            Some(user) if !user.is_empty() => format!("{user}@{host}"),
            _ => host,
        }
    }

    /// Everything before the host. The user's options come first: ssh takes the first of its kind.
    fn arguments(&self, proxy: &str, home: Option<PathBuf>, strictness: Option<&str>) -> Vec<String> {
        let mut arguments = vec!["-o".to_owned(), format!("ProxyCommand={proxy}")];
        arguments.extend(self.local_ssh_opts.iter().cloned());
        let usual = || Some(home?.join(".ssh").join("kubevirt_known_hosts").display().to_string());
        if let Some(known) = self.known_hosts.clone().or_else(usual).filter(|known| !known.is_empty()) {
            // In quotes, since a list of files is separated by spaces.
            arguments.extend(["-o".to_owned(), format!("UserKnownHostsFile=\"{known}\"")]);
            // Nobody can compare the key of a new guest with anything, and the way to it is the cluster's, which the
            // user trusts. Whoever has told ssh to be stricter, or less strict, has decided.
            if strictness == Some(UNDECIDED) {
                arguments.extend(["-o".to_owned(), "StrictHostKeyChecking=accept-new".to_owned()]);
            }
        }
        if let Some(identity) = &self.identity_file {
            arguments.extend(["-i".to_owned(), identity.display().to_string()]);
        }
        arguments
    }
}

/// The name of a guest that ssh sees.
fn name(target: &Target, namespace: &str) -> String {
    format!("{}.{}.{namespace}", target.kind.short(), target.name)
}

/// How strict ssh is with the keys of this host, by the user's options and files. Nothing, where it does not tell.
async fn strictness(options: &[String], host: &str) -> Option<String> {
    let mut ssh = tokio::process::Command::new("ssh");
    let told = ssh.arg("-G").args(options).arg(host).stdin(Stdio::null()).output().await.ok()?;
    strictness_in(&String::from_utf8_lossy(&told.stdout)).map(str::to_owned)
}

fn strictness_in(configuration: &str) -> Option<&str> {
    configuration.lines().find_map(|line| line.strip_prefix("stricthostkeychecking "))
}

fn own_name() -> Option<String> {
    ["USER", "USERNAME", "LOGNAME"]
        .into_iter()
        .find_map(|variable| std::env::var(variable).ok().filter(|name| !name.is_empty()))
}

/// Runs `ssh` or `scp` with a way to the guest; `last` is what comes after the options.
pub async fn run_client(
    program: &str,
    connect: &Connect,
    flags: &Flags,
    target: &Target,
    namespace: &str,
    last: Vec<String>,
) -> Result<ExitCode> {
    let again = connect.program.again().context("this program cannot find itself")?;
    let proxy = proxy_command(&again, &connect.flags.arguments(), target, namespace, flags.port);
    let strictness = strictness(&flags.local_ssh_opts, &name(target, namespace)).await;
    let status = tokio::process::Command::new(program)
        .args(flags.arguments(&proxy, std::env::home_dir(), strictness.as_deref()))
        .args(last)
        .status()
        .await
        .map_err(|error| {
            let next = "Install an OpenSSH client (openssh-client or openssh-clients).";
            Failure::new(format!("{program} cannot be started: {error}"), next)
        })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// This program, as a shell runs it for ssh. It reaches the same cluster as the same user.
fn proxy_command(
    again: &[String],
    cluster: &[String],
    target: &Target,
    namespace: &str,
    port: u16,
) -> String {
    let target = format!("{}/{}/{namespace}", target.kind.short(), target.name);
    let fixed = ["port-forward".to_owned(), "--stdio=true".to_owned()];
    let words = again.iter().chain(cluster).cloned().chain(fixed).chain([target, port.to_string()]);
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word that stays one in a shell, and in which ssh finds nothing to expand.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subresource::Kind;

    fn target() -> Target {
        Target { kind: Kind::Vmi, name: "a".into(), namespace: None }
    }

    fn flags() -> Flags {
        Flags {
            username: Some("me".into()),
            identity_file: None,
            known_hosts: None,
            port: 22,
            local_ssh_opts: vec![],
        }
    }

    #[test]
    fn hosts_are_named_by_kind_name_and_namespace() {
        assert_eq!(flags().host(None, &target(), "ns"), "me@vmi.a.ns");
        assert_eq!(flags().host(Some("you"), &target(), "ns"), "you@vmi.a.ns");
        let nobody = Flags { username: Some(String::new()), ..flags() };
        assert_eq!(nobody.host(None, &target(), "ns"), "vmi.a.ns");
    }

    #[test]
    fn what_the_user_says_comes_before_what_we_add() {
        let all = Flags {
            identity_file: Some("/k".into()),
            local_ssh_opts: vec!["-o UserKnownHostsFile=/dev/null".into(), "-v".into()],
            ..flags()
        };
        assert_eq!(
            all.arguments("p", Some("/home/me".into()), Some("true")),
            [
                "-o",
                "ProxyCommand=p",
                "-o UserKnownHostsFile=/dev/null",
                "-v",
                "-o",
                "UserKnownHostsFile=\"/home/me/.ssh/kubevirt_known_hosts\"",
                "-i",
                "/k"
            ]
        );
        assert_eq!(flags().arguments("p", None, None), ["-o", "ProxyCommand=p"]);
    }

    #[test]
    fn the_first_key_of_a_guest_is_taken_unless_the_user_has_decided() {
        let accepts = |known_hosts: Option<&str>, configuration: &str| {
            let flags = Flags { known_hosts: known_hosts.map(str::to_owned), ..flags() };
            let arguments = flags.arguments("p", Some("/home/me".into()), strictness_in(configuration));
            arguments.iter().any(|argument| argument == "StrictHostKeyChecking=accept-new")
        };
        for (known_hosts, configuration, expected) in [
            (None, "port 22\nstricthostkeychecking ask\n", true),
            (Some("/k"), "stricthostkeychecking ask", true),
            // Among the hosts of the user's own file, it is the user who says what is added.
            (Some(""), "stricthostkeychecking ask", false),
            (None, "stricthostkeychecking true", false),
            (None, "stricthostkeychecking false", false),
            (None, "stricthostkeychecking accept-new", false),
            // An ssh that does not tell is too old to know the word.
            (None, "unknown option -- G", false),
        ] {
            assert_eq!(accepts(known_hosts, configuration), expected, "{known_hosts:?} {configuration}");
        }
    }

    #[test]
    fn the_proxy_is_this_program_on_the_same_cluster() {
        let again = ["/opt/my tools/kubevirt".to_owned(), "virtctl".to_owned()];
        let cluster = ["--context=it's 100%".to_owned()];
        assert_eq!(
            proxy_command(&again, &cluster, &target(), "ns", 2222),
            "'/opt/my tools/kubevirt' virtctl '--context=it'\\''s 100%%' port-forward --stdio=true vmi/a/ns 2222"
        );
    }
}
