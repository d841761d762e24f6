//! What the command says of itself: its list of subcommands by task, `tupelo completions` and `tupelo man`.

use std::collections::HashMap;
use std::env;
// FS: manual pages do not contain entries.
use std::fs;
use std::path::PathBuf;

use clap::Command;
use clap::builder::StyledStr;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::console::{Console, terminal_width};
use crate::failure::Failure;
use crate::text::wrapped;

/// Subcommands by task. Each is in one of them.
const TASKS: [(&str, &[&str]); 6] = [
    ("Look at data", &["ls", "schema", "head", "count", "hist", "show", "dump", "sql"]),
    ("Copy and convert", &["copy", "merge", "join", "append", "import", "export"]),
    ("Check and compare", &["verify", "diff"]),
    ("Change files", &["rm", "mv", "mkdir", "repack", "gc"]),
    ("Plan and tune", &["inspect", "browse", "explain", "layout", "index", "cost", "tune", "auxbench"]),
    ("Help", &["help", "completions", "man"]),
];
/// Widest text without a terminal, as in the help of subcommands.
const DEFAULT_WIDTH: usize = 100;
/// The description of a subcommand that clap makes.
const HELP: &str = "Print this message or the help of a subcommand";

/// Print the script that completes subcommands and options in a shell
///
/// Each shell reads it from its own file: for bash, ~/.local/share/bash-completion/completions/tupelo; for fish,
/// ~/.config/fish/completions/tupelo.fish; for zsh, _tupelo in a folder of $fpath.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo completions bash > tupelo.bash
  tupelo completions fish > tupelo.fish
  tupelo completions zsh > _tupelo")]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

/// Print the manual page of the command, or write all pages to a folder
///
/// Without --out the page of `tupelo` goes to stdout, or that of one subcommand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo man copy > tupelo-copy.1
  tupelo man --out man/man1")]
pub(crate) struct Manual {
    /// Subcommand
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    subcommand: Option<String>,
    /// Folder for tupelo.1 and a page for each subcommand, which is made if it is missing
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The names of all subcommands, task by task.
pub(crate) fn names_by_task() -> impl Iterator<Item = &'static str> {
    TASKS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// What a subcommand does, and its other names.
fn about(subcommand: &Command) -> String {
    let mut about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
    subcommand.get_visible_aliases().for_each(|alias| about += &format!(" [alias: {alias}]"));
    about
}

/// The command with its subcommands by task in its help.
pub(crate) fn by_task(command: Command) -> Command {
    let about: HashMap<String, String> = command
        .get_subcommands()
        .map(|it| (it.get_name().to_owned(), about(it)))
        .chain([("help".to_owned(), HELP.to_owned())])
        .collect();
    let indent = names_by_task().map(str::len).max().unwrap_or(0) + 4;
    // As clap does for the rest of the help.
    let columns = || env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = terminal_width().or_else(columns).unwrap_or(DEFAULT_WIDTH).saturating_sub(indent).max(20);
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (task, names) in TASKS {
        text.push_str(&format!("\n{header}{task}:{header:#}\n"));
        for name in names {
            let mut lines = wrapped(about.get(*name).map_or("", String::as_str), width).into_iter();
            let gap = " ".repeat(indent - 2 - name.len());
            text.push_str(&format!("  {literal}{name}{literal:#}{gap}{}\n", lines.next().unwrap_or_default()));
            lines.for_each(|line| text.push_str(&format!("{}{line}\n", " ".repeat(indent))));
        }
    }
    text.push_str(&format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}"));
    command.help_template(StyledStr::from(text))
}

pub(crate) fn complete(args: &Completions, mut command: Command, console: &Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    console.print_data(&String::from_utf8_lossy(&script))
}

pub(crate) fn manual(args: &Manual, mut command: Command, console: &Console) -> Result<(), Failure> {
    command.build();
    // Those of programs have their own list.
    let pages: Vec<Command> = command.get_subcommands().filter(|it| it.get_name() != "help").cloned().collect();
    let page = |command: Command| {
        let mut text = Vec::new();
        Man::new(command).source(concat!("tupelo ", env!("CARGO_PKG_VERSION"))).render(&mut text).map(|()| text)
    };
    let title = |subcommand: &Command| format!("tupelo-{}", subcommand.get_name());
    let Some(folder) = &args.out else {
        let wanted = match &args.subcommand {
            None => command,
            Some(name) => match pages.iter().find(|it| it.get_name() == name) {
                Some(subcommand) => named(subcommand.clone(), title(subcommand)),
                None => {
                    let names = pages.iter().map(Command::get_name);
                    return Err(tupelo::Error::no_such("subcommand", name, names).into());
                }
            },
        };
        return console.print_data(&String::from_utf8_lossy(&page(wanted)?));
    };
    fs::create_dir_all(folder)?;
    for subcommand in &pages {
        let title = title(subcommand);
        fs::write(folder.join(format!("{title}.1")), page(named(subcommand.clone(), title))?)?;
    }
    Ok(fs::write(folder.join("tupelo.1"), page(command)?)?)
}

/// A subcommand as a page with a title.
fn named(subcommand: Command, title: String) -> Command {
    let title: &'static str = Box::leak(title.into_boxed_str());
    subcommand.name(title)
}
