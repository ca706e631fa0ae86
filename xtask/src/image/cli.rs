//! `cargo xtask image`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use super::layer::{Layer, Owner};
use super::{Config, Image};

/// The arguments of `cargo xtask image`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A folder that becomes the image's root; each further one becomes a layer above.
    #[arg(long, required = true)]
    root: Vec<PathBuf>,
    /// The image's name, such as localhost/virt-launcher:1.
    #[arg(long)]
    tag: String,
    /// The archive to write.
    #[arg(long)]
    output: PathBuf,
    /// What runs, such as /usr/bin/virt-launcher; again for each argument of it.
    #[arg(long, allow_hyphen_values = true)]
    entrypoint: Vec<String>,
    /// A default argument of what runs; again for each.
    #[arg(long, allow_hyphen_values = true)]
    cmd: Vec<String>,
    /// A variable of its environment, as NAME=VALUE.
    #[arg(long)]
    env: Vec<String>,
    /// The user it runs as, as USER or USER:GROUP.
    #[arg(long)]
    user: Option<String>,
    /// The folder it runs in.
    #[arg(long)]
    workdir: Option<String>,
    /// Who owns all files, as numbers USER:GROUP; without it, who owns them on the disk.
    #[arg(long)]
    owner: Option<Owner>,
    /// Who owns one path of the image, as PATH=USER:GROUP.
    #[arg(long, value_name = "PATH=OWNER")]
    owner_of: Vec<String>,
    /// File capabilities of one program of the image, as PATH=cap_one,cap_two.
    #[arg(long, value_name = "PATH=NAMES")]
    capability: Vec<String>,
}

/// Does what the arguments say.
pub fn run(arguments: Arguments) -> Result<()> {
    let output = arguments.output.clone();
    image(arguments)?.pack(&output)
}

fn image(arguments: Arguments) -> Result<Image> {
    let mut owners: BTreeMap<PathBuf, Owner> = pairs(&arguments.owner_of)?;
    let mut capabilities: BTreeMap<PathBuf, String> = pairs(&arguments.capability)?;
    let layers = arguments.root.into_iter().rev().map(|root| {
        // Each path is of the highest layer that has it.
        let here =
            |path: &PathBuf| root.join(path.strip_prefix("/").unwrap_or(path)).symlink_metadata().is_ok();
        let owners = owners.extract_if(.., |path, _| here(path)).collect();
        let capabilities = capabilities.extract_if(.., |path, _| here(path)).collect();
        Layer { owner: arguments.owner, owners, capabilities, root }
    });
    let mut layers: Vec<Layer> = layers.collect();
    layers.reverse();
    if let Some(path) = owners.keys().chain(capabilities.keys()).next() {
        return Err(anyhow!("no {} in the image", path.display()));
    }
    let config = Config {
        entrypoint: arguments.entrypoint,
        cmd: arguments.cmd,
        env: arguments.env,
        user: arguments.user,
        working_dir: arguments.workdir,
    };
    Ok(Image { reference: arguments.tag, layers, config })
}

fn pairs<T: FromStr<Err: Into<anyhow::Error>>>(texts: &[String]) -> Result<BTreeMap<PathBuf, T>> {
    let pair = |text: &String| {
        let (path, value) = text.split_once('=').with_context(|| format!("{text:?} has no '='"))?;
        Ok((PathBuf::from(path), value.parse().map_err(Into::into)?))
    };
    texts.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> Result<Image> {
        image(Line::try_parse_from(format!("image --tag t --output o {line}").split(' '))?.arguments)
    }

    #[test]
    fn owners_and_capabilities_go_to_the_highest_layer_that_has_the_path() {
        let image = parse("--root / --root /proc --owner 0:0 --owner-of /self=1 --owner-of /usr=2:3 --capability /stat=cap_kill").unwrap();
        assert_eq!(image.layers[0].owners[&PathBuf::from("/usr")], Owner { user: 2, group: 3 });
        assert_eq!(image.layers[1].owners[&PathBuf::from("/self")], Owner { user: 1, group: 1 });
        assert_eq!(image.layers[1].capabilities[&PathBuf::from("/stat")], "cap_kill");
        assert!(parse("--root /proc --owner-of /no-such-path=1").is_err());
        assert!(parse("--root /proc --owner-of /self").is_err());
    }

    #[test]
    fn passes_on_what_runs() {
        let image = parse("--root / --entrypoint /a --entrypoint -b --cmd --c --env D=e --user 107").unwrap();
        assert_eq!(image.config.entrypoint, ["/a", "-b"]);
        assert_eq!(image.config.cmd, ["--c"]);
        assert_eq!(image.config.env, ["D=e"]);
        assert_eq!(image.config.user.as_deref(), Some("107"));
        assert_eq!(image.layers[0].owner, None);
    }
}
