//! Programs from Debian packages, which are unpacked and not installed, with all that they need and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::recipe::Recipe;
use crate::cluster::{layout, lock};
use crate::sha256;

/// Changes with what is made of a recipe.
const GENERATION: u32 = 1;
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Folders that programs expect, and what all may do in them. `/var/run` is no link, so that nobody who looks for a
/// socket in it has to follow one.
const FOLDERS: [(&str, u32); 6] = [
    ("run", 0o755),
    ("tmp", 0o1777),
    ("var/lib/swtpm-localca", 0o750),
    ("var/log", 0o755),
    ("var/run", 0o755),
    ("var/tmp", 0o1777),
];

/// The folder that a recipe makes, made now unless it is in the cache.
pub(super) fn root(recipe: &Recipe) -> Result<PathBuf> {
    let cache = layout::cache()?.join("launcher-root");
    fs::create_dir_all(&cache)?;
    let key = &sha256::of_bytes(format!("{GENERATION} {recipe:?}").as_bytes())[..16];
    let place = cache.join(key);
    let _lock = lock::file(&cache.join("lock"), || eprintln!("another command builds it, waiting for it"))?;
    if !place.is_dir() {
        eprintln!("taking {} from Debian {}", recipe.packages.join(", "), recipe.suite);
        let work = cache.join("work");
        let _ = fs::remove_dir_all(&work);
        let made = make(recipe, &work).context("make the root of the launcher's image");
        let kept = made.and_then(|root| Ok(fs::rename(root, &place)?));
        let _ = fs::remove_dir_all(&work);
        kept?;
    }
    Ok(place)
}

fn make(recipe: &Recipe, work: &Path) -> Result<PathBuf> {
    let (all, root) = (work.join("unpacked"), work.join("root"));
    let archives = download(recipe, &work.join("apt"))?;
    for folder in [&all, &root] {
        for name in MERGED {
            fs::create_dir_all(folder.join("usr").join(name))?;
            symlink(format!("usr/{name}"), folder.join(name))?;
        }
    }
    let mut versions = Vec::new();
    for archive in &archives {
        succeed(Command::new("dpkg-deb").arg("-x").args([archive, &all]))?;
        versions.extend(archive.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    let mut kept: BTreeSet<PathBuf> = recipe.programs.iter().chain(recipe.data).map(PathBuf::from).collect();
    kept.insert(recipe.loader.into());
    kept.extend(libraries(recipe, &all)?);
    kept.extend(licences(&all)?);
    for path in &kept {
        keep(path, &all, &root)?;
    }
    furnish(&root, &versions)?;
    Ok(root)
}

/// Downloads the packages and all that they depend on, through lists of packages of our own.
fn download(recipe: &Recipe, folder: &Path) -> Result<Vec<PathBuf>> {
    for name in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::write(folder.join("status"), "")?;
    fs::write(folder.join("sources"), sources(recipe, &mirrors()?)?)?;
    let apt = |arguments: &[&str]| {
        let path = |name: &str, of: &str| format!("{name}={}", folder.join(of).display());
        let settings = [
            path("Dir::Etc::sourcelist", "sources"),
            path("Dir::State", ""),
            path("Dir::State::lists", "lists"),
            path("Dir::State::status", "status"),
            path("Dir::Cache", ""),
            path("Dir::Cache::archives", "archives"),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("APT::Architecture={}", recipe.architecture),
            format!("APT::Architectures={}", recipe.architecture),
            "APT::Install-Recommends=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        let options = settings.iter().flat_map(|setting| ["-o", setting]);
        patiently(|| succeed(Command::new("apt-get").arg("-qq").args(options.clone()).args(arguments)))
    };
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--download-only"], recipe.packages].concat())?;
    let entries = fs::read_dir(folder.join("archives"))?.map(|entry| Ok(entry?.path()));
    let mut archives: Vec<PathBuf> = entries.collect::<Result<_>>()?;
    archives.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    archives.sort();
    Ok(archives)
}

/// Where this machine takes its own packages from, one address a line.
fn mirrors() -> Result<String> {
    let mut command = Command::new("apt-get");
    let said = succeed(command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]))?;
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// The same mirrors, but of the recipe's release.
fn sources(recipe: &Recipe, mirrors: &str) -> Result<String> {
    let find = |security: bool| mirrors.lines().find(|mirror| mirror.contains("security") == security);
    let line = |mirror: &str, suite: &str| format!("deb [signed-by={KEYS}] {mirror} {suite} main\n");
    let packages = find(false).context("apt knows of no Debian mirror")?;
    let fixes = find(true).map(|mirror| line(mirror, &format!("{}-security", recipe.suite)));
    Ok(line(packages, recipe.suite) + &fixes.unwrap_or_default())
}

/// Mirrors refuse bursts.
fn patiently(task: impl Fn() -> Result<Output>) -> Result<Output> {
    let mut last = task();
    for pause in [5, 15, 30, 60, 120] {
        if last.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_secs(pause));
        last = task();
    }
    last
}

/// The libraries that the programs load, as the loader finds them.
fn libraries(recipe: &Recipe, all: &Path) -> Result<BTreeSet<PathBuf>> {
    let folders: Vec<String> =
        recipe.libraries.iter().map(|path| all.join(path).display().to_string()).collect();
    let folders = folders.join(":");
    let mut found = BTreeSet::new();
    for program in recipe.programs {
        let mut command = Command::new(all.join(recipe.loader));
        command.arg("--inhibit-cache").arg("--library-path").arg(&folders);
        command.arg("--list").arg(all.join(program));
        let listed = succeed(&mut command)?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        ensure!(!listed.contains("not found"), "{program} lacks a library:\n{listed}");
        found.extend(listed_libraries(&listed, all));
    }
    Ok(found)
}

/// The libraries that lines such as `libc.so.6 => /root/usr/lib/libc.so.6 (0x00007f)` name, as paths of the image.
fn listed_libraries(listed: &str, all: &Path) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let (path, _) = line.split_once(" => ")?.1.rsplit_once(" (")?;
        Some(Path::new(path).strip_prefix(all).ok()?.to_owned())
    };
    listed.lines().filter_map(of_line).collect()
}

