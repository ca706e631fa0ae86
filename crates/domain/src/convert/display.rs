//! Graphics card, keyboards and tablets.

use kubevirt_api::vmi::devices::{InputBus, InputType};

use super::Conversion;
use crate::domain::Architecture;
use crate::domain::devices::{Graphics, Input, Video};
use crate::pci::Role;

/// Display over VNC, unless the VMI wants none.
pub(super) fn graphics(c: &mut Conversion<'_>) -> Option<Graphics> {
    if !has_graphics(c) {
        return None;
    }
    let video = video(c);
    let on_bus = !matches!(video, Video::Ramfb | Video::None);
    Some(Graphics {
        socket: c.layout.machine(c.uid(), "virt-vnc"),
        video,
        address: on_bus.then(|| c.place("spec.domain.devices.video", Role::Video)),
    })
}

/// Keyboards and tablets: those asked for, and those an architecture's display needs.
pub(super) fn inputs(c: &mut Conversion<'_>) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut virtio = 0;
    for (index, input) in c.spec.devices.inputs.iter().flatten().enumerate() {
        let field = format!("spec.domain.devices.inputs[{index}]");
        let keyboard = match &input.type_ {
            InputType::Tablet => false,
            InputType::Keyboard => true,
            InputType::Other(other) => {
                c.unsupported(format!("{field}.type"), format_args!("{other:?} is not known"));
                continue;
            }
        };
        let on_virtio = match &input.bus {
            Some(InputBus::Virtio) => true,
            Some(InputBus::Other(other)) if !other.is_empty() => {
                c.unsupported(format!("{field}.bus"), format_args!("{other:?} is not known"));
                continue;
            }
            _ => c.architecture == Architecture::S390x,
        };
        if on_virtio && virtio == 8 {
            c.unsupported(&*field, "there are at most eight virtio inputs");
            continue;
        }
        let address = on_virtio.then(|| c.place(&field, Role::Input(virtio)));
        virtio += u32::from(on_virtio);
        inputs.push(Input { name: input.name.clone(), keyboard, address });
    }
    if has_graphics(c) {
        of_architecture(c, &mut inputs, virtio);
    }
    inputs
}

fn of_architecture(c: &mut Conversion<'_>, inputs: &mut Vec<Input>, virtio: u32) {
    let keyboard = |address| Input { name: "keyboard".into(), keyboard: true, address };
    match c.architecture {
        Architecture::Amd64 => {}
        Architecture::Arm64 => {
            if inputs.iter().all(|input| input.keyboard) {
                inputs.push(Input { name: "tablet".into(), keyboard: false, address: None });
            }
            inputs.push(keyboard(None));
        }
        Architecture::S390x => {
            let address = c.place("spec.domain.devices.inputs", Role::Input(virtio));
            inputs.push(keyboard(Some(address)));
        }
    }
}

fn has_graphics(c: &Conversion<'_>) -> bool {
    c.spec.devices.autoattach_graphics_device != Some(false)
}

fn video(c: &mut Conversion<'_>) -> Video {
    let field = "spec.domain.devices.video.type";
    let asked = c.spec.devices.video.as_ref().and_then(|video| video.type_.as_deref());
    let video = match asked.unwrap_or("") {
        "" if c.architecture != Architecture::Amd64 => Video::Virtio,
        "" if c.host.bochs_for_efi && c.is_efi() => Video::Bochs,
        "" | "vga" => Video::Vga,
        "bochs" => Video::Bochs,
        "virtio" => Video::Virtio,
        "ramfb" => Video::Ramfb,
        "cirrus" => Video::Cirrus,
        "qxl" => Video::Qxl,
        "none" => Video::None,
        other => {
            c.unsupported(field, format_args!("{other:?} is not known"));
            Video::None
        }
    };
    if c.architecture == Architecture::S390x && !matches!(video, Video::Virtio | Video::None) {
        c.unsupported(field, "s390x has virtio graphics only");
    }
    video
}
