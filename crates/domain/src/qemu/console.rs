//! Serial console and channels: everything with a character stream behind a Unix socket.

use super::args::{Args, Object, escape, virtio};
use crate::domain::{Architecture, Domain};

/// A character stream on a Unix socket that QEMU listens on.
pub(super) fn listen(args: &mut Args, id: &str, path: &str, log: Option<&str>) {
    let log = log.map(|file| format!(",logfile={},logappend=on", escape(file))).unwrap_or_default();
    args.option("-chardev", format!("socket,id={id},path={},server=on,wait=off{log}", escape(path)));
}

/// A character stream on a Unix socket that another process listens on.
pub(super) fn connect(args: &mut Args, id: &str, path: &str) {
    args.option("-chardev", format!("socket,id={id},path={}", escape(path)));
}

pub(super) fn add(domain: &Domain, args: &mut Args) {
    if let Some(console) = &domain.devices.console {
        listen(args, "charserial0", &console.socket, console.log.as_deref());
        match domain.machine.architecture {
            Architecture::Amd64 => {
                let serial =
                    Object::device("isa-serial", "serial0").with("chardev", "charserial0").with("index", 0);
                args.device(&serial);
            }
            Architecture::Arm64 => args.option("-serial", "chardev:charserial0"),
            Architecture::S390x => {
                args.device(&Object::device("sclpconsole", "serial0").with("chardev", "charserial0"));
            }
        }
    }
    let Some(address) = domain.devices.serial_bus else { return };
    args.device(&virtio(domain, "serial", "virtio-serial0").at(address));
    for (index, channel) in domain.devices.channels.iter().enumerate() {
        let id = format!("charchannel{index}");
        listen(args, &id, &channel.socket, None);
        let port = Object::device("virtserialport", format!("channel{index}"))
            .with("bus", "virtio-serial0.0")
            .with("nr", index + 1)
            .with("chardev", id)
            .with("name", channel.name.clone());
        args.device(&port);
    }
}
