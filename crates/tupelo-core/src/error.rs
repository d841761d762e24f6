//! The one public error of the engine, and how text from a file is shown.

mod printable;

use std::fmt::{self, Write};

use tupelo_storage::{ByteSource as _, local_path};

use self::printable::Printable;
pub use self::printable::printable;

/// Names that a message lists.
const MAX_LISTED: usize = 10;

/// A list of names for a message, which ends with the number of those that are too many.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let shown = names.iter().take(MAX_LISTED).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An ntuple, a field or another name that a file lacks.
    NotFound,
    /// A file or an object in a store that does not exist.
    MissingFile,
    /// Bytes that contradict the format or their checksum.
    Corrupt,
    /// A file without its end.
    CutOff,
    /// A file of another format.
    OtherFormat,
    /// Something legal that this version does not support.
    Unsupported,
    /// More memory or nesting than allowed.
    Limit,
    /// The caller passed an invalid argument: a reversed range, an unknown option value.
    InvalidArgument,
    /// The storage under the file failed: permissions, disk full, a read error. [`Error::storage_kind`] says how.
    Storage,
    /// A file that changed after it was opened, or that another writer created first.
    Changed,
    /// The caller cancelled the work: see [`cancellable`](crate::cancellable).
    Cancelled,
}

impl ErrorKind {
    /// Every kind, for tables that must have them all.
    pub const ALL: [Self; 11] = [
        Self::NotFound,
        Self::MissingFile,
        Self::Corrupt,
        Self::CutOff,
        Self::OtherFormat,
        Self::Unsupported,
        Self::Limit,
        Self::InvalidArgument,
        Self::Storage,
        Self::Changed,
        Self::Cancelled,
    ];

    /// Its name, which stays the same: `NotFound`, `MissingFile`, ….
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::MissingFile => "MissingFile",
            Self::Corrupt => "Corrupt",
            Self::CutOff => "CutOff",
            Self::OtherFormat => "OtherFormat",
            Self::Unsupported => "Unsupported",
            Self::Limit => "Limit",
            Self::InvalidArgument => "InvalidArgument",
            Self::Storage => "Storage",
            Self::Changed => "Changed",
            Self::Cancelled => "Cancelled",
        }
    }
}

/// What the caller can do about an error. The text of the error says it too; programs that have options for it can name
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// Allow a larger memory budget (`OpenOptions::with_memory_budget`).
    MemoryBudget,
    /// Read fewer entries at a time, or allow a larger memory budget.
    FewerEntries,
    /// Read strings as bytes (`Read::with_binary_strings`).
    BinaryStrings,
    /// Read the union of the fields of several files (`FieldPolicy::Union`).
    UnionFields,
    /// Give the names of the fields of one table of a join a prefix (`Table::join`).
    Prefix,
    /// Keep or leave out the entries of a join that have no counterpart (`Unmatched::Null`, `Unmatched::Drop`).
    Unmatched,
    /// Remove directories with everything in them (`ops::objects::remove`).
    Recursive,
    /// Replace the object that has the name (`ops::objects::rename`).
    Replace,
    /// Rebuild the directories of a file from its records (`OpenOptions::with_recover`).
    Recover,
    /// Make the zone maps of an ntuple again (`ZoneOptions::with_rebuild`).
    RebuildZoneMaps,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MemoryBudget => "allow a larger memory budget",
            Self::FewerEntries => "read fewer entries at a time, or allow a larger memory budget",
            Self::BinaryStrings => "read them with binary strings",
            Self::UnionFields => "read the union of the fields, with missing values",
            Self::Prefix => "give the names of one of the tables a prefix",
            Self::Unmatched => "keep such entries with nulls, or leave them out",
            Self::Recursive => "remove directories with their contents",
            Self::Replace => "replace the object that has the name",
            Self::Recover => "open the file with its directories rebuilt",
            Self::RebuildZoneMaps => "make its zone maps again",
        })
    }
}

/// Where in an ntuple something went wrong, as far as the error knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorPlace {
    /// Dotted path of the field.
    pub field: Option<String>,
    /// Number of the column in the file.
    pub column: Option<u32>,
    /// Number of the cluster, counted through all cluster groups.
    pub cluster: Option<u64>,
    /// Number of the page in its column and cluster.
    pub page: Option<u64>,
}

