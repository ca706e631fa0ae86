//! Paths of files inside of container images.

use crate::{Path, Problems};

/// What is wrong with the path of a file in a container image: it leads straight from the root to a file.
pub(super) fn check(field: &Path<'_>, path: &str, problems: &mut Problems) {
    if path.bytes().all(|byte| byte == b'/') && !path.is_empty() {
        problems.invalid(field, "the path is that of the root: name a file");
    } else if !is_straight(path) {
        let message = format!("{path:?} is no absolute path without empty, . and .. components");
        problems.invalid(field, message);
    }
}

fn is_straight(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(below_root) = path.strip_prefix('/') else { return false };
    below_root.split('/').all(|component| !matches!(component, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_straight_to_a_file() {
        let good = ["/a", "/a/b", "/a/b.img", "/a/", "/.a/..b", "/a/..."];
        let bad =
            ["", "/", "//", "a", "a/b", "./a", "/a//b", "/a/./b", "/a/../b", "/..", "/a/..", "//a", "/a//"];
        for path in good.iter().chain(&bad) {
            let mut problems = Problems::default();
            check(&Path::new("path"), path, &mut problems);
            assert_eq!(problems.is_empty(), good.contains(path), "{path:?}");
        }
    }
}
