//! File capabilities, as the kernel keeps them in an extended attribute.

use anyhow::{Context, Result, bail, ensure};

/// The extended attribute.
pub const ATTRIBUTE: &str = "security.capability";

/// By their numbers.
const NAMES: &[&str] = &[
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The contents of the attribute for capabilities such as `cap_net_bind_service,cap_sys_nice`, which the
/// program then has from its start (`=ep`). With `=p` at the end it may take them, but also runs where it may not.
pub fn attribute(names: &str) -> Result<Vec<u8>> {
    const VERSION_2: u32 = 0x0200_0000;
    const EFFECTIVE: u32 = 1;
    let (names, effective) = match names.split_once('=') {
        None | Some((_, "ep")) => (names.trim_end_matches("=ep"), EFFECTIVE),
        Some((names, "p")) => (names, 0),
        Some((_, flags)) => bail!("{flags:?} is neither \"ep\" nor \"p\""),
    };
    let mut permitted = 0_u64;
    for name in names.split(',').map(str::trim) {
        let known = name.strip_prefix("cap_").and_then(|name| NAMES.iter().position(|one| *one == name));
        permitted |= 1 << known.with_context(|| format!("no capability is called {name:?}"))?;
    }
    ensure!(permitted != 0, "no capabilities");
    // Permitted and inheritable, the lower halves before the upper ones.
    let (lower, upper) = ((permitted & 0xffff_ffff) as u32, (permitted >> 32) as u32);
    Ok([VERSION_2 | effective, lower, 0, upper, 0].into_iter().flat_map(u32::to_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_setcap_writes() {
        assert_eq!(
            attribute("cap_net_bind_service").unwrap(),
            [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            attribute("cap_chown, cap_bpf").unwrap(),
            [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(attribute("cap_kill=ep").unwrap(), attribute("cap_kill").unwrap());
        assert_eq!(attribute("cap_kill=p").unwrap()[..5], [0, 0, 0, 2, 32]);
    }

    #[test]
    fn refuses_what_the_kernel_does_not_know() {
        for names in ["", "net_admin", "cap_net_admin+ep", "cap_net_admin=e", "cap_fly"] {
            assert!(attribute(names).is_err(), "{names}");
        }
    }
}
