//! All measurements that a request names, those of the guest in the agent's own words.

use kubevirt_launcher_rpc::cmd::{
    DirtyRateStatsResponse, DomainStatsResponse, Response, VmStatsRequest, VmStatsResponse,
};
use kubevirt_qemu::agent::AgentError;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::guest::within;
use crate::launcher::Launcher;

/// Pairs the parts of a request with the agent's commands and the parts of the answer.
macro_rules! agent_parts {
    ($($part:ident => $command:literal),* $(,)?) => {
        /// Commands of the agent that a request needs.
        fn wanted(request: &VmStatsRequest) -> Vec<&'static str> {
            [$((request.$part.is_some(), $command)),*]
                .into_iter()
                .filter_map(|(asked, command)| asked.then_some(command))
                .collect()
        }

        /// Puts the answer to a command into its place.
        fn put(response: &mut VmStatsResponse, command: &str, answer: Response) {
            match command {
                $($command => response.$part = Some(answer),)*
                _ => {}
            }
        }
    };
}

agent_parts! {
    guest_get_load => "guest-get-load",
    guest_get_cpu_stats => "guest-get-cpustats",
    guest_get_disk_stats => "guest-get-diskstats",
    guest_get_time => "guest-get-time",
    guest_get_vcpus => "guest-get-vcpus",
    guest_get_memory_block_info => "guest-get-memory-block-info",
    guest_get_users => "guest-get-users",
    guest_get_os_info => "guest-get-osinfo",
    guest_get_disks => "guest-get-disks",
    guest_get_host_name => "guest-get-host-name",
    guest_get_timezone => "guest-get-timezone",
    guest_network_get_route => "guest-network-get-route",
    guest_network_get_interfaces => "guest-network-get-interfaces",
    guest_get_memory_blocks => "guest-get-memory-blocks",
}

impl Launcher {
    /// All measurements that are asked for; those that fail do not take the others along.
    pub async fn vm_stats(&self, request: VmStatsRequest) -> VmStatsResponse {
        let mut response = VmStatsResponse::default();
        let mut failures = Vec::new();
        if request.domain_stats.is_some() {
            let stats = self.stats().await.and_then(|stats| Ok(serde_json::to_string(&stats)?));
            let (told, domain_stats) = split("domain stats", stats, &mut failures);
            response.domain_stats = Some(DomainStatsResponse { response: Some(told), domain_stats });
        }
        if request.dirty_rate.is_some() {
            let (told, dirty_rate_mbs) = split("dirty rate", self.dirty_rate().await, &mut failures);
            response.dirty_rate_stats = Some(DirtyRateStatsResponse { response: Some(told), dirty_rate_mbs });
        }
        self.ask_agent(&wanted(&request), &mut response, &mut failures).await;
        response.response = Some(Response { success: failures.is_empty(), message: failures.join("; ") });
        response
    }

    async fn ask_agent(
        &self,
        commands: &[&'static str],
        response: &mut VmStatsResponse,
        failures: &mut Vec<String>,
    ) {
        if commands.is_empty() {
            return;
        }
        let version = self.board.report().status.agent_version;
        response.guest_agent_version = Some(Response { success: true, message: version });
        let mut silence = None;
        for command in commands {
            let answer = match &silence {
                // An agent that does not answer one question does not answer the next.
                Some(words) => Err(CommandError::Refused(String::clone(words))),
                None => self.raw(command).await,
            };
            if let Err(CommandError::Agent(error @ (AgentError::Silent { .. } | AgentError::Gone))) = &answer
            {
                silence = Some(error.to_string());
            }
            let (mut told, text) = split(command, answer, failures);
            if told.success {
                told.message = text;
            }
            put(response, command, told);
        }
    }

    /// The agent's answer to a command, as it gives it.
    async fn raw(&self, command: &str) -> Result<String, CommandError> {
        let agent = self.connected_agent()?;
        let asked = agent.call::<Value>(command, json!(null));
        let answer = within(crate::guest::ANSWER, command, asked).await?;
        Ok(json!({ "return": answer }).to_string())
    }
}

fn split<T: Default>(
    what: &str,
    outcome: Result<T, CommandError>,
    failures: &mut Vec<String>,
) -> (Response, T) {
    match outcome {
        Ok(result) => (Response { success: true, message: String::new() }, result),
        Err(error) => {
            failures.push(format!("{what}: {error}"));
            (Response { success: false, message: error.to_string() }, T::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::cmd::{AgentLoadRequest, AgentUsersRequest};

    use super::*;

    #[test]
    fn parts_have_their_commands_and_places() {
        assert!(wanted(&VmStatsRequest::default()).is_empty());
        let request = VmStatsRequest {
            guest_get_load: Some(AgentLoadRequest {}),
            guest_get_users: Some(AgentUsersRequest {}),
            ..VmStatsRequest::default()
        };
        assert_eq!(wanted(&request), ["guest-get-load", "guest-get-users"]);
        let mut response = VmStatsResponse::default();
        put(&mut response, "guest-get-users", Response { success: true, message: "x".into() });
        assert_eq!(response.guest_get_users.unwrap().message, "x");
        assert!(response.guest_get_load.is_none());
    }

    #[test]
    fn failures_are_gathered() {
        let mut failures = Vec::new();
        let (told, rate) = split::<i64>("dirty rate", Err(CommandError::NotRunning), &mut failures);
        assert_eq!((told.success, rate), (false, 0));
        assert_eq!(failures, ["dirty rate: the virtual machine does not run"]);
    }
}
