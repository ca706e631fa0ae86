//! Finding the instance that is asked for, its launcher and the sockets of its machine.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_host::inside::Inside;
use tokio::net::UnixStream;

use super::Desk;
use super::answers::Refusal;
use super::parameters::Subject;
use crate::launchers::folders::is_name;
use crate::launchers::{Contact, Launcher};
use crate::prepare::Place;

/// How often, and with which pause, a socket is tried whose owner is busy with others.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

impl Desk {
    /// The instance, which must be on this node.
    pub(super) fn vmi(&self, subject: &Subject) -> Result<Arc<VirtualMachineInstance>, Refusal> {
        let key = subject.key();
        let none = || Refusal::new(StatusCode::NOT_FOUND, format!("VMI {key} does not exist"));
        self.server.here.get(&key).ok_or_else(none)
    }

    /// The instance and its launcher.
    pub(super) fn launcher(
        &self,
        subject: &Subject,
    ) -> Result<(Arc<VirtualMachineInstance>, Launcher), Refusal> {
        let vmi = self.vmi(subject)?;
        let why = match self.server.launchers.contact(uid(&vmi)) {
            Contact::Connected(launcher) => return Ok((vmi, launcher)),
            Contact::None | Contact::Awaited => "its launcher has not answered yet".to_owned(),
            Contact::Lost(loss) => loss.to_string(),
        };
        Err(Refusal::failed(format!("VMI {} cannot be reached: {why}", subject.key())))
    }

    /// A socket of the instance's machine, by its name in the launcher's private folder.
    pub(super) async fn socket(&self, vmi: &VirtualMachineInstance, name: &str) -> Result<Socket, Refusal> {
        let uid = uid(vmi).to_owned();
        let owner = self.server.domains.owner(&uid);
        let owner = owner.ok_or_else(|| Refusal::bad("the pod of the instance is not known yet"))?;
        let sockets = self.server.launchers.folders().sockets(&owner.pod);
        let sockets = sockets.ok_or_else(|| Refusal::bad("the pod of the instance has no UID"))?;
        let (folders, private) = (self.server.folders.clone(), self.server.private.clone());
        let name = name.to_owned();
        let find = move || {
            let launcher = sockets.join(kubevirt_launcher_rpc::LAUNCHER_SOCKET);
            let place = Place::find(&owner.pod, &launcher, &folders).map_err(Refusal::bad)?;
            inside(place.root(), &private, &uid, &name).map_err(Refusal::bad)
        };
        tokio::task::spawn_blocking(find).await.map_err(Refusal::failed)?
    }
}

/// The UID of an instance; the API gives one to everybody.
pub(super) fn uid(vmi: &VirtualMachineInstance) -> &str {
    vmi.metadata.uid.as_deref().unwrap_or_default()
}

/// A socket that was found, whatever becomes of its name.
#[derive(Debug)]
pub(super) struct Socket(Inside);

impl Socket {
    /// Connects. QEMU takes one connection after the other where there can be only one.
    pub(super) async fn connect(&self) -> io::Result<UnixStream> {
        let mut tries = 1;
        loop {
            match UnixStream::connect(self.0.path()).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    let shown = self.0.shown().display();
                    return Err(io::Error::new(error.kind(), format!("{shown}: {error}")));
                }
                connected => return connected,
            }
        }
    }

    #[cfg(test)]
    pub(super) fn of(folder: &Path, name: &str) -> Self {
        Self(Inside::folder(folder).and_then(|folder| folder.beneath(name)).unwrap())
    }
}

/// Links of the image lead to the private folder, such as `/var/run`; none may be in it, where the launcher writes.
fn inside(root: &Inside, private: &Path, uid: &str, name: &str) -> io::Result<Socket> {
    if !is_name(uid) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{uid:?} is no UID")));
    }
    let folder = root.in_root(private)?;
    Ok(Socket(folder.beneath(uid)?.beneath(name)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::testing::Folder;

    #[tokio::test]
    async fn sockets_are_found_without_being_misled() {
        let folder = Folder::new();
        let root = folder.path().join("root");
        let private = root.join("run/kubevirt-private/1234");
        std::fs::create_dir_all(&private).unwrap();
        std::fs::create_dir_all(root.join("var")).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        let _listener = UnixListener::bind(private.join("virt-serial0")).unwrap();
        let _outside = UnixListener::bind(folder.path().join("outside")).unwrap();
        symlink(folder.path().join("outside"), private.join("virt-vnc")).unwrap();
        symlink("virt-serial0", private.join("virt-usbredir-0")).unwrap();
        std::fs::write(private.join("virt-usbredir-1"), "").unwrap();
        let root = Inside::folder(&root).unwrap();
        let find = |uid: &str, name: &str| inside(&root, Path::new("/var/run/kubevirt-private"), uid, name);
        assert!(find("1234", "virt-serial0").unwrap().connect().await.is_ok());
        assert!(find("1234", "virt-vnc").unwrap_err().to_string().contains("link"));
        assert!(find("1234", "virt-usbredir-0").unwrap_err().to_string().contains("link"));
        assert!(find("1234", "virt-usbredir-1").unwrap().connect().await.is_err(), "a file is no socket");
        assert!(find("1234", "virt-usbredir-2").is_err());
        assert!(find("4321", "virt-serial0").is_err());
        assert!(find("../kubevirt-private/1234", "virt-serial0").is_err());
        assert!(find("", "virt-serial0").is_err());
    }
}
