//! `scp`: files to and from a machine, through the cluster.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::ssh::{Flags, run_client};
use crate::connect::Connect;
use crate::target::Target;

/// SCP files from or to a virtual machine instance.
///
/// Runs the scp of this machine, which reaches the guest through the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Copy a file to the home folder of the user jdoe:
  {program} scp myfile.bin jdoe@vmi/testvmi:myfile.bin

  # Copy a folder:
  {program} scp --recursive ~/mydir/ jdoe@vmi/testvmi:./mydir

  # Copy a file from the guest 'testvm' in the namespace 'mynamespace':
  {program} scp jdoe@vm/testvm/mynamespace:myfile.bin ~/myfile.bin")]
pub struct Arguments {
    /// What to copy: a file here, or [USER@]TYPE/NAME[/NAMESPACE]:FILE
    source: String,
    /// Where to copy it, in the same forms
    destination: String,
    #[command(flatten)]
    flags: Flags,
    /// Copy folders with all that is in them
    #[arg(long, short = 'r')]
    recursive: bool,
    /// Keep times and modes of files
    #[arg(long)]
    preserve: bool,
}

/// A copy between here and one machine.
#[derive(Debug, Eq, PartialEq)]
struct Copy {
    user: Option<String>,
    target: Target,
    remote: String,
    local: String,
    to_remote: bool,
}

impl Arguments {
    /// Runs scp and ends as it does.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let copy = Copy::parse(&self.source, &self.destination)?;
        let namespace = match &copy.target.namespace {
            Some(namespace) => namespace.clone(),
            None => connect.namespace().await?,
        };
        let host = self.flags.host(copy.user.as_deref(), &copy.target, &namespace);
        let last = copy.arguments(&host, self.recursive, self.preserve);
        run_client("scp", connect, &self.flags, &copy.target, &namespace, last).await
    }
}

impl Copy {
    fn parse(source: &str, destination: &str) -> Result<Self> {
        let (remote, local, to_remote) = match (source.split_once(':'), destination.split_once(':')) {
            (Some(_), Some(_)) => bail!(
                "copying from a remote location to another remote location is not supported: {source:?} to \
                 {destination:?}"
            ),
            (None, None) => bail!(
                "none of the two provided locations seems to be a remote location: {source:?} to {destination:?}"
            ),
            (Some(remote), None) => (remote, destination, false),
            (None, Some(remote)) => (remote, source, true),
        };
        let (user, target) = Target::parse_with_user(remote.0)?;
        Ok(Self { user, target, remote: remote.1.to_owned(), local: local.to_owned(), to_remote })
    }

    fn arguments(&self, host: &str, recursive: bool, preserve: bool) -> Vec<String> {
        let remote = format!("{host}:{}", self.remote);
        let mut arguments = Vec::new();
        arguments.extend(recursive.then(|| "-r".to_owned()));
        arguments.extend(preserve.then(|| "-p".to_owned()));
        if self.to_remote {
            arguments.extend([self.local.clone(), remote]);
        } else {
            arguments.extend([remote, self.local.clone()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_a_copy_is_here() {
        let there = Copy::parse("a.yaml", "me@vmi/m/ns:b:c.yaml").unwrap();
        assert_eq!(there.arguments("h", false, true), ["-p", "a.yaml", "h:b:c.yaml"]);
        assert_eq!((there.user.as_deref(), there.to_remote), (Some("me"), true));
        let back = Copy::parse("vm/m:", ".").unwrap();
        assert_eq!(back.arguments("h", true, false), ["-r", "h:", "."]);
        for (source, destination) in
            [("a", "b"), ("x:a", "y:b"), ("m:a", "b"), ("@vm/m:a", "b"), ("pod/m:a", "b")]
        {
            assert!(Copy::parse(source, destination).is_err(), "{source} {destination}");
        }
    }
}
