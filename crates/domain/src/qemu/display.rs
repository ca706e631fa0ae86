//! Graphics, VNC, sound, keyboards and tablets.

use super::args::{Args, Object, escape, modern};
use crate::domain::devices::Video;
use crate::domain::{Architecture, Domain};

/// Where sound goes: nowhere.
const AUDIO: &str = "audio0";

pub(super) fn add(domain: &Domain, args: &mut Args) {
    let devices = &domain.devices;
    if devices.graphics.is_some() || devices.sound.is_some() {
        args.object("-audiodev", &Object::default().with("id", AUDIO).with("driver", "none"));
    }
    if let Some(graphics) = &devices.graphics {
        args.option("-vnc", format!("unix:{},audiodev={AUDIO}", escape(&graphics.socket)));
        video(domain, args);
    } else {
        args.option("-display", "none");
    }
    sound(domain, args);
    for input in &devices.inputs {
        let id = format!("input-{}", input.name);
        let device = match (input.keyboard, input.address) {
            (true, None) => Object::device("usb-kbd", id).with("bus", "usb0.0"),
            (false, None) => Object::device("usb-tablet", id).with("bus", "usb0.0"),
            (true, Some(address)) => modern(domain, "virtio-keyboard", id).at(address),
            (false, Some(address)) => modern(domain, "virtio-tablet", id).at(address),
        };
        args.device(&device);
    }
}

fn video(domain: &Domain, args: &mut Args) {
    let Some(graphics) = &domain.devices.graphics else { return };
    let device = match graphics.video {
        Video::None => return,
        Video::Ramfb => Object::device("ramfb", "video0"),
        Video::Vga => Object::device("VGA", "video0").with("vgamem_mb", 16),
        Video::Bochs => Object::device("bochs-display", "video0"),
        Video::Cirrus => Object::device("cirrus-vga", "video0"),
        Video::Qxl => Object::device("qxl-vga", "video0"),
        Video::Virtio if domain.machine.architecture == Architecture::Amd64 => {
            Object::device("virtio-vga", "video0").with("max_outputs", 1)
        }
        Video::Virtio => modern(domain, "virtio-gpu", "video0").with("max_outputs", 1),
    };
    match graphics.address {
        Some(address) => args.device(&device.at(address)),
        None => args.device(&device),
    }
}

fn sound(domain: &Domain, args: &mut Args) {
    let Some(sound) = &domain.devices.sound else { return };
    if !sound.hda {
        return args.device(&Object::device("AC97", "sound0").at(sound.address).with("audiodev", AUDIO));
    }
    args.device(&Object::device("ich9-intel-hda", "sound0").at(sound.address));
    let codec = Object::device("hda-duplex", "sound0-codec0").with("bus", "sound0.0").with("cad", 0);
    args.device(&codec.with("audiodev", AUDIO));
}
