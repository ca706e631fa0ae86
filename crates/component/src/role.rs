//! The daemons of an installation, and what the cluster configuration says of each of them.

use axum::http::HeaderValue;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::configuration::ReloadableComponentConfiguration;

use crate::limits::Rate;

/// A daemon of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers admission reviews and subresources.
    Api,
    /// Makes instances of machines, and pods of instances.
    Controller,
    /// Looks after the instances of a node.
    Handler,
    /// Installs and updates the others.
    Operator,
}

impl Role {
    /// The name: of the program, of its workload and of its lease.
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "virt-api",
            Self::Controller => "virt-controller",
            Self::Handler => "virt-handler",
            Self::Operator => "virt-operator",
        }
    }

    /// What it calls itself before the API server, whose records of who wrote which field begin with the name.
    pub fn user_agent(self) -> HeaderValue {
        let said = format!("{}/{}", self.name(), kubevirt_api::version::VERSION);
        HeaderValue::from_str(&said).unwrap_or_else(|_| HeaderValue::from_static(self.name()))
    }

    /// How many requests it may send to the API server.
    pub fn rate(self, config: &ClusterConfig) -> Rate {
        let all = config.configuration();
        let own = match self {
            Self::Api => all.api_configuration.as_ref(),
            Self::Controller => all.controller_configuration.as_ref(),
            Self::Handler => all.handler_configuration.as_ref(),
            Self::Operator => None,
        };
        own.and_then(rate).unwrap_or(self.default_rate())
    }

    /// How many requests it may send before the configuration is known.
    pub fn default_rate(self) -> Rate {
        match self {
            Self::Handler => Rate { per_second: 50.0, burst: 100 },
            _ => Rate { per_second: 200.0, burst: 400 },
        }
    }

    /// How much it logs, where the configuration asks for another verbosity than the usual one.
    pub fn verbosity(self, config: &ClusterConfig, node: Option<&str>) -> Option<u32> {
        let developer = config.configuration().developer_configuration.as_ref();
        let all = developer.and_then(|developer| developer.log_verbosity.as_ref())?;
        let of_node = node.and_then(|node| all.node_verbosity.as_ref()?.get(node).copied());
        let own = match self {
            Self::Api => all.virt_api,
            Self::Controller => all.virt_controller,
            Self::Handler => all.virt_handler,
            Self::Operator => all.virt_operator,
        };
        let asked = of_node.filter(|level| *level > 0).or(own)?;
        u32::try_from(asked).ok().filter(|asked| *asked != kubevirt_logs::DEFAULT_VERBOSITY)
    }
}

/// How many requests may be sent to the API server for admission reviews.
pub fn webhook_rate(config: &ClusterConfig) -> Rate {
    let own = config.configuration().webhook_configuration.as_ref();
    own.and_then(rate).unwrap_or(Role::Api.default_rate())
}

/// The rate that a part of the configuration asks for.
fn rate(own: &ReloadableComponentConfiguration) -> Option<Rate> {
    let bucket = own.rest_client.as_ref()?.rate_limiter.as_ref()?.token_bucket_rate_limiter.as_ref()?;
    let burst = u32::try_from(bucket.burst).ok().filter(|burst| *burst > 0)?;
    (bucket.qps.is_finite() && bucket.qps > 0.0).then_some(Rate { per_second: bucket.qps, burst })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(configuration: Value) -> ClusterConfig {
        let kubevirt = json!({ "spec": { "configuration": configuration } });
        ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap())
    }

    fn limited(qps: f64, burst: i64) -> ClusterConfig {
        let bucket = json!({ "tokenBucketRateLimiter": { "qps": qps, "burst": burst } });
        config(json!({ "controllerConfiguration": { "restClient": { "rateLimiter": bucket } } }))
    }

    #[test]
    fn who_writes_is_known_by_name() {
        for role in [Role::Api, Role::Controller, Role::Handler, Role::Operator] {
            let said = role.user_agent();
            assert_eq!(said.to_str().unwrap().split('/').next(), Some(role.name()));
        }
    }

    #[test]
    fn rates() {
        let usual = ClusterConfig::default();
        for role in [Role::Api, Role::Controller, Role::Handler, Role::Operator] {
            assert_eq!(role.rate(&usual), role.default_rate(), "{role:?}");
        }
        assert_eq!(Role::Controller.rate(&limited(10.0, 20)), Rate { per_second: 10.0, burst: 20 });
        assert_eq!(Role::Api.rate(&limited(10.0, 20)), Role::Api.default_rate());
        for (qps, burst) in [(-1.0, 20), (10.0, 0), (10.0, -5)] {
            let config = limited(qps, burst);
            assert_eq!(Role::Controller.rate(&config), Role::Controller.default_rate(), "{qps} {burst}");
        }
    }

    #[test]
    fn verbosities() {
        let config = config(json!({ "developerConfiguration": { "logVerbosity": {
            "virtAPI": 5, "virtHandler": 3, "nodeVerbosity": { "node01": 9 },
        } } }));
        assert_eq!(Role::Api.verbosity(&config, None), Some(5));
        assert_eq!(Role::Controller.verbosity(&config, None), None);
        assert_eq!(Role::Handler.verbosity(&config, Some("node01")), Some(9));
        assert_eq!(Role::Handler.verbosity(&config, Some("node02")), Some(3));
    }
}