/// The result of everything in the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What failed, on what, why, and what to do about it.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    /// Innermost first.
    context: Vec<Context>,
    place: ErrorPlace,
    remedy: Option<Remedy>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What was being worked on when an error occurred.
#[derive(Debug)]
enum Context {
    /// A file, by path or URI.
    File(String),
    /// An ntuple, a tree or another object in a file.
    Object { class: &'static str, path: String },
    /// A field, by its dotted path.
    Field(String),
    /// Something within these.
    Part(String),
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) | Self::Part(name) => f.write_str(name),
            Self::Object { class, path } => write!(f, "{class} '{path}'"),
            Self::Field(path) => write!(f, "field '{path}'"),
        }
    }
}

impl Error {
    /// An error without context, which the callers add: [`within`](Self::within), [`in_file`](Self::in_file).
    #[cold]
    #[inline(never)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            place: ErrorPlace::default(),
            remedy: None,
            source: None,
        }))
    }

    /// Something that the format does not allow.
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Something legal that is not supported.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// More memory than allowed.
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// A file or an object that does not exist; [`no_such`](Self::no_such) also lists near names.
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// An error of the caller.
    #[cold]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The same error with its cause.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(cause));
        self
    }

    /// A name that does not exist among `known`; lists the nearest ones.
    #[cold]
    pub fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let wanted = name.to_lowercase();
        // The text that the wildcards at the ends of a glob match is unknown.
        let stem = wanted.trim_matches('*');
        let distance = |known: &str| match known.to_lowercase() {
            known if known == wanted => 0,
            known if known.contains(stem) => 1,
            known => strsim::damerau_levenshtein(&wanted, &known),
        };
        let mut near: Vec<(usize, &str)> = known.map(|known| (distance(known), known)).collect();
        let total = near.len();
        near.sort();
        near.dedup();
        near.truncate(5);
        let hint = match near.as_slice() {
            [] => "there are none".to_owned(),
            near => {
                let names: Vec<_> = near.iter().map(|(_, name)| format!("'{name}'")).collect();
                let label = if near.len() == total { "available".to_owned() } else { format!("nearest of {total}") };
                format!("{label}: {}", names.join(", "))
            }
        };
        Self::not_found(format!("no {what} named '{name}' ({hint})"))
    }

    /// The same error, prefixed with the name of what was being worked on.
    #[must_use]
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        self.0.context.push(Context::Part(outer.to_string()));
        self
    }

    /// The same error in a file with this path or URI.
    #[must_use]
    pub fn in_file(mut self, name: impl fmt::Display) -> Self {
        self.0.context.push(Context::File(name.to_string()));
        self
    }

    /// The same error in this file, unless it names one.
    #[must_use]
    pub fn or_in_file(self, name: impl fmt::Display) -> Self {
        if self.file().is_some() { self } else { self.in_file(name) }
    }

    /// The same error in an object of a file: `ntuple 'Events'`.
    #[must_use]
    pub fn in_object(mut self, class: &'static str, path: impl fmt::Display) -> Self {
        self.0.context.push(Context::Object { class, path: path.to_string() });
        self
    }

    /// The same error for a page.
    #[must_use]
    pub fn at_page(mut self, column: u32, cluster: u64, page: u64) -> Self {
        let place = &mut self.0.place;
        (place.column, place.cluster, place.page) = (Some(column), Some(cluster), Some(page));
        self
    }

    /// The same error for a field, prefixed with its path.
    #[must_use]
    pub fn in_field(mut self, path: &str) -> Self {
        self.0.place.field.get_or_insert_with(|| path.to_owned());
        self.0.context.push(Context::Field(path.to_owned()));
        self
    }

    /// The path or URI of the file that could not be read or written, if known.
    pub fn file(&self) -> Option<&str> {
        self.0.context.iter().find_map(|context| match context {
            Context::File(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Where in the ntuple it went wrong, for programs: the text says it too.
    pub fn place(&self) -> &ErrorPlace {
        &self.0.place
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The same error with what can be done about it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.0.remedy = Some(remedy);
        self
    }

    /// The error that explains apparent damage: a local file that was changed after it was opened as `source` is not
    /// damaged.
    #[must_use]
    pub fn unless_changed(self, source: &dyn tupelo_storage::ByteSource) -> Self {
        let name = source.to_string();
        let Some(path) = local_path(&name).filter(|_| self.is_corrupt()) else { return self };
        let now = tupelo_storage::FileSource::open(path).ok().and_then(|now| now.version());
        if now.is_none() || source.version().is_none() || now == source.version() {
            return self;
        }
        let reason = format!("the file was changed after it was opened ({})", self.0.message);
        Self::from(tupelo_storage::Error::new(tupelo_storage::ErrorKind::Changed, "read", &name, reason))
    }

    /// The same error with a sentence at its end.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        self.0.message = format!("{}; {note}", self.0.message);
        self
    }

    /// What the caller can do about it, if known.
    pub fn remedy(&self) -> Option<Remedy> {
        self.0.remedy
    }

    /// How the storage failed, if it did.
    pub fn storage_kind(&self) -> Option<tupelo_storage::ErrorKind> {
        self.storage().map(tupelo_storage::Error::kind)
    }

    /// Whether the same call may succeed later: a storage that is busy or cannot be reached now.
    pub fn is_retryable(&self) -> bool {
        self.storage().is_some_and(tupelo_storage::Error::is_retryable)
    }

    fn storage(&self) -> Option<&tupelo_storage::Error> {
        self.0.source.as_ref().and_then(|source| source.downcast_ref())
    }

    /// The text without file and object, for reports that name them.
    pub fn reason(&self) -> String {
        self.text_behind(|context| matches!(context, Context::File(_) | Context::Object { .. }))
    }

    /// The text without file, object and field.
    pub fn reason_in_field(&self) -> String {
        self.text_behind(|context| !matches!(context, Context::Part(_)))
    }

    /// The text without the outermost contexts that are named elsewhere.
    fn text_behind(&self, is_named: impl Fn(&Context) -> bool) -> String {
        let parts = self.0.context.iter().rposition(|context| !is_named(context)).map_or(0, |last| last + 1);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_to(&mut Printable(&mut text), self.0.context.get(..parts).unwrap_or_default());
        text
    }

    fn write_to(&self, out: &mut impl Write, context: &[Context]) -> fmt::Result {
        for outer in context.iter().rev() {
            write!(out, "{outer}: ")?;
        }
        out.write_str(&self.0.message)?;
        match self.0.remedy {
            Some(remedy) => write!(out, "; {remedy}"),
            None => Ok(()),
        }
    }

    /// Whether a name or file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind(), ErrorKind::NotFound | ErrorKind::MissingFile)
    }

    /// Whether bytes are damaged, lost or of another format.
    pub fn is_corrupt(&self) -> bool {
        matches!(self.kind(), ErrorKind::Corrupt | ErrorKind::CutOff | ErrorKind::OtherFormat)
    }
}

/// One line that is safe to print, whatever names from a file it contains: see [`printable`].
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(&mut Printable(f), &self.0.context)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as _)
    }
}

