//! Engine errors as the exception classes that `tupelo.errors` defines, one for each kind.

use std::cell::Cell;
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tupelo::{Error, ErrorKind, Remedy};

/// Name under which `tupelo.errors.BY_KIND` lists what is raised for a file that does not exist: Python tells it
/// apart from a name that does not exist inside a file.
const MISSING_FILE: &str = "MissingFile";

/// The names of all kinds of errors, by which `tupelo.errors.BY_KIND` lists the exception classes.
pub(crate) fn kinds(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let names = ErrorKind::ALL.iter().map(|kind| format!("{kind:?}")).chain([MISSING_FILE.to_owned()]);
    PyTuple::new(py, names.collect::<Vec<_>>())
}

/// The text of an error, with the keyword arguments that its remedy names.
fn text(error: &Error) -> String {
    match error.remedy() {
        Some(Remedy::MemoryBudget | Remedy::FewerEntries) => format!("{error} (memory_budget)"),
        Some(Remedy::BinaryStrings) => format!("{error} (binary_strings)"),
        _ => error.to_string(),
    }
}

/// The exception to raise for an engine error.
#[cold]
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let raised = error.source().and_then(|cause| cause.downcast_ref::<PyErr>());
    if let Some(raised) = raised.filter(|raised| !raised.is_instance_of::<PyException>(py)) {
        // Ctrl-C while a caller's own function runs is no error of that function.
        return raised.clone_ref(py);
    }
    // What storage says carries its own error as the source; what the engine looks up in a file has none.
    let kind = match (error.kind(), error.source()) {
        (ErrorKind::NotFound, Some(_)) => MISSING_FILE.to_owned(),
        (kind, _) => format!("{kind:?}"),
    };
    let raise = || {
        let classes = py.import(intern!(py, "tupelo.errors"))?.getattr(intern!(py, "BY_KIND"))?;
        classes.get_item(kind)?.call1((text(error),))
    };
    let exception = raise().map_or_else(|failure| failure, PyErr::from_value);
    let place = error.place();
    let value = exception.value(py);
    // What is not known stays what the class says: nothing.
    let located = [
        place.field.as_ref().map(|field| value.setattr(intern!(py, "field"), field)),
        place.column.map(|column| value.setattr(intern!(py, "column"), column)),
        place.cluster.map(|cluster| value.setattr(intern!(py, "cluster"), cluster)),
        place.page.map(|page| value.setattr(intern!(py, "page"), page)),
    ];
    if let Some(failure) = located.into_iter().flatten().find_map(PyResult::err) {
        return failure;
    }
    if let Some(raised) = raised {
        exception.set_cause(py, Some(raised.cause(py).unwrap_or_else(|| raised.clone_ref(py))));
    }
    exception
}

/// Results of the engine on their way to Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for tupelo::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}

thread_local! {
    /// Whether a handler of a signal runs, in the midst of work of this thread.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// What a mutex guards. A panic under it needs no poison: the engine says itself when something is of no use any more.
///
/// # Errors
/// Where a handler of a signal wants what is in use, perhaps by the very work that it interrupts: it would wait for ever.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> tupelo::Result<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) if ASKING.get() => Err(Error::invalid_argument(
            "it is in use by what this handler of a signal interrupts; use it when that is over",
        )),
        Err(TryLockError::WouldBlock) => Ok(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Does work without the interpreter. Handlers of signals run in between, and what they raise ends it: Ctrl-C need not wait.
pub(crate) fn stoppable<R: Send>(py: Python<'_>, work: impl FnOnce() -> tupelo::Result<R> + Send) -> PyResult<R> {
    let raised = Arc::new(Mutex::new(None));
    let handler = Arc::clone(&raised);
    let keep = move |error| *handler.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    let ask = move || {
        ASKING.set(true);
        let answer = Python::attach(|py| py.check_signals());
        ASKING.set(false);
        answer.map_err(&keep).is_err()
    };
    let done = py.detach(|| tupelo::stoppable(ask, work));
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(raised) => Err(raised),
        None => done.or_raise(py),
    }
}
