//! Which program shows a display.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::failure::Failure;

/// What is known when a viewer is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The operating system.
    pub os: &'a str,
    /// `--vnc-type`.
    pub kind: Option<&'a str>,
    /// `--vnc-path`.
    pub path: Option<&'a Path>,
    /// Where it is to connect.
    pub port: u16,
    /// Whether it is to log.
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Viewer {
    Tiger,
    Chicken,
    Real,
    Remote,
}

/// Where viewers are on macOS, in the order in which they are looked for.
const APPLICATIONS: [(&str, Viewer); 3] = [
    ("/Applications/TigerVNC.app/Contents/MacOS/vncviewer", Viewer::Tiger),
    ("/Applications/Chicken.app/Contents/MacOS/Chicken", Viewer::Chicken),
    ("/Applications/VNC Viewer.app/Contents/MacOS/vncviewer", Viewer::Real),
];
/// Where older versions of TigerVNC are on macOS, with their version in the name.
const OLD_TIGER: &str = "/Applications/TigerVNC Viewer *.app/Contents/MacOS/TigerVNC Viewer";

impl Viewer {
    fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "tiger" => Self::Tiger,
            "chicken" => Self::Chicken,
            "real" => Self::Real,
            "remote-viewer" => Self::Remote,
            other => bail!("unsupported vnc-type: {other}; use tiger, chicken, real or remote-viewer"),
        })
    }

    /// What it is called where it can be found.
    fn program(self) -> &'static str {
        match self {
            Self::Tiger => "vncviewer",
            Self::Remote => "remote-viewer",
            Self::Chicken => APPLICATIONS[1].0,
            Self::Real => APPLICATIONS[2].0,
        }
    }

    fn of_file(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("remote-viewer") || name.contains("virt-viewer") {
            Self::Remote
        } else {
            Self::Tiger
        }
    }

    fn arguments(self, port: u16, verbose: bool) -> Vec<String> {
        let address = format!("127.0.0.1:{port}");
        let log = |flag: &str| verbose.then(|| flag.to_owned());
        match self {
            Self::Tiger => std::iter::once(address).chain(log("Log=*:stderr:100")).collect(),
            Self::Chicken => vec![address],
            Self::Real => [&address, "-WarnUnencrypted=0", "-Shared=0", "-ShareFiles=0"]
                .map(ToString::to_string)
                .into_iter()
                .chain(log("-log=*:stderr:100"))
                .collect(),
            Self::Remote => std::iter::once(format!("vnc://{address}")).chain(log("--debug")).collect(),
        }
    }
}

/// The program to start and its arguments. `find` tells where a program is: by its name, its path, or a path with
/// one star.
pub fn choose(wish: &Wish<'_>, find: &dyn Fn(&str) -> Option<PathBuf>) -> Result<(PathBuf, Vec<String>)> {
    let mac = wish.os == "macos";
    let (viewer, program) = match (wish.kind, wish.path) {
        (kind, Some(path)) => {
            let viewer = kind.map_or_else(|| Ok(Viewer::of_file(path)), Viewer::parse)?;
            let Some(found) = find(&path.to_string_lossy()) else {
                bail!("specified VNC path does not exist: {}", path.display());
            };
            (viewer, found)
        }
        (Some(kind), None) => {
            let viewer = Viewer::parse(kind)?;
            if !mac && matches!(viewer, Viewer::Chicken | Viewer::Real) {
                bail!("unsupported vnc-type for {}: {kind}; use tiger or remote-viewer", wish.os);
            }
            match find(viewer.program()) {
                Some(found) => (viewer, found),
                None => return Err(missing(&format!("could not find {} in $PATH", viewer.program()))),
            }
        }
        (None, None) if mac => on_a_mac(find)?,
        (None, None) => [Viewer::Remote, Viewer::Tiger]
            .into_iter()
            .find_map(|viewer| Some((viewer, find(viewer.program())?)))
            .ok_or_else(|| missing("could not find remote-viewer or vncviewer binary in $PATH"))?,
    };
    Ok((program, viewer.arguments(wish.port, wish.verbose)))
}

fn on_a_mac(find: &dyn Fn(&str) -> Option<PathBuf>) -> Result<(Viewer, PathBuf)> {
    let [tiger, others @ ..] = APPLICATIONS;
    [tiger, (OLD_TIGER, Viewer::Tiger)]
        .into_iter()
        .chain(others)
        .chain([(Viewer::Remote.program(), Viewer::Remote)])
        .find_map(|(program, viewer)| Some((viewer, find(program)?)))
        .ok_or_else(|| missing("no supported VNC app found"))
}

fn missing(what: &str) -> anyhow::Error {
    let next =
        "Install virt-viewer or TigerVNC, name a viewer with --vnc-type and --vnc-path, or use --proxy-only.";
    Failure::new(what, next).into()
}

/// Where a program is on this machine.
pub fn on_this_machine(program: &str) -> Option<PathBuf> {
    if let Some((before, after)) = program.split_once('*') {
        let folder = Path::new(before).parent()?;
        let found = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path().display().to_string());
        let mut names: Vec<String> = found.filter(|path| path.starts_with(before)).collect();
        names.sort();
        let application = names.pop()?;
        let rest = after.split_once('/').map_or("", |(_, rest)| rest);
        return Some(Path::new(&application).join(rest)).filter(|path| path.exists());
    }
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_chosen_by_flag_or_by_what_is_there() {
        let chosen = |os, kind: Option<&'static str>, path: Option<&'static str>, there: &[&str]| {
            let wish = Wish { os, kind, path: path.map(Path::new), port: 5900, verbose: false };
            let find = |program: &str| there.contains(&program).then(|| PathBuf::from(program));
            choose(&wish, &find)
                .ok()
                .map(|(program, arguments)| format!("{} {}", program.display(), arguments.join(" ")))
        };
        let is = |text: &str| Some(text.to_owned());
        let both = ["remote-viewer", "vncviewer"];
        assert_eq!(chosen("linux", None, None, &both), is("remote-viewer vnc://127.0.0.1:5900"));
        assert_eq!(chosen("linux", None, None, &["vncviewer"]), is("vncviewer 127.0.0.1:5900"));
        assert_eq!(chosen("linux", None, None, &[]), None);
        assert_eq!(chosen("linux", Some("tiger"), None, &both), is("vncviewer 127.0.0.1:5900"));
        assert_eq!(chosen("linux", Some("real"), None, &both), None);
        assert_eq!(chosen("linux", Some("nonsense"), None, &both), None);
        assert_eq!(chosen("linux", None, Some("/opt/v"), &["/opt/v"]), is("/opt/v 127.0.0.1:5900"));
        assert_eq!(
            chosen("linux", Some("remote-viewer"), Some("/opt/v"), &["/opt/v"]),
            is("/opt/v vnc://127.0.0.1:5900")
        );
        assert_eq!(chosen("linux", None, Some("/opt/v"), &[]), None);
        let (chicken, real) = (APPLICATIONS[1].0, APPLICATIONS[2].0);
        assert_eq!(chosen("macos", None, None, &[chicken, real]), Some(format!("{chicken} 127.0.0.1:5900")));
        assert_eq!(
            chosen("macos", None, None, &[OLD_TIGER, chicken]),
            Some(format!("{OLD_TIGER} 127.0.0.1:5900"))
        );
        assert!(chosen("macos", Some("real"), None, &[real]).is_some_and(|line| line.contains("-Shared=0")));
    }
}
