//! Every command and every flag that users and scripts know, held to what is there, both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory};

use crate::commands::Command;
use crate::program::Program;
use crate::{Cli, dialect};

/// Commands and their flags; `=` takes a value, `=?` may take one, `/x` is the short form. Those of KubeVirt, and two of our own.
const COMMANDS: [(&str, &str); 55] = [
    ("addvolume", "bus= cache= disk-name= disk-type= dry-run persist serial= volume-name="),
    ("adm", ""),
    (
        "adm log-verbosity",
        "all=? reset virt-api=? virt-controller=? virt-handler=? virt-launcher=? virt-operator=?",
    ),
    ("completion", ""),
    ("completion bash", ""),
    ("completion fish", ""),
    ("completion powershell", ""),
    ("completion zsh", ""),
    ("console", "timeout="),
    ("create", ""),
    (
        "create clone",
        "annotation-filter= label-filter= name= new-mac-address= new-smbios-serial= source-name= source-type= \
         target-name= target-type= template-annotation-filter= template-label-filter=",
    ),
    ("create instancetype", "cpu= gpu= hostdevice= iothreadspolicy= memory= name= namespaced"),
    ("create preference", "cpu-topology= machine-type= name= namespaced volume-storage-class="),
    (
        "create vm",
        "access-cred= cloud-init= cloud-init-network-data= cloud-init-user-data= ga-manage-ssh=? infer-instancetype=? \
         infer-instancetype-from= infer-preference=? infer-preference-from= instancetype= memory= name= password-file= \
         preference= run-strategy= ssh-key= termination-grace-period= user= volume-blank= volume-clone-pvc= \
         volume-containerdisk= volume-datasource= volume-import= volume-pvc= volume-sysprep=",
    ),
    ("credentials", ""),
    ("credentials add-ssh-key", "create-secret file/f= force secret= update-secret user/u= value="),
    ("credentials remove-ssh-key", "file/f= force secret= user/u= value="),
    ("credentials set-password", "force password/p= secret= user/u="),
    ("evacuate-cancel", "dry-run"),
    ("expand", "file/f= output/o= vm="),
    (
        "expose",
        "cluster-ip= external-ip= ip-family= ip-family-policy= name= port= port-name= protocol= target-port= type=",
    ),
    ("fslist", ""),
    ("guestfs", "fsGroup= gid= image= kvm=? pull-policy= root uid= vm="),
    ("guestosinfo", ""),
    (
        "image-upload",
        "access-mode= archive-path= block-volume datasource default-instancetype= default-instancetype-kind= default-preference= \
         default-preference-kind= force-bind image-path= insecure no-create pvc-name= pvc-size= retry= size= storage-class= \
         uploadproxy-url= volume-mode= wait-secs=",
    ),
    (
        "memory-dump",
        "access-mode= claim-name= create-claim format= local-port= output= port-forward storage-class=",
    ),
    ("migrate", "addedNodeSelector= dry-run"),
    ("migrate-cancel", "dry-run"),
    ("objectgraph", "exclude-optional output/o= selector= vmi"),
    ("options", ""),
    ("pause", "dry-run"),
    ("permitted-devices", ""),
    ("port-forward", "address= stdio"),
    ("removevolume", "dry-run persist volume-name="),
    ("reset", ""),
    ("restart", "dry-run force grace-period="),
    ("scp", "identity-file/i= known-hosts= local-ssh-opts/t= port/p= preserve recursive/r username/l="),
    ("soft-reboot", ""),
    ("ssh", "command/c= identity-file/i= known-hosts= local-ssh-opts/t= port/p= username/l="),
    ("start", "dry-run paused"),
    ("stop", "dry-run force grace-period="),
    ("template", ""),
    ("template convert", "file/f= name= output/o="),
    ("template create", "name= vm-name= vm-namespace="),
    ("template process", "create file/f= local name= output/o= param/p= params-file= print-params"),
    ("top", "all-namespaces/A interval= once selector/l= sort-by="),
    ("unpause", "dry-run"),
    ("usbredir", "no-launch"),
    ("userlist", ""),
    ("version", "client/c"),
    (
        "vmexport",
        "annotations= delete-vme format= include-secret insecure keep-vme labels= local-port= manifest \
         manifest-output-format= output= port-forward pvc= readiness-timeout= retry= service-url= snapshot= ttl= vm= \
         vmtemplate= volume=",
    ),
    ("vnc", "address= port= preserve-session proxy-only vnc-path= vnc-type="),
    ("vnc screenshot", "file/f= move-cursor/m"),
    ("why", ""),
    (
        "",
        "as= as-group= as-uid= cache-dir= certificate-authority= client-certificate= client-key= cluster= context= \
         disable-compression insecure-skip-tls-verify kubeconfig= namespace/n= password= proxy-url= request-timeout= \
         server/s= tls-server-name= token= user= username= v/v=",
    ),
];