impl From<tupelo_format::ErrorKind> for ErrorKind {
    fn from(kind: tupelo_format::ErrorKind) -> Self {
        match kind {
            tupelo_format::ErrorKind::CutOff => Self::CutOff,
            tupelo_format::ErrorKind::OtherFormat => Self::OtherFormat,
            tupelo_format::ErrorKind::Unsupported => Self::Unsupported,
            tupelo_format::ErrorKind::Limit | tupelo_format::ErrorKind::Memory => Self::Limit,
            _ => Self::Corrupt,
        }
    }
}

impl From<tupelo_format::Error> for Error {
    #[cold]
    fn from(error: tupelo_format::Error) -> Self {
        let converted = Self::new(error.kind().into(), error.to_string());
        match error.kind() {
            tupelo_format::ErrorKind::Memory => converted.with_remedy(Remedy::MemoryBudget),
            _ => converted,
        }
    }
}

impl From<tupelo_storage::Error> for Error {
    #[cold]
    fn from(error: tupelo_storage::Error) -> Self {
        let kind = match error.kind() {
            tupelo_storage::ErrorKind::NotFound => ErrorKind::MissingFile,
            tupelo_storage::ErrorKind::Changed => ErrorKind::Changed,
            tupelo_storage::ErrorKind::NotSupported if local_path(error.uri()).is_none() => ErrorKind::Unsupported,
            tupelo_storage::ErrorKind::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Storage,
        };
        let mut converted = Self::new(kind, error.to_string());
        converted.0.source = Some(Box::new(error));
        converted
    }
}