/// What allows us to pass the programs on.
fn licences(all: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(all.join("usr/share/doc"))?;
    let mut found = Vec::new();
    for entry in entries {
        let licence = Path::new("usr/share/doc").join(entry?.file_name()).join("copyright");
        if all.join(&licence).is_file() {
            found.push(licence);
        }
    }
    Ok(found)
}

/// Copies a file or folder and, of a link, also what it leads to.
fn keep(path: &Path, all: &Path, root: &Path) -> Result<()> {
    let (from, to) = (all.join(path), root.join(path));
    let metadata =
        fs::symlink_metadata(&from).with_context(|| format!("Debian has no {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(root.join(folder))?;
    if metadata.is_symlink() {
        let target = fs::read_link(&from)?;
        if fs::symlink_metadata(&to).is_err() {
            symlink(&target, &to)?;
        }
        let target = target.strip_prefix("/").map_or_else(|_| folder.join(&target), Path::to_owned);
        return keep(&normal(&target), all, root);
    }
    if !metadata.is_dir() {
        fs::copy(&from, &to).with_context(|| format!("copy {}", path.display()))?;
        return Ok(());
    }
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(&from)? {
        keep(&path.join(entry?.file_name()), all, root)?;
    }
    Ok(())
}

/// The path without `..`, and below `/usr` where that is the same.
fn normal(path: &Path) -> PathBuf {
    let mut parts = Vec::new();
    for part in path {
        if part == ".." {
            parts.pop();
        } else if part != "." {
            parts.push(part);
        }
    }
    let path: PathBuf = parts.iter().collect();
    match parts.first() {
        Some(first) if MERGED.iter().any(|name| first == name) => Path::new("usr").join(path),
        _ => path,
    }
}

fn furnish(root: &Path, versions: &[String]) -> Result<()> {
    for (folder, mode) in FOLDERS {
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode))?;
    }
    super::accounts(root, "qemu:x:107:107::/:", "qemu:x:107:")?;
    fs::write(root.join("usr/share/doc/packages"), versions.join("\n") + "\n")?;
    Ok(())
}

fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {}", output.status, said.trim());
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_loader_lists() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffe)\n\
            \tlibc.so.6 => /w/root/usr/lib/x/libc.so.6 (0x00007f00)\n\
            \t/w/root/usr/lib64/ld-linux-x86-64.so.2 (0x00007f01)\n\
            \tlibhost.so => /lib/libhost.so (0x00007f02)\n";
        assert_eq!(listed_libraries(listed, Path::new("/w/root")), [Path::new("usr/lib/x/libc.so.6")]);
    }

    #[test]
    fn knows_where_links_lead() {
        for (path, expected) in [
            ("usr/lib64/../lib/x/ld.so", "usr/lib/x/ld.so"),
            ("lib/x/ld.so", "usr/lib/x/ld.so"),
            ("etc/./a", "etc/a"),
            ("../../a", "a"),
        ] {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
