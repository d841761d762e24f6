//! Engine errors as the exception classes that `tupelo.errors` defines, one for each kind.

use std::cell::Cell;
use std::error::Error as _;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tupelo::ops::Progress;
use tupelo::{Error, ErrorKind, Remedy};

/// The names of all kinds of errors, by which `tupelo.errors.BY_KIND` lists the exception classes.
pub(crate) fn kinds(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, ErrorKind::ALL.map(ErrorKind::name))
}

/// The message of an error, with the keyword argument of its remedy.
fn text(error: &Error) -> String {
    match error.remedy() {
        Some(Remedy::MemoryBudget | Remedy::FewerEntries) => format!("{error} (memory_budget)"),
        Some(Remedy::BinaryStrings) => format!("{error} (binary_strings)"),
        Some(Remedy::UnionFields) => format!("{error} (fields='union')"),
        Some(Remedy::Prefix) => format!("{error} (a mapping of prefixes to tables)"),
        Some(Remedy::Recover) => format!("{error} (recover=True)"),
        _ => error.to_string(),
    }
}

/// The exception to raise for an engine error.
#[cold]
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let raised = error.source().and_then(|cause| cause.downcast_ref::<PyErr>());
    if let Some(raised) = raised.filter(|raised| !raised.is_instance_of::<PyException>(py)) {
        // Ctrl-C while a function of the caller runs is not an error of that function.
        return raised.clone_ref(py);
    }
    let raise = || {
        let classes = py.import(intern!(py, "tupelo.errors"))?.getattr(intern!(py, "BY_KIND"))?;
        classes.get_item(error.kind().name())?.call1((text(error),))
    };
    let exception = raise().map_or_else(|failure| failure, PyErr::from_value);
    let place = error.place();
    let value = exception.value(py);
    // Unknown places keep the default of the class.
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

/// Conversion of results of the engine to Python.
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
    /// Whether a signal handler runs that interrupted a call of this thread.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Locks a mutex, and ignores poisoning: the engine itself reports objects that cannot be used after an error.
///
/// # Errors
/// If a signal handler locks an object that is in use, possibly by the interrupted call: it would deadlock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> tupelo::Result<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) if ASKING.get() => Err(Error::invalid_argument(
            "the object is in use by the call that this signal handler interrupted; use it after that call",
        )),
        Err(TryLockError::WouldBlock) => Ok(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Runs a function without the interpreter lock. Signal handlers run in between, and an exception that they raise, such
/// as for Ctrl-C, cancels it.
pub(crate) fn cancellable<R: Send>(py: Python<'_>, work: impl FnOnce() -> tupelo::Result<R> + Send) -> PyResult<R> {
    let raised = Arc::new(Mutex::new(None));
    let handler = Arc::clone(&raised);
    let keep = move |error| *handler.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    let ask = move || {
        ASKING.set(true);
        let answer = Python::attach(|py| py.check_signals());
        ASKING.set(false);
        answer.map_err(&keep).is_err()
    };
    let done = py.detach(|| tupelo::cancellable(ask, work));
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(raised) => Err(raised),
        None => done.or_raise(py),
    }
}

/// The same for work that reports how much is done, which calls `tell` with that. An exception of `tell` cancels the work:
/// its result is then `None`, and the exception is raised.
pub(crate) fn telling<R: Send>(
    py: Python<'_>,
    tell: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Progress<'_>) -> tupelo::Result<Option<R>> + Send,
) -> PyResult<Option<R>> {
    let mut raised = None;
    let done = cancellable(py, || {
        let mut progress = |done: u64| match tell.as_ref().map(|tell| Python::attach(|py| tell.call1(py, (done,)))) {
            Some(Err(error)) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
            None | Some(Ok(_)) => ControlFlow::Continue(()),
        };
        work(&mut progress)
    })?;
    raised.map_or(Ok(done), Err)
}
