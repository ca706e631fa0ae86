//! What this software says of its own version.

/// The version of KubeVirt whose API this is, with our own behind it. Clients of KubeVirt compare it with theirs and
/// complain of a difference; what follows the plus sign does not count for them.
pub const VERSION: &str = concat!("v1.9.0+kubevirt-rs.", env!("CARGO_PKG_VERSION"));

/// The system that it was built for, in the words of Kubernetes.
pub fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rules of semantic versions: three numbers, and identifiers of letters, digits and hyphens.
    #[test]
    fn the_version_is_that_of_the_api_for_who_compares() {
        let (api, own) = VERSION.split_once('+').unwrap();
        assert_eq!(api, "v1.9.0");
        assert!(own.ends_with(env!("CARGO_PKG_VERSION")));
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        assert!(own.split('.').all(|word| !word.is_empty() && word.chars().all(fits)), "{own}");
    }
}