/// The flags of a command in the words of the table.
fn flags(command: &clap::Command) -> BTreeSet<String> {
    let named = command.get_arguments().filter_map(|argument| Some((argument, argument.get_long()?)));
    let words = named.map(|(argument, long)| {
        let short = argument.get_short().map(|short| format!("/{short}")).unwrap_or_default();
        let bare = argument.get_num_args().is_some_and(|values| values.min_values() == 0);
        let value = match argument.get_action() {
            ArgAction::SetTrue => "",
            _ if bare => "=?",
            _ => "=",
        };
        format!("{long}{short}{value}")
    });
    words.collect()
}

fn collect(command: &clap::Command, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    found.insert(path.to_owned(), flags(command));
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        collect(below, path.trim(), found);
    }
}

#[test]
fn every_command_has_its_flags_and_no_others() {
    let mut found = BTreeMap::new();
    collect(&Cli::command(), "", &mut found);
    let expected: BTreeMap<String, BTreeSet<String>> = COMMANDS
        .into_iter()
        .map(|(path, flags)| (path.to_owned(), flags.split_whitespace().map(str::to_owned).collect()))
        .collect();
    for (path, flags) in &found {
        assert_eq!(Some(flags), expected.get(path), "{path}");
    }
    for path in expected.keys() {
        assert!(found.contains_key(path), "{path} is missing");
    }
}

fn program() -> Program {
    Program::called(OsStr::new("kubectl-virt"))
}

fn parse(line: &str) -> Result<Cli, String> {
    let words: Vec<OsString> = std::iter::once("virtctl").chain(line.split(' ')).map(Into::into).collect();
    crate::parse(&program(), &words).map_err(|error| error.to_string())
}

#[test]
fn the_definitions_hold_together() {
    dialect::adapt(Cli::command(), &program()).debug_assert();
}

