//! The first process of a node: it gives the node its own view of the machine's folders.

use std::path::Path;

use super::super::layout::{Node, SHARED_MOUNT};

/// Folders of which the node sees the machine's contents and keeps its own changes.
const OVERLAID: &[&str] = &["etc", "var/lib", "var/log"];
/// Folders that are wholly the node's, on the machine's disk.
const OWN: &[&str] = &[
    "etc/cni/net.d",
    "var/lib/cni",
    "var/lib/containerd",
    "var/lib/kubelet",
    "var/log/containers",
    "var/log/pods",
];
/// Where the state of a running node is; gone with it, as on a real machine.
const VOLATILE: &str = "run";

/// The file whose presence says that the node's folders are in place.
pub const READY: &str = "/run/node-ready";

/// The folders that must exist before the node starts.
pub fn folders(node: &Node) -> Vec<std::path::PathBuf> {
    let overlays =
        OVERLAID.iter().flat_map(|folder| [node.root.join("changes").join(folder), work(node, folder)]);
    overlays.chain(OWN.iter().map(|folder| own(node, folder))).collect()
}

/// Whether the node would hide this path of the machine.
pub fn hides(path: &Path) -> bool {
    OVERLAID.iter().chain([&VOLATILE]).any(|folder| path.starts_with(Path::new("/").join(folder)))
}

/// A folder that is wholly the node's, as the machine sees it.
pub fn own(node: &Node, folder: &str) -> std::path::PathBuf {
    node.root.join("own").join(folder)
}

fn work(node: &Node, folder: &str) -> std::path::PathBuf {
    node.root.join("work").join(folder.replace('/', "-"))
}

/// The script that runs as the node's first process, in new namespaces.
pub fn script(node: &Node, shared: &Path) -> String {
    let mut lines = vec!["set -e".to_owned(), format!("mount -t tmpfs -o mode=755 node /{VOLATILE}")];
    for folder in OVERLAID {
        let (changes, work) = (node.root.join("changes").join(folder), work(node, folder));
        lines.push(format!(
            "mount -t overlay -o lowerdir=/{folder},upperdir={},workdir={} node /{folder}",
            changes.display(),
            work.display()
        ));
    }
    let own = OWN.iter().map(|folder| (own(node, folder), format!("/{folder}")));
    for (source, target) in own.chain([(shared.to_owned(), SHARED_MOUNT.to_owned())]) {
        lines.push(format!("mkdir -p {target} && mount --bind {} {target}", source.display()));
    }
    lines.extend([
        // Volumes that the kubelet and pods mount must be seen by containers.
        "mount --make-rshared /".to_owned(),
        format!("hostname {}", node.name),
        "echo 1 > /proc/sys/net/ipv4/ip_forward".to_owned(),
        format!("touch {READY}"),
        // Waiting collects processes whose parents have ended.
        "set +e; while :; do sleep 3600 & wait; done".to_owned(),
    ]);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::Layout;
    use super::*;

    #[test]
    fn mounts_only_folders_that_are_made_before() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let node = layout.node(1);
        let script = script(&node, &layout.shared());
        let made = folders(&node);
        for word in script.split([' ', ',', '=']).filter(|word| word.starts_with("/c/")) {
            assert!(
                made.iter().any(|folder| folder == Path::new(word)) || layout.shared() == Path::new(word),
                "{word}"
            );
        }
        assert!(script.lines().count() < 25, "fits a screen");
    }

    #[test]
    fn knows_what_a_node_hides() {
        for (path, hidden) in
            [("/run/x", true), ("/var/lib/jenkins", true), ("/home/a", false), ("/runner", false)]
        {
            assert_eq!(hides(Path::new(path)), hidden, "{path}");
        }
    }
}
