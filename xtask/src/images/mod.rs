//! `cargo xtask images`: the images of the system, as OCI archives.

mod debian;
mod program;
mod recipe;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use test_guest::{Flavour, artifacts};

use crate::image::layer::Layer;
use crate::image::{Config, Image};
use crate::{guest, sha256};

/// What the programs are called besides `kubevirt`, in the image of the components …
const COMPONENTS: [&str; 5] = ["virt-api", "virt-controller", "virt-handler", "virt-operator", "virtctl"];
/// … and in the image that runs machines.
const LAUNCHER: [&str; 6] =
    ["node-labeller", "virt-freezer", "virt-launcher", "virt-launcher-monitor", "virt-probe", "virt-tail"];
const PATH: &str = "PATH=/usr/bin:/usr/sbin:/bin:/sbin";
/// Anybody but root.
const COMPONENTS_USER: &str = "1001:1001";
const LAUNCHER_USER: &str = "107:107";

/// Where Debian has UEFI images, as seen from where an installation looks for them unless it is set to another folder.
const UEFI: (&str, &str) = ("../OVMF", "usr/share/edk2/ovmf");

/// What stands before the names of images that no registry has.
pub const REGISTRY: &str = "localhost/kubevirt-rs";

/// How the programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Like tests: quickly.
    Dev,
    /// As they are shipped.
    Release,
}

/// The arguments of `cargo xtask images`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// How the programs are built.
    #[arg(long, value_enum, default_value = "release")]
    profile: Profile,
    /// The folder for the archives; `images` in the folder of the build without it.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The tag of the images; it follows from their programs without it.
    #[arg(long)]
    tag: Option<String>,
    /// What stands before the names of the images.
    #[arg(long, default_value = REGISTRY)]
    registry: String,
}

/// An image in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its name.
    pub reference: String,
    /// The archive.
    pub file: PathBuf,
}

/// What an installation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// The program itself, which runs here as well.
    pub program: PathBuf,
    /// Of the components.
    pub components: Archive,
    /// Of pods that run machines.
    pub launcher: Archive,
    /// A disk with the guest of the tests.
    pub guest: Archive,
}

/// Does what the arguments say.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { profile, out, tag, registry } = arguments;
    let begin = Instant::now();
    let images = build(*profile, out.as_deref(), tag.as_deref(), registry)?;
    for archive in images.all() {
        let size = fs::metadata(&archive.file)?.len() >> 20;
        println!("{:<64} {size:>4} MiB  {}", archive.reference, archive.file.display());
    }
    eprintln!("images are ready after {:.1} s", begin.elapsed().as_secs_f32());
    Ok(())
}

impl Images {
    /// All archives.
    pub fn all(&self) -> [&Archive; 3] {
        [&self.components, &self.launcher, &self.guest]
    }
}

/// Builds the programs and packs the images.
pub fn build(profile: Profile, out: Option<&Path>, tag: Option<&str>, registry: &str) -> Result<Images> {
    let programs = program::build(profile)?;
    let out = out.map_or_else(|| programs.target.join("images"), Path::to_owned);
    fs::create_dir_all(&out).with_context(|| format!("make {}", out.display()))?;
    let _lock = crate::cluster::lock::file(&out.join("lock"), || {
        eprintln!("another command packs images, waiting for it");
    })?;
    let program = out.join("kubevirt");
    replace(&programs.kubevirt, &program)?;
    let tag = match tag {
        Some(tag) => tag.to_owned(),
        None => tag_of(&[&programs.kubevirt, &programs.container_disk])?,
    };
    let archive = |name: &str| Archive {
        reference: format!("{registry}/{name}:{tag}"),
        file: out.join(format!("{name}.tar")),
    };
    let images = Images {
        components: archive("kubevirt"),
        launcher: archive("virt-launcher"),
        guest: Archive {
            reference: format!("{registry}/test-guest:{}", Flavour::Cloud),
            file: out.join("test-guest.tar"),
        },
        program,
    };
    let aside = out.join("roots");
    let _ = fs::remove_dir_all(&aside);
    components(&programs, &aside.join("components"), &images.components)?;
    launcher(&programs, &aside.join("launcher"), &images.launcher)?;
    fs::remove_dir_all(&aside)?;
    guest::container_disk(&images.guest.reference, &artifacts(Flavour::Cloud)?.disk, &images.guest.file)?;
    Ok(images)
}