#[test]
fn command_lines_that_scripts_use_are_understood() {
    for line in [
        "start vm",
        "start vm --paused --dry-run",
        "start --paused=true vm -n ns",
        "start vm --dry-run=false --kubeconfig /a --context c",
        "--namespace ns start vm",
        "-n ns -s https://a:6443 start vm",
        "stop vm --force --grace-period 0",
        "stop vm --force=true --grace-period=-1",
        "stop vm --grace-period -1 --force",
        "restart vm --force --grace-period=0",
        "pause vm a",
        "unpause VirtualMachineInstance a --dry-run",
        "reset a",
        "soft-reboot a",
        "migrate a --addedNodeSelector a=b,c=d --addedNodeSelector e=f",
        "migrate-cancel a",
        "evacuate-cancel vmi a",
        "addvolume a --volume-name=v --serial=s --cache none --disk-type lun --bus scsi --persist",
        "removevolume a --volume-name v --persist=true",
        "guestosinfo a",
        "userlist a",
        "fslist a",
        "version",
        "version -c",
        "version --client=true",
        "console a",
        "console --timeout=1 a",
        "vnc a --proxy-only --port 5900 --address=0.0.0.0 --preserve-session",
        "vnc a --vnc-type tiger --vnc-path /opt/v",
        "vnc screenshot a -f - -m",
        "vnc -n ns screenshot a -f b",
        "vnc --kubeconfig /a screenshot a --file=b",
        "port-forward vmi/a 8080",
        "port-forward vm/a/ns tcp/8080:80 udp/53 --address ::1",
        "port-forward --stdio=true vmi/a/ns 22",
        "ssh me@vmi/a -i key -p 2222 -c ls -t -v",
        "ssh vmi/a --username=me --local-ssh-opts=-v --known-hosts= --command=ls",
        "scp -r a vmi/a:b --preserve",
        "usbredir 0951:1666 a",
        "usbredir a --no-launch",
        "adm log-verbosity --all",
        "adm log-verbosity --all=3 --virt-handler=7",
        "adm logVerbosity --reset",
        "completion bash",
        "permitted-devices",
        "options",
        "top -A --once --sort-by memory --interval=1 -l a=b",
        "why a",
        "start vm --as me --as-group a --as-group b --as-uid u --token t --request-timeout=30s -v 4",
        "start vm --insecure-skip-tls-verify --tls-server-name x --username u --password p --cache-dir /c --v=9",
        "start vm --certificate-authority a --client-certificate b --client-key c --cluster d --user e",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn mistakes_are_named() {
    for (line, named) in [
        ("start", "<VM>"),
        ("start a b", "'b'"),
        ("start a --dry", "--dry"),
        ("start a --dry-run=maybe", "true or false"),
        ("strat a", "start"),
        ("console a --timeout=soon", "soon"),
        ("vnc", "<VMI>"),
        ("vnc screenshot a", "--file"),
        ("addvolume a", "--volume-name"),
        ("port-forward vmi/a", "LOCAL"),
        ("migrate a --addedNodeSelector a", "key=value"),
        ("adm log-verbosity --virt-api=x", "x"),
        ("start a --request-timeout=soon", "soon"),
        ("top --interval=0", "0"),
        ("usbredir a b c", "'c'"),
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn an_empty_name_is_a_mistake() {
    for words in [
        vec!["start", ""],
        vec!["stop", "", "--force", "--grace-period=0"],
        vec!["pause", "vm", ""],
        vec!["vnc", ""],
        vec!["vmexport", "delete", ""],
        vec!["port-forward", "vm/a", ""],
    ] {
        let line: Vec<OsString> = std::iter::once("virtctl").chain(words).map(Into::into).collect();
        let error = crate::parse(&program(), &line).unwrap_err().to_string();
        assert!(error.contains("a value is required"), "{line:?}: {error}");
    }
}

#[test]
fn flags_without_a_command_ask_for_help() {
    for (line, expected) in [
        ("--v=2", Some("Usage: kubectl virt <COMMAND>")),
        ("create -n ns", Some("Usage: kubectl virt create <COMMAND>")),
        ("adm --kubeconfig a", Some("Usage: kubectl virt adm <COMMAND>")),
        ("strat", None),
        ("vnc -n ns", None),
    ] {
        let words: Vec<OsString> =
            std::iter::once("virtctl").chain(line.split(' ')).map(Into::into).collect();
        let error = crate::parse(&program(), &words).unwrap_err();
        let help = (error.kind() == ErrorKind::MissingSubcommand)
            .then(|| dialect::help_instead(dialect::adapt(Cli::command(), &program()), &program(), &error));
        let help = help.flatten();
        assert_eq!(help.is_some(), expected.is_some(), "{line}: {error}");
        assert!(help.unwrap_or_default().contains(expected.unwrap_or_default()), "{line}");
    }
}

#[test]
fn a_flag_of_a_command_is_not_one_of_the_cluster() {
    let cli = parse("ssh --username jdoe vmi/a --user admin").unwrap();
    assert_eq!((cli.cluster.username, cli.cluster.user.as_deref()), (None, Some("admin")));
    let Command::Ssh(_) = cli.command else { panic!("not ssh") };
    let cli = parse("start a --username admin").unwrap();
    assert_eq!(cli.cluster.username.as_deref(), Some("admin"));
}

#[test]
fn the_last_of_a_repeated_flag_counts_and_lists_are_collected() {
    let cli = parse("-n a start vm -n b --namespace=c --as-group d --as-group e").unwrap();
    assert_eq!(cli.cluster.namespace.as_deref(), Some("c"));
    assert_eq!(cli.cluster.as_group, ["d", "e"]);

    let line = "virtctl ssh vm/a -p 1 --port=2 -t -v -t -A --known-hosts=b --known-hosts=c";
    let matches = dialect::adapt(Cli::command(), &program()).get_matches_from(line.split(' '));
    let ssh = matches.subcommand_matches("ssh").unwrap();
    assert_eq!(ssh.get_one::<u16>("port"), Some(&2));
    assert_eq!(ssh.get_one::<String>("known_hosts").map(String::as_str), Some("c"));
    let options: Vec<&String> = ssh.get_many("local_ssh_opts").unwrap().collect();
    assert_eq!(options, ["-v", "-A"]);

    let switched = |line: &str| {
        let matches = dialect::adapt(Cli::command(), &program()).get_matches_from(line.split(' '));
        matches.subcommand_matches("start").and_then(|start| start.get_one::<bool>("dry_run").copied())
    };
    assert_eq!(switched("virtctl start vm --dry-run --dry-run=false"), Some(false));
    assert_eq!(switched("virtctl start vm --dry-run=false --dry-run"), Some(true));
}

#[test]
fn a_namespace_may_say_what_it_is() {
    for (given, expected) in [
        ("a", Some("a")),
        ("ns/a", Some("a")),
        ("namespace/a", Some("a")),
        ("Namespaces/a", Some("a")),
        ("ns/", Some("ns/")),
        ("pod/a", Some("pod/a")),
        ("", None),
    ] {
        let cli = parse(&format!("start vm --namespace={given}")).unwrap();
        assert_eq!(cli.cluster.namespace.as_deref(), expected, "{given}");
    }
}

#[test]
fn every_switch_knows_the_words_of_scripts() {
    for (line, expected) in [
        ("guestfs pvc", Some(true)),
        ("guestfs pvc --kvm", Some(true)),
        ("guestfs pvc --kvm=False", Some(false)),
        ("guestfs pvc --kvm=0", Some(false)),
        ("guestfs pvc --kvm=no", None),
    ] {
        let kvm = parse(line).ok().map(|cli| match cli.command {
            Command::Guestfs(guestfs) => guestfs.kvm,
            other => panic!("{other:?}"),
        });
        assert_eq!(kvm, expected, "{line}");
    }
    assert!(parse("create vm --infer-instancetype=T --ga-manage-ssh=1").is_ok());
}

#[test]
fn a_value_may_look_like_a_flag() {
    let line = "virtctl credentials set-password vm -u me -p --secret --force";
    let matches = dialect::adapt(Cli::command(), &program()).get_matches_from(line.split(' '));
    let set = matches
        .subcommand_matches("credentials")
        .and_then(|matches| matches.subcommand_matches("set-password"));
    let set = set.unwrap();
    assert_eq!(set.get_one::<String>("password").map(String::as_str), Some("--secret"));
    assert_eq!(set.get_one::<bool>("force"), Some(&true));
}

#[test]
fn an_empty_flag_of_the_cluster_is_none() {
    let strings = "context cluster user namespace server token as as-uid certificate-authority client-certificate \
                   client-key tls-server-name proxy-url username password kubeconfig cache-dir";
    let empty: Vec<String> = strings.split_whitespace().map(|flag| format!("--{flag}=")).collect();
    let cli = parse(&format!("start vm {}", empty.join(" "))).unwrap();
    assert_eq!(format!("{:?}", cli.cluster), format!("{:?}", parse("start vm").unwrap().cluster));
}

#[test]
fn help_names_the_program_as_it_was_called() {
    let help = parse("start --help").unwrap_err();
    assert!(help.contains("Usage: kubectl virt start"), "{help}");
    assert!(help.contains("  kubectl virt start myvm"), "{help}");
    assert!(help.contains("kubectl virt options"), "{help}");
    assert!(!help.contains("kubeconfig") && !help.contains("{program}"), "{help}");
    let mut command = dialect::adapt(Cli::command(), &program());
    let all = command.render_long_help().to_string();
    assert!(all.contains("soft-reboot") && all.contains("why"), "{all}");
}
