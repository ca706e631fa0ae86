//! The flags of `create vm`.

use std::path::PathBuf;

/// Write the manifest of a VirtualMachine.
///
/// Volumes boot in this order unless a boot order is given: container disks, claims, data sources, cloned claims,
/// blank volumes, imported volumes.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the VM; a random one if left out
    #[arg(long)]
    pub name: Option<String>,
    /// When the VM runs: Always, Manual, Halted, Once or RerunOnFailure
    #[arg(long, default_value = "Always")]
    pub run_strategy: String,
    /// Seconds that the guest has to shut down
    #[arg(long, default_value_t = 180, value_name = "SECONDS")]
    pub termination_grace_period: i64,
    /// Memory of the VM; 512Mi if nothing else says how much
    #[arg(long, value_name = "QUANTITY", conflicts_with_all = ["instancetype", "infer_instancetype", "infer_instancetype_from"])]
    pub memory: Option<String>,
    /// Instance type of the VM, as NAME or KIND/NAME
    #[arg(long, conflicts_with_all = ["infer_instancetype", "infer_instancetype_from"])]
    pub instancetype: Option<String>,
    /// Infer the instance type from the disk that boots first; tried in any case, and an error if asked for and
    /// impossible
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", conflicts_with = "infer_instancetype_from")]
    pub infer_instancetype: Option<bool>,
    /// Infer the instance type from this volume
    #[arg(long, value_name = "VOLUME")]
    pub infer_instancetype_from: Option<String>,
    /// Preference of the VM, as NAME or KIND/NAME
    #[arg(long, conflicts_with_all = ["infer_preference", "infer_preference_from"])]
    pub preference: Option<String>,
    /// Infer the preference from the disk that boots first; tried in any case, and an error if asked for and
    /// impossible
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", conflicts_with = "infer_preference_from")]
    pub infer_preference: Option<bool>,
    /// Infer the preference from this volume
    #[arg(long, value_name = "VOLUME")]
    pub infer_preference_from: Option<String>,
    /// Container disk of the VM; may be given several times. Parameters: name, src, bootorder
    #[arg(long, value_name = "PARAMS")]
    pub volume_containerdisk: Vec<String>,
    /// Claim that the VM uses as it is; may be given several times. Parameters: name, src, bootorder
    #[arg(long, value_name = "PARAMS")]
    pub volume_pvc: Vec<String>,
    /// Volume that is filled from a source; may be given several times. Parameters: type, name, size, bootorder, and
    /// for the types: blank; gcs: url, secretref; http: url, secretref, certconfigmap, extraheaders,
    /// secretextraheaders; imageio: url, diskid, secretref, certconfigmap; pvc, snapshot and ds: src; registry: url or
    /// imagestream, pullmethod, secretref, certconfigmap; s3: url, secretref, certconfigmap; vddk: url, uuid,
    /// thumbprint, secretref, backingfile, initimageurl
    #[arg(long, value_name = "PARAMS")]
    pub volume_import: Vec<String>,
    /// Answer file for the unattended set-up of Windows. Parameters: src, type (configmap or secret)
    #[arg(long, value_name = "PARAMS")]
    pub volume_sysprep: Option<String>,
    /// User that cloud-init sets up
    #[arg(long)]
    pub user: Option<String>,
    /// File with the password that cloud-init sets; it is readable in the VM's manifest
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// SSH keys that cloud-init authorizes; several with commas or several times
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    pub ssh_key: Vec<String>,
    /// Let cloud-init allow the guest agent to manage SSH keys, as `credentials add-ssh-key` and --access-cred need
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ga_manage_ssh: Option<bool>,
    /// Secret with SSH keys or passwords that are put into the guest; may be given several times. Parameters: type
    /// (ssh or password), src, method (ga, nocloud or configdrive), user
    #[arg(long, value_name = "PARAMS")]
    pub access_cred: Vec<String>,
    /// How cloud-init gets its data: nocloud, configdrive or none
    #[arg(long, value_name = "SOURCE")]
    pub cloud_init: Option<String>,
    /// User data for cloud-init, in base64
    #[arg(long, value_name = "BASE64", conflicts_with_all = ["user", "password_file", "ssh_key", "ga_manage_ssh"])]
    pub cloud_init_user_data: Option<String>,
    /// Network data for cloud-init, in base64
    #[arg(long, value_name = "BASE64")]
    pub cloud_init_network_data: Option<String>,
    /// Deprecated: --volume-import with type:ds
    #[arg(long, value_name = "PARAMS")]
    pub volume_datasource: Vec<String>,
    /// Deprecated: --volume-import with type:pvc
    #[arg(long, value_name = "PARAMS")]
    pub volume_clone_pvc: Vec<String>,
    /// Deprecated: --volume-import with type:blank
    #[arg(long, value_name = "PARAMS")]
    pub volume_blank: Vec<String>,
}

const EXAMPLES: &str = "  # A VM with a container disk, straight into the cluster
  {program} create vm --memory 1Gi --volume-containerdisk src:quay.io/containerdisks/fedora:latest | kubectl create -f -

  # A VM with an instance type of the cluster and one of its namespace
  {program} create vm --instancetype u1.small --preference fedora
  {program} create vm --instancetype virtualmachineinstancetype/mine

  # A VM with the disk of a data source, which also names instance type and preference, and an empty disk
  {program} create vm --volume-import type:ds,src:images/fedora --volume-import type:blank,size:50Gi

  # A VM that boots from a claim first
  {program} create vm --volume-containerdisk src:my/tools --volume-pvc src:my-disk,bootorder:1

  # A user with a key, and keys from a secret through the guest agent
  {program} create vm --user fedora --ssh-key \"$(cat ~/.ssh/id_ed25519.pub)\"
  {program} create vm --user fedora --access-cred type:ssh,src:my-keys";
