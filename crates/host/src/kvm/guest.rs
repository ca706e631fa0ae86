//! A guest of one CPU and five pages: in long mode from its first instruction, without firmware or devices.
#![expect(
    unsafe_code,
    reason = "KVM is told the address of the guest's memory, and tells its errors in a union"
)]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvm_bindings::{
    KVM_API_VERSION, KVM_MAX_CPUID_ENTRIES, kvm_regs, kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use rustix::time::{ClockId, clock_gettime};

/// Where the guest's code starts; the three pages before it hold its page tables.
const CODE: u64 = 0x4000;

/// How the guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It wrote this to a port.
    Answered(u32),
    /// KVM gave up, with this number.
    InternalError(u32),
    /// The CPU refused to enter it, with this reason.
    EntryFailed(u64),
    /// It was stopped from outside.
    Stopped,
    /// Something else happened.
    Other(String),
}

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; 4096]);

/// A guest that is ready to run.
pub struct Guest {
    // Order matters: what uses the memory is closed before the memory is freed.
    cpu: VcpuFd,
    _machine: VmFd,
    _memory: Vec<Page>,
}

impl Guest {
    /// Makes a guest that will run this code, which must fit into a page.
    pub fn new(device: &Path, code: &[u8]) -> Result<Self, String> {
        let kvm = open(device)?;
        let memory = memory(code);
        let machine = kvm.create_vm().map_err(problem("a machine cannot be created"))?;
        let region = kvm_userspace_memory_region {
            slot: 0,
            flags: 0,
            guest_phys_addr: 0,
            memory_size: size_of_val(memory.as_slice()) as u64,
            userspace_addr: memory.as_ptr() as u64,
        };
        // SAFETY: the region is exactly the memory, which lives as long as the machine and which nobody else touches.
        unsafe { machine.set_user_memory_region(region) }.map_err(problem("a machine cannot have memory"))?;
        let cpu = machine.create_vcpu(0).map_err(problem("a CPU cannot be created"))?;
        set_up(&kvm, &cpu).map_err(problem("a CPU cannot be set up"))?;
        Ok(Self { cpu, _machine: machine, _memory: memory })
    }

    /// Runs until the guest ends or `stop` is set and a signal arrives; says also what CPU time it took.
    pub fn run(&mut self, stop: &AtomicBool) -> (Exit, Duration) {
        let begun = cpu_time();
        let exit = loop {
            match self.cpu.run() {
                Err(error) if error.errno() == libc::EINTR && !stop.load(Ordering::SeqCst) => {}
                Err(error) if error.errno() == libc::EINTR => break Exit::Stopped,
                Err(error) => break Exit::Other(format!("it cannot run: {error}")),
                Ok(VcpuExit::InternalError) => break Exit::InternalError(self.internal_error()),
                Ok(VcpuExit::FailEntry(reason, _)) => break Exit::EntryFailed(reason),
                Ok(VcpuExit::IoOut(_, data)) => break answer(data),
                Ok(other) => break Exit::Other(format!("{other:?}")),
            }
        };
        (exit, cpu_time().saturating_sub(begun))
    }

    fn internal_error(&mut self) -> u32 {
        // SAFETY: KVM fills this member of the union when it ends a run with an internal error; any bits are a number.
        unsafe { self.cpu.get_kvm_run().__bindgen_anon_1.internal.suberror }
    }
}

fn problem<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}

fn open(device: &Path) -> Result<Kvm, String> {
    let path = CString::new(device.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let kvm = Kvm::new_with_path(path).map_err(problem("it cannot be opened"))?;
    let version = kvm.get_api_version();
    if version != KVM_API_VERSION as i32 {
        return Err(format!("it has version {version} of the interface, not {KVM_API_VERSION}"));
    }
    Ok(kvm)
}

fn answer(data: &[u8]) -> Exit {
    match <[u8; 4]>::try_from(data) {
        Ok(bytes) => Exit::Answered(u32::from_le_bytes(bytes)),
        Err(_) => Exit::Other(format!("it wrote {} bytes to a port", data.len())),
    }
}

/// An unused page, three levels of page tables that map the first 2 MiB to itself, and the code.
fn memory(code: &[u8]) -> Vec<Page> {
    const PRESENT_WRITABLE_USED: u64 = 0x23;
    const LARGE_DIRTY: u64 = 0xc0;
    let mut pages = vec![Page([0; 4096]); 5];
    for (page, entry) in [
        (1, 0x2000 | PRESENT_WRITABLE_USED),
        (2, 0x3000 | PRESENT_WRITABLE_USED),
        (3, LARGE_DIRTY | PRESENT_WRITABLE_USED),
    ] {
        pages[page].0[..8].copy_from_slice(&u64::to_le_bytes(entry));
    }
    pages[4].0[..code.len()].copy_from_slice(code);
    pages
}

/// Puts the CPU into long mode with SSE, with the abilities that any guest gets.
fn set_up(kvm: &Kvm, cpu: &VcpuFd) -> Result<(), kvm_ioctls::Error> {
    cpu.set_cpuid2(&kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)?)?;
    let mut registers = cpu.get_sregs()?;
    registers.cr0 = 0x8000_0033; // paging, native FPU errors, FPU present, protected mode
    registers.cr3 = 0x1000;
    registers.cr4 = 0x620; // SSE, its exceptions, wide page tables
    registers.efer = 0x500; // long mode, on and active
    let code = kvm_segment {
        limit: u32::MAX,
        selector: 8,
        type_: 11,
        present: 1,
        s: 1,
        l: 1,
        g: 1,
        ..Default::default()
    };
    let data = kvm_segment { selector: 16, type_: 3, db: 1, l: 0, ..code };
    registers.cs = code;
    for segment in
        [&mut registers.ds, &mut registers.es, &mut registers.fs, &mut registers.gs, &mut registers.ss]
    {
        *segment = data;
    }
    cpu.set_sregs(&registers)?;
    cpu.set_regs(&kvm_regs { rip: CODE, rflags: 2, ..Default::default() })
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