impl From<arrow_schema::ArrowError> for Error {
    #[cold]
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::new(ErrorKind::InvalidArgument, format!("arrow: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn contexts_read_from_the_outside_in() {
        let error = Error::corrupt("checksum mismatch").within("page 3").within("field 'a'");
        assert_eq!(error.to_string(), "field 'a': page 3: checksum mismatch");
    }

    #[test]
    fn a_remedy_is_part_of_the_text_and_can_be_asked_for() {
        let error: Error = tupelo_format::Error::memory("schema: needs 9 bytes of memory").at(7).into();
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::Limit, Some(Remedy::MemoryBudget)));
        let text = "schema: needs 9 bytes of memory (at byte 7); allow a larger memory budget";
        assert_eq!(error.in_file("x.root").to_string(), format!("x.root: {text}"));
        let error: Error = tupelo_format::Error::limit("nested too deep").into();
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::Limit, None));
    }

    #[test]
    fn errors_of_the_storage_are_kept() {
        for kind in tupelo_storage::ErrorKind::ALL {
            let storage = tupelo_storage::Error::new(kind, "read", "x", "");
            let is_retryable = storage.is_retryable();
            let error = Error::from(storage).in_file("x.root");
            assert_eq!((error.storage_kind(), error.is_retryable()), (Some(kind), is_retryable));
            assert_eq!(error.kind() == ErrorKind::Cancelled, kind == tupelo_storage::ErrorKind::Cancelled);
        }
        let error = Error::corrupt("x");
        assert_eq!((error.storage_kind(), error.is_retryable()), (None, false));
    }

    #[test]
    fn a_reason_lacks_file_and_object() {
        let error = Error::corrupt("why").within("page 3").in_object("ntuple", "n").in_file("x.root");
        assert_eq!((error.reason().as_str(), error.file()), ("page 3: why", Some("x.root")));
        let in_field = Error::corrupt("why").within("page 3").in_field("f").in_object("ntuple", "n").in_file("x.root");
        assert_eq!([in_field.reason(), in_field.reason_in_field()], ["field 'f': page 3: why", "page 3: why"]);
        assert_eq!(error.to_string(), "x.root: ntuple 'n': page 3: why");
        let error = Error::corrupt("why").in_file("a.root").within("member 1").in_file("b.root");
        assert_eq!((error.reason().as_str(), error.file()), ("member 1: a.root: why", Some("a.root")));
        assert_eq!((Error::corrupt("why").reason().as_str(), Error::corrupt("why").file()), ("why", None));
    }

    #[test]
    fn kinds_are_called_what_they_are() {
        for kind in ErrorKind::ALL {
            assert_eq!(kind.name(), format!("{kind:?}"));
        }
    }

    /// Escape sequences in the names of a file reached the terminal.
    #[test]
    fn an_error_is_safe_to_print() {
        let error = Error::corrupt("type 'a\x1b[2Jb'").within("field '\u{202e}x\n'");
        assert_eq!(error.to_string(), r"field '\u{202e}x\n': type 'a\u{1b}[2Jb'");
    }

    #[test]
    fn missing_names_list_near_ones() {
        let error = Error::no_such("field", "Muon_pT", ["Muon_pt", "Muon_eta", "x"].into_iter());
        assert_eq!(error.to_string(), "no field named 'Muon_pT' (available: 'Muon_pt', 'Muon_eta', 'x')");
    }

    /// `muon*` listed whatever is short.
    #[test]
    fn near_names_may_have_other_capitals() {
        let known = ["x", "y", "z", "u", "v", "MET_pt", "Muon_pt", "Muon_eta"];
        let near = |name: &str| Error::no_such("field", name, known.into_iter()).to_string();
        assert!(near("muon*").contains("(nearest of 8: 'Muon_eta', 'Muon_pt', "), "{}", near("muon*"));
        assert!(near("met_PT").contains("(nearest of 8: 'MET_pt', "), "{}", near("met_PT"));
        assert!(near("mount_pt").contains("(nearest of 8: 'Muon_pt', "), "{}", near("mount_pt"));
    }
}
