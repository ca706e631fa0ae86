//! Setting the SSH keys of a guest's user, with old agents too.

use std::time::Duration;

use kubevirt_qemu::Agent;
use kubevirt_qemu::agent::{AgentError, Exec};

use crate::agent::follow::is_silence;

/// How long a small program in the guest may take.
const QUICK: Duration = Duration::from_secs(10);

/// Largest file of keys that is compared before it is written.
const LARGEST: usize = 1 << 20;

/// Why a user does not have their keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("the guest has no user {0}")]
    NoUser(String),
    #[error("{program} failed in the guest: {words}")]
    Program { program: &'static str, words: String },
    #[error("{command}; and by file: {file}")]
    Both { command: AgentError, file: Box<KeyError> },
}

/// A user of the guest.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    owner: String,
    home: String,
}

/// Lets a user log in with these keys only. Agents that have no command for it write the file.
pub(super) async fn set(agent: &Agent, user: &str, keys: &[String]) -> Result<(), KeyError> {
    let command = match agent.add_ssh_keys(user, keys, true).await {
        Ok(()) => return Ok(()),
        Err(error) if is_silence(&error) => return Err(error.into()),
        Err(error) => error,
    };
    let file = write(agent, user, keys).await;
    file.map_err(|file| KeyError::Both { command, file: Box::new(file) })
}

async fn write(agent: &Agent, user: &str, keys: &[String]) -> Result<(), KeyError> {
    let entry = run(agent, "getent", &["passwd", user]).await;
    let no_user = || KeyError::NoUser(user.to_owned());
    let entry = match entry {
        Err(KeyError::Program { .. }) => return Err(no_user()),
        entry => entry?,
    };
    let Account { owner, home } = account(&entry).ok_or_else(no_user)?;
    let folder = format!("{home}/.ssh");
    let file = format!("{folder}/authorized_keys");
    let content = keys.iter().map(|key| format!("{key}\n")).collect::<String>();
    if agent.read_file(&file, LARGEST).await.is_ok_and(|now| now == content.as_bytes()) {
        return Ok(());
    }
    run(agent, "mkdir", &["-p", &folder]).await?;
    run(agent, "chown", &[&owner, &folder]).await?;
    run(agent, "chmod", &["700", &folder]).await?;
    agent.write_file(&file, content.as_bytes()).await?;
    run(agent, "chown", &[&owner, &file]).await?;
    run(agent, "chmod", &["600", &file]).await?;
    Ok(())
}

async fn run(agent: &Agent, program: &'static str, arguments: &[&str]) -> Result<String, KeyError> {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let exec = Exec { path: program.to_owned(), arguments, ..Exec::default() };
    let status = agent.exec(&exec, QUICK).await?;
    if status.code == Some(0) {
        return Ok(String::from_utf8_lossy(&status.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&status.stderr).trim().to_owned();
    Err(KeyError::Program { program, words })
}

/// Reads a line of the user database: name, password, user, group, comment, home, shell.
fn account(entry: &str) -> Option<Account> {
    let fields: Vec<&str> = entry.trim().split(':').collect();
    let [_, _, user, group, _, home, ..] = fields.as_slice() else { return None };
    Some(Account { owner: format!("{user}:{group}"), home: (*home).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_an_owner_and_a_home() {
        let ann = Account { owner: "1000:1001".into(), home: "/home/ann".into() };
        assert_eq!(account("ann:x:1000:1001:Ann,,,:/home/ann:/bin/bash\n"), Some(ann));
        for entry in ["", "ann", "ann:x:1000"] {
            assert_eq!(account(entry), None, "{entry:?}");
        }
    }
}