/// Images that were packed into a folder before.
pub fn packed(folder: &Path) -> Result<Images> {
    let archive = |name: &str| {
        let file = folder.join(format!("{name}.tar"));
        let reference = crate::image::reference_of(&file)?;
        Ok::<_, anyhow::Error>(Archive { reference, file })
    };
    Ok(Images {
        program: folder.join("kubevirt"),
        components: archive("kubevirt")?,
        launcher: archive("virt-launcher")?,
        guest: archive("test-guest")?,
    })
}

/// The program under all its names, and nothing else.
fn components(programs: &program::Programs, root: &Path, archive: &Archive) -> Result<()> {
    install(&programs.kubevirt, root, &COMPONENTS)?;
    accounts(root, "kubevirt:x:1001:1001::/:", "kubevirt:x:1001:")?;
    let config = Config {
        entrypoint: vec!["/usr/bin/kubevirt".into()],
        env: vec![PATH.into()],
        user: Some(COMPONENTS_USER.into()),
        ..Config::default()
    };
    pack(archive, vec![Layer::of_root(root)], config)
}

/// The program above what it runs.
fn launcher(programs: &program::Programs, root: &Path, archive: &Archive) -> Result<()> {
    install(&programs.kubevirt, root, &LAUNCHER)?;
    copy(&programs.container_disk, &root.join("usr/bin/container-disk"))?;
    let (firmware, usual) = UEFI;
    let usual = root.join(usual);
    fs::create_dir_all(usual.parent().context("no folder")?)?;
    symlink(firmware, usual).context("name the folder of UEFI images")?;
    let mut upper = Layer::of_root(root);
    // To answer DHCP. Only permitted: some containers of a pod may not even that.
    upper.capabilities.insert("/usr/bin/kubevirt".into(), "cap_net_bind_service=p".into());
    let mut lower = Layer::of_root(&debian::root(&recipe::of_this_machine()?)?);
    lower.owners.insert("/var/lib/swtpm-localca".into(), LAUNCHER_USER.parse()?);
    let config = Config {
        entrypoint: vec!["/usr/bin/virt-launcher".into()],
        env: vec![PATH.into()],
        user: Some(LAUNCHER_USER.into()),
        ..Config::default()
    };
    pack(archive, vec![lower, upper], config)
}

fn pack(archive: &Archive, layers: Vec<Layer>, config: Config) -> Result<()> {
    let image = Image { reference: archive.reference.clone(), layers, config };
    image.pack(&archive.file).with_context(|| format!("pack {}", archive.reference))
}

fn install(program: &Path, root: &Path, names: &[&str]) -> Result<()> {
    let folder = root.join("usr/bin");
    copy(program, &folder.join("kubevirt"))?;
    for name in names {
        symlink("kubevirt", folder.join(name)).with_context(|| format!("name {name}"))?;
    }
    Ok(())
}

/// Users, for programs that ask who they are.
fn accounts(root: &Path, user: &str, group: &str) -> Result<()> {
    let folder = root.join("etc");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("passwd"), format!("root:x:0:0::/:\n{user}\nnobody:x:65534:65534::/:\n"))?;
    fs::write(folder.join("group"), format!("root:x:0:\n{group}\nnobody:x:65534:\n"))?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let place = to.parent().context("no folder")?;
    fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
    fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Copies a program over one that may be running.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let aside = to.with_extension("new");
    copy(from, &aside)?;
    fs::rename(&aside, to).with_context(|| format!("write {}", to.display()))
}

/// Another tag for other programs, so that a cluster notices.
fn tag_of(programs: &[&Path]) -> Result<String> {
    let mut digests = String::new();
    for program in programs {
        let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
        digests += &sha256::of_bytes(&bytes);
    }
    Ok(sha256::of_bytes(digests.as_bytes())[..12].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_all_its_names() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-images-{}", std::process::id()));
        let (program, root) = (folder.join("program"), folder.join("root"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(&program, "text").unwrap();
        install(&program, &root, &LAUNCHER).unwrap();
        for name in LAUNCHER {
            assert_eq!(fs::read(root.join("usr/bin").join(name)).unwrap(), b"text", "{name}");
        }
        let first = tag_of(&[&program]).unwrap();
        fs::write(&program, "other text").unwrap();
        replace(&program, &root.join("usr/bin/kubevirt")).unwrap();
        assert_ne!(tag_of(&[&program]).unwrap(), first);
        assert_eq!(fs::read(root.join("usr/bin/virt-tail")).unwrap(), b"other text");
        fs::remove_dir_all(folder).unwrap();
    }
}
