//! The command that applies a recommendation.

use tupelo::ops::cost::Container;
use tupelo::ops::inspect::quoted_word;
use tupelo::ops::tune::Candidate;
use tupelo::reader::Location;
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::format_bytes;

use super::Goal;

/// The command that stores the input like a candidate. If it leaves something out, that is accepted.
pub(super) fn command(
    goal: &Goal<'_>,
    location: &Location,
    is_tree: bool,
    chosen: &Candidate,
    leaves_out: bool,
) -> String {
    let container = chosen.cost.container;
    let verb = match (is_tree, container) {
        (true, Container::Objects(_) | Container::File) => "import",
        (false, Container::Tree) => "export",
        _ => "copy",
    };
    let place = place(goal, location, container);
    let mut command = format!("tupelo {verb} {} {}", quoted_word(&location.to_string()), quoted_word(&place));
    if let Some(layout) = chosen.layout {
        command += &format!(" --compression {}", layout.compression);
        let pages = format_bytes(layout.page_bytes);
        command += &match container {
            Container::Tree => format!(" --basket-bytes {pages} --auto-flush {}", layout.cluster_entries),
            _ => format!(" --page-bytes {pages} --cluster-bytes {}", format_bytes(layout.cluster_bytes)),
        };
        if verb == "export" {
            command += " --fixed-baskets";
        }
    }
    if let Container::Objects(mapping) = container {
        command += &format!(" --mapping {mapping}");
    }
    if leaves_out {
        command += " --skip-unreadable";
    }
    command
}

/// What is written: a URI for objects, or a file. Buckets of clouds have to be filled in.
fn place(goal: &Goal<'_>, location: &Location, container: Container) -> String {
    let scheme = goal.store.split(':').next();
    let name = format!("{}_tuned", stem(&location.file));
    match (container, &goal.args.measure, scheme) {
        (Container::Objects(_), Some(uri), _) if is_object_uri(uri) => display_name(uri),
        (Container::Objects(_), _, Some(scheme @ ("gs" | "s3"))) => format!("ntpl+{scheme}://BUCKET/PREFIX"),
        (Container::Objects(_), _, Some("az")) => "ntpl+az://CONTAINER/PREFIX".to_owned(),
        (Container::Objects(_), _, Some("disk")) => format!("ntpl+file:{name}"),
        (Container::Objects(_), ..) => "URI".to_owned(),
        (_, None, Some(scheme @ ("gs" | "s3"))) => format!("{scheme}://BUCKET/{name}.root"),
        (_, None, Some("az")) => format!("az://CONTAINER/{name}.root"),
        _ => format!("{name}.root"),
    }
}

/// The name of a file without its folder and extension. The beginning of an option is not one of a name.
fn stem(file: &str) -> String {
    let name = display_name(file);
    let name = name.split(['?', '#']).next().unwrap_or_default();
    let name = name.trim_end_matches('/').rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let stem = name.strip_suffix(".root").unwrap_or(name).trim_start_matches('-');
    if stem.is_empty() { "entries".to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(quoted_word("a/b.root:Events"), "a/b.root:Events");
        assert_eq!(quoted_word("two words"), "'two words'");
        assert_eq!(quoted_word("it's"), r"'it'\''s'");
        assert_eq!(quoted_word("$(x)"), "'$(x)'");
        assert_eq!(quoted_word(""), "''");
    }

    #[test]
    fn outputs_are_named_after_inputs() {
        for (file, expected) in [
            ("events.root", "events"),
            ("data/-x.root", "x"),
            ("https://host/a/b.root?x=/y", "b"),
            ("ntpl+file:here", "here"),
            ("ntpl+s3://bucket/runs/1/", "1"),
            (".root", "entries"),
        ] {
            assert_eq!(stem(file), expected, "{file}");
        }
    }
}
