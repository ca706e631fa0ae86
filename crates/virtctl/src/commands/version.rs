//! `version`: of this program and of the cluster's KubeVirt.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use kubevirt_api::names::groups;
use kubevirt_api::version::{VERSION, platform};
use serde::Deserialize;

use crate::connect::{Connect, Session};
use crate::output::say;
use crate::subresource::Error;

/// How long a server may take that is asked in passing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Print the client and server version information.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Print the client and server versions for the current context:\n  {program} version"
)]
pub struct Arguments {
    /// Client version only: no cluster is needed
    #[arg(long, short = 'c')]
    client: bool,
}

/// What a build says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Version {
    git_version: String,
    git_commit: String,
    git_tree_state: String,
    build_date: String,
    go_version: String,
    compiler: String,
    platform: String,
}

impl std::fmt::Display for Version {
    /// The form that scripts pick the version from.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "version.Info{{GitVersion:{:?}, GitCommit:{:?}, GitTreeState:{:?}, BuildDate:{:?}, GoVersion:{:?}, \
             Compiler:{:?}, Platform:{:?}}}",
            self.git_version,
            self.git_commit,
            self.git_tree_state,
            self.build_date,
            self.go_version,
            self.compiler,
            self.platform
        )
    }
}

impl Arguments {
    /// Prints one or both.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        say!("Client Version: {}", own());
        if !self.client {
            let session = connect.session().await?;
            let server = server(session).await.context("failed to get server version")?;
            say!("Server Version: {server}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn own() -> Version {
    Version {
        git_version: VERSION.to_owned(),
        compiler: "rustc".to_owned(),
        platform: platform(),
        ..Version::default()
    }
}

/// What is told with a failure if the cluster's KubeVirt is not of this program's version, which may be the reason.
pub async fn difference(session: &Session) -> Option<String> {
    let server = tokio::time::timeout(PATIENCE, server(session)).await.ok()?.ok()?;
    differ(VERSION, &server.git_version).then(|| {
        format!(
            "You are using a client virtctl version that is different from the KubeVirt version running in the cluster\n\
             Client Version: {VERSION}\nServer Version: {}\n",
            server.git_version
        )
    })
}

/// Whether one has what the other has not: what follows the first two numbers only mends.
fn differ(client: &str, server: &str) -> bool {
    matches!((numbers(client), numbers(server)), (Some(client), Some(server)) if client != server)
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut words = version.strip_prefix('v').unwrap_or(version).splitn(3, '.');
    let numbers = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().map(|_| numbers)
}

/// Asks by the version of the API that the server prefers.
async fn server(session: &Session) -> Result<Version, Error> {
    let group = session.call(Method::GET, &format!("/apis/{}", groups::SUBRESOURCES), None).await?;
    let group: APIGroup = serde_json::from_slice(&group)?;
    let preferred = match group.preferred_version {
        Some(version) => version.group_version,
        None => format!("{}/v1", groups::SUBRESOURCES),
    };
    let told = session.call(Method::GET, &format!("/apis/{preferred}/version"), None).await?;
    Ok(serde_json::from_slice(&told)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_one_that_scripts_know() {
        let version: Version =
            serde_json::from_str(r#"{"gitVersion":"v1.9.0","platform":"linux/amd64","more":1}"#).unwrap();
        assert_eq!(
            version.to_string(),
            r#"version.Info{GitVersion:"v1.9.0", GitCommit:"", GitTreeState:"", BuildDate:"", GoVersion:"", Compiler:"", Platform:"linux/amd64"}"#
        );
        assert!(own().to_string().contains(&format!("GitVersion:\"{VERSION}\"")));
    }

    #[test]
    fn only_another_release_is_different() {
        for (client, server, expected) in [
            (VERSION, "v1.9.3", false),
            (VERSION, "v1.9.0-rc.2.15+abcdef", false),
            (VERSION, "v0.46.1", true),
            ("v1.9.0", "v1.10.0", true),
            ("v1.9.0", "2.9.0", true),
            ("v1.9.0", "", false),
            ("v1.9.0", "v1.8", false),
            ("v1.9.0", "latest", false),
        ] {
            assert_eq!(differ(client, server), expected, "{client} {server}");
        }
    }
}
