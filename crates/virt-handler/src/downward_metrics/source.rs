//! One machine, as the one who tells its guest of it sees it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_host::inside::{Inside, Kind};
use kubevirt_launcher_rpc::LAUNCHER_SOCKET;
use kubevirt_launcher_rpc::cmd::EmptyRequest;
use rustix::fs::OFlags;
use tokio::net::UnixStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::Shared;
use super::host::Host;
use super::report::report;
use crate::domains::Owner;
use crate::launchers::{Contact, Launcher};
use crate::metrics;
use crate::prepare::Place;

/// How long a launcher may take. What it says later is of the past.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a QEMU is called whose launcher does not say which it is.
const UNKNOWN_PRODUCT: &str = "qemu-unknown";

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
pub enum Nothing {
    /// The launcher is not there.
    #[error("the launcher does not answer")]
    Unreachable,
    /// It says no more than that.
    #[error("the launcher says: {0}")]
    Refused(String),
    /// It has no machine.
    #[error("there is no machine")]
    NoMachine,
    /// The pod's files cannot be used.
    #[error(transparent)]
    Files(#[from] io::Error),
}

/// One machine.
pub struct Source {
    shared: Arc<Shared>,
    owner: Owner,
    /// What runs it, which does not change.
    product: OnceCell<String>,
}

impl Source {
    /// The machine of this owner.
    pub fn new(shared: Arc<Shared>, owner: Owner) -> Self {
        Self { shared, owner, product: OnceCell::new() }
    }

    /// Whose machine it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What there is to tell just now.
    pub async fn document(&self) -> Result<String, Nothing> {
        let Contact::Connected(launcher) = self.shared.launchers.contact(&self.owner.uid) else {
            return Err(Nothing::Unreachable);
        };
        let asked = async {
            let product = self.product.get_or_try_init(|| product(&launcher)).await?;
            let stats = metrics::stats(&mut launcher.commands()).await;
            let stats = stats.map_err(|error| Nothing::Refused(error.to_string()))?;
            Ok::<_, Nothing>((product, stats.ok_or(Nothing::NoMachine)?))
        };
        let (product, stats) = timeout(PATIENCE, asked).await.map_err(|_| Nothing::Unreachable)??;
        let host = blocking(|| Ok(Host::ask(Path::new("/proc"), Path::new("/sys")))).await?;
        Ok(report(&self.shared.node, product, &stats, &host))
    }

    /// Opens the disk. It is the pod's, who may have put anything in its place.
    pub async fn disk(&self) -> io::Result<File> {
        open(&self.find(self.shared.layout.downward_metrics_disk()).await?)
    }

    /// Connects to the channel, at which QEMU listens.
    pub async fn channel(&self) -> io::Result<UnixStream> {
        let socket = self.find(self.shared.layout.downward_metrics_channel()).await?;
        UnixStream::connect(socket.path()).await
    }

    async fn find(&self, file: String) -> io::Result<Inside> {
        let (shared, pod) = (self.shared.clone(), &self.owner.pod);
        let sockets = shared.launchers.folders().sockets(pod).ok_or(io::ErrorKind::InvalidInput)?;
        let place = Place::seek(pod, sockets.join(LAUNCHER_SOCKET), &shared.folders).await;
        let place = place.map_err(io::Error::other)?;
        blocking(move || inside(place.root(), &shared.layout.private, &file)).await
    }
}

/// A file of the launcher's private folder. Links of the image lead there; none may be in it, where the launcher writes.
fn inside(root: &Inside, private: &str, file: &str) -> io::Result<Inside> {
    let file = Path::new(file).strip_prefix(private).map_err(io::Error::other)?;
    root.in_root(private)?.beneath(file)
}

fn open(disk: &Inside) -> io::Result<File> {
    if disk.kind()? != Kind::File {
        let problem = format!("{} is no file", disk.shown().display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    disk.open(OFlags::WRONLY)
}

async fn product(launcher: &Launcher) -> Result<String, Nothing> {
    match launcher.commands().get_qemu_version(EmptyRequest {}).await {
        Ok(answer) => Ok(Some(answer.into_inner().version).filter(|name| !name.is_empty())),
        // Launchers are as old as their machines.
        Err(status) if status.code() == tonic::Code::Unimplemented => Ok(None),
        Err(status) => Err(Nothing::Refused(status.message().to_owned())),
    }
    .map(|name| name.unwrap_or_else(|| UNKNOWN_PRODUCT.to_owned()))
}

/// Does what may take a while where nobody waits for it.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use kubevirt_disk_image::{create_metrics_disk, read_metrics, write_metrics};
    use kubevirt_domain::Layout;

    use super::*;
    use crate::testing::Folder;

    /// A launcher's root folder with a disk in it, and where that is.
    fn root(folder: &Folder) -> (Inside, PathBuf) {
        let root = folder.path().join("root");
        let disk = root.join("run/kubevirt-private/downwardapi-disks/vhostmd0");
        create_metrics_disk(&disk).unwrap();
        std::fs::create_dir_all(root.join("var")).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        (Inside::folder(&root).unwrap(), disk)
    }

    fn find(root: &Inside) -> io::Result<File> {
        let layout = Layout::default();
        open(&inside(root, &layout.private, &layout.downward_metrics_disk())?)
    }

    #[test]
    fn a_disk_is_found_and_written() {
        let folder = Folder::new();
        let (root, path) = root(&folder);
        let disk = find(&root).unwrap();
        for text in ["<metrics>1</metrics>\n", "<metrics>2</metrics>\n"] {
            write_metrics(&disk, text).unwrap();
            assert_eq!(read_metrics(&File::open(&path).unwrap()).unwrap().unwrap(), text);
        }
    }

    #[test]
    fn whatever_is_in_its_place_is_left_alone() {
        let folder = Folder::new();
        let (root, disk) = root(&folder);
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::fs::remove_file(&disk).unwrap();
        assert!(find(&root).is_err(), "it is gone");
        for target in [victim.clone(), "../victim".into(), "/victim".into()] {
            symlink(&target, &disk).unwrap();
            assert!(find(&root).unwrap_err().to_string().contains("link"), "{}", target.display());
            std::fs::remove_file(&disk).unwrap();
        }
        let listener = UnixListener::bind(&disk).unwrap();
        assert!(find(&root).unwrap_err().to_string().contains("no file"));
        drop(listener);
        std::fs::remove_file(&disk).unwrap();
        std::fs::create_dir(&disk).unwrap();
        assert!(find(&root).unwrap_err().to_string().contains("no file"));
        // A folder on the way may be a link as well.
        let above = disk.parent().unwrap();
        std::fs::remove_dir_all(above).unwrap();
        symlink(folder.path(), above).unwrap();
        assert!(find(&root).unwrap_err().to_string().contains("link"));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
