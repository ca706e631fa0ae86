//! The forms of a command line that users of virtctl know, where those of `clap` differ.
//!
//! A switch may be given a value (`--dry-run=false`), the last of a repeated flag counts, flags of the cluster may
//! stand anywhere, and a command may have a flag of its own by the name of one of those.

use std::any::TypeId;

use clap::builder::{NonEmptyStringValueParser, PossibleValue};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::cluster;
use crate::program::Program;

/// Where a text names the program.
const PROGRAM: &str = "{program}";
const HEADING: &str = "Examples";

/// Makes a command and all below it speak the dialect.
pub fn adapt(command: Command, program: &Program) -> Command {
    let options = format!("Use \"{0} options\" for a list of flags that every command takes.", program.name);
    let root = format!("Use \"{0} COMMAND --help\" for more about a command.\n{options}", program.name);
    each(command.bin_name(program.name.clone()).after_help(root), &program.name, &options)
        // Scripts add their flags after those of an alias. What makes a list of its values goes on to do so.
        .args_override_self(true)
        .infer_long_args(false)
        .infer_subcommands(false)
}

fn each(command: Command, name: &str, options: &str) -> Command {
    let mut command = command.mut_args(|argument| word(flag(switch(argument))));
    if let Some(examples) = command.get_after_help().map(ToString::to_string)
        && examples.contains(PROGRAM)
    {
        let examples = examples.replace(PROGRAM, name);
        command = command.after_help(format!("{HEADING}:\n{examples}\n\n{options}"));
    } else if command.get_after_help().is_none() {
        command = command.after_help(options.to_owned());
    }
    command.mut_subcommands(|below| each(below, name, options))
}

/// A switch takes no value, or one after an equals sign. One that may be on by itself says so in its definition.
fn switch(argument: Arg) -> Arg {
    if !matches!(argument.get_action(), ArgAction::SetTrue) {
        let is_switch =
            argument.get_possible_values().iter().map(PossibleValue::get_name).eq(["true", "false"]);
        return if is_switch { argument.value_parser(boolean) } else { argument };
    }
    argument
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .hide_default_value(true)
        .value_name("true|false")
        .value_parser(boolean)
}

/// What comes after a flag that needs a value is its value, also if it looks like a flag: a password may begin with a
/// hyphen.
fn flag(argument: Arg) -> Arg {
    let valued = argument.get_long().is_some()
        && argument.get_action().takes_values()
        && !argument.is_require_equals_set();
    if valued { argument.allow_hyphen_values(true) } else { argument }
}

/// A name that is empty comes from a variable that a script has not set, and would be asked for as if it were none.
fn word(argument: Arg) -> Arg {
    if argument.is_positional() && argument.get_value_parser().type_id() == TypeId::of::<String>() {
        argument.value_parser(NonEmptyStringValueParser::new())
    } else {
        argument
    }
}

/// The help of the command that an error says is incomplete. Flags alone, as those of the cluster, ask for nothing.
pub fn help_instead(mut root: Command, program: &Program, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(incomplete)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    root.build();
    let mut words = incomplete.strip_prefix(&program.name)?.split_whitespace();
    let command = words.try_fold(&mut root, |command, word| command.find_subcommand_mut(word))?;
    Some(command.render_help().to_string())
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// The flags of the cluster that the chosen command has replaced by its own of the same name.
pub fn shadowed(root: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut command = root;
    let mut matches = matches;
    let mut found = Vec::new();
    while let Some((name, below)) = matches.subcommand() {
        let Some(next) = command.find_subcommand(name) else { break };
        command = next;
        matches = below;
        found.extend(
            command
                .get_arguments()
                .map(|argument| argument.get_id().as_str())
                .filter(|id| cluster::Flags::has(id))
                .map(ToOwned::to_owned),
        );
    }
    found
}
