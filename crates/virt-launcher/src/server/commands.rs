//! Each command of the protocol, handed on.

use std::pin::Pin;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::cmd::cmd_server::Cmd;
use kubevirt_launcher_rpc::cmd::{self, EmptyRequest, Response, VirtualMachineOptions, VmiRequest};
use tonic::{Request, Status};

use super::Commands;
use super::answer::{done, json, split};
use crate::error::CommandError;

type Answer<T> = Result<tonic::Response<T>, Status>;

/// What a method of the trait returns; written out where a macro makes the method.
type Later<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>>;

impl Commands {
    /// The VMI of a request.
    fn vmi(&self, vmi: Option<&cmd::Vmi>) -> Result<VirtualMachineInstance, CommandError> {
        self.launcher.read_vmi(vmi.map(|vmi| vmi.vmi_json.as_slice()).unwrap_or_default())
    }

    /// The VMI of a request and what the handler adds to it.
    fn wish(
        &self,
        request: VmiRequest,
    ) -> Result<(VirtualMachineInstance, VirtualMachineOptions), CommandError> {
        Ok((self.vmi(request.vmi.as_ref())?, request.options.unwrap_or_default()))
    }
}

/// A command for the machine that the request names, without further arguments.
macro_rules! verbs {
    ($($command:ident => $verb:ident),* $(,)?) => {
        $(fn $command<'a, 'b>(&'a self, request: Request<VmiRequest>) -> Later<'b, Response>
        where
            'a: 'b,
        {
            Box::pin(async move {
                tracing::info!(command = stringify!($verb), "the handler asks");
                let outcome = match self.vmi(request.into_inner().vmi.as_ref()) {
                    Ok(_) => self.launcher.$verb().await,
                    Err(error) => Err(error),
                };
                Ok(done(outcome).into())
            })
        })*
    };
}

/// A command that takes the VMI and what the handler adds to it.
macro_rules! wishes {
    ($($command:ident => $wish:ident),* $(,)?) => {
        $(fn $command<'a, 'b>(&'a self, request: Request<VmiRequest>) -> Later<'b, Response>
        where
            'a: 'b,
        {
            Box::pin(async move {
                let outcome = match self.wish(request.into_inner()) {
                    Ok((vmi, options)) => self.launcher.$wish(&vmi, &options).await,
                    Err(error) => Err(error),
                };
                Ok(done(outcome).into())
            })
        })*
    };
}

/// A question whose answer is a JSON text.
macro_rules! questions {
    ($($command:ident => $question:ident -> $answer:ident . $field:ident),* $(,)?) => {
        $(fn $command<'a, 'b>(&'a self, _: Request<EmptyRequest>) -> Later<'b, cmd::$answer>
        where
            'a: 'b,
        {
            Box::pin(async move {
                let (response, text) = json(self.launcher.$question().await);
                Ok(cmd::$answer { response: Some(response), $field: text }.into())
            })
        })*
    };
}

#[tonic::async_trait]
impl Cmd for Commands {
    verbs! {
        pause_virtual_machine => pause,
        unpause_virtual_machine => unpause,
        unfreeze_virtual_machine => unfreeze,
        reset_virtual_machine => reset,
        soft_reboot_virtual_machine => soft_reboot,
        shutdown_virtual_machine => shut_down,
        kill_virtual_machine => kill,
        delete_virtual_machine => delete,
        cancel_virtual_machine_migration => cancel_migration,
    }

    wishes! {
        sync_virtual_machine => sync,
        sync_migration_target => prepare_target,
        finalize_virtual_machine_migration => finalize_migration,
        signal_target_pod_cleanup => dismiss_target,
        hotplug_host_devices => plug_host_devices,
        sync_virtual_machine_cp_us => sync_cpus,
        sync_virtual_machine_memory => sync_memory,
    }

    questions! {
        get_domain_stats => stats -> DomainStatsResponse.domain_stats,
        get_guest_info => guest_info -> GuestInfoResponse.guest_info_response,
        get_users => guest_users -> GuestUserListResponse.guest_user_list_response,
        get_filesystems => guest_filesystems -> GuestFilesystemsResponse.guest_filesystems_response,
    }

    async fn ping(&self, _: Request<EmptyRequest>) -> Answer<Response> {
        Ok(done(self.launcher.check().await).into())
    }

    async fn get_domain(&self, _: Request<EmptyRequest>) -> Answer<cmd::DomainResponse> {
        let (response, domain) = match self.launcher.domain_report() {
            Some(report) => json(Ok(report)),
            None => (done(Ok(())), String::new()),
        };
        Ok(cmd::DomainResponse { response: Some(response), domain }.into())
    }

    async fn get_qemu_version(&self, _: Request<EmptyRequest>) -> Answer<cmd::QemuVersionResponse> {
        let (response, version) = split(self.launcher.qemu_version().await);
        let version = version.unwrap_or_default();
        Ok(cmd::QemuVersionResponse { response: Some(response), version }.into())
    }

    async fn freeze_virtual_machine(&self, request: Request<cmd::FreezeRequest>) -> Answer<Response> {
        let request = request.into_inner();
        let outcome = match self.vmi(request.vmi.as_ref()) {
            Ok(_) => self.launcher.freeze(request.unfreeze_timeout_seconds).await,
            Err(error) => Err(error),
        };
        Ok(done(outcome).into())
    }

    async fn exec(&self, request: Request<cmd::ExecRequest>) -> Answer<cmd::ExecResponse> {
        let (response, status) = split(self.launcher.exec(request.into_inner()).await);
        let (exit_code, std_out) = status.unwrap_or_default();
        Ok(cmd::ExecResponse { response: Some(response), exit_code, std_out }.into())
    }

    async fn guest_ping(&self, request: Request<cmd::GuestPingRequest>) -> Answer<cmd::GuestPingResponse> {
        let response = done(self.launcher.guest_ping(request.into_inner().timeout_seconds).await);
        Ok(cmd::GuestPingResponse { response: Some(response) }.into())
    }

    async fn migrate_virtual_machine(&self, request: Request<cmd::MigrationRequest>) -> Answer<Response> {
        let request = request.into_inner();
        let outcome = match self.vmi(request.vmi.as_ref()) {
            Ok(vmi) => self.launcher.migrate(&vmi, &request.options).await,
            Err(error) => Err(error),
        };
        Ok(done(outcome).into())
    }

    async fn virtual_machine_memory_dump(
        &self,
        request: Request<cmd::MemoryDumpRequest>,
    ) -> Answer<Response> {
        let request = request.into_inner();
        let outcome = match self.vmi(request.vmi.as_ref()) {
            Ok(_) => self.launcher.dump_memory(&request.dump_path).await,
            Err(error) => Err(error),
        };
        Ok(done(outcome).into())
    }

    async fn get_screenshot(&self, request: Request<VmiRequest>) -> Answer<cmd::ScreenshotResponse> {
        let (response, image) = split(self.launcher.screenshot(request.into_inner().move_cursor).await);
        let (mime, data) = image.unwrap_or_default();
        Ok(cmd::ScreenshotResponse { response: Some(response), mime, data }.into())
    }

    async fn get_sev_info(&self, _: Request<EmptyRequest>) -> Answer<cmd::SevInfoResponse> {
        let (response, info) = json(self.launcher.sev_info().await);
        Ok(cmd::SevInfoResponse { response: Some(response), sev_info: info.into_bytes() }.into())
    }

    async fn get_launch_measurement(&self, _: Request<VmiRequest>) -> Answer<cmd::LaunchMeasurementResponse> {
        let (response, told) = json(self.launcher.launch_measurement().await);
        let launch_measurement = told.into_bytes();
        Ok(cmd::LaunchMeasurementResponse { response: Some(response), launch_measurement }.into())
    }

    async fn inject_launch_secret(
        &self,
        request: Request<cmd::InjectLaunchSecretRequest>,
    ) -> Answer<Response> {
        let outcome = self.launcher.inject_launch_secret(&request.into_inner().options).await;
        Ok(done(outcome).into())
    }

    async fn get_domain_dirty_rate_stats(
        &self,
        _: Request<EmptyRequest>,
    ) -> Answer<cmd::DirtyRateStatsResponse> {
        let (response, rate) = split(self.launcher.dirty_rate().await);
        let dirty_rate_mbs = rate.unwrap_or_default();
        Ok(cmd::DirtyRateStatsResponse { response: Some(response), dirty_rate_mbs }.into())
    }

    async fn get_vm_stats(&self, request: Request<cmd::VmStatsRequest>) -> Answer<cmd::VmStatsResponse> {
        Ok(self.launcher.vm_stats(request.into_inner()).await.into())
    }

    async fn backup_virtual_machine(&self, request: Request<cmd::BackupRequest>) -> Answer<Response> {
        let outcome = self.launcher.back_up(&request.into_inner().options).await;
        Ok(done(outcome).into())
    }

    async fn redefine_checkpoint(
        &self,
        request: Request<cmd::RedefineCheckpointRequest>,
    ) -> Answer<cmd::RedefineCheckpointResponse> {
        let outcome = self.launcher.redefine_checkpoint(&request.into_inner().checkpoint).await;
        let (response, valid) = split(outcome);
        let checkpoint_invalid = valid == Some(false);
        Ok(cmd::RedefineCheckpointResponse { response: Some(response), checkpoint_invalid }.into())
    }
}
