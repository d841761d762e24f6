//! Cancellation of calls on other threads: Python delivers signals to its main thread only.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

thread_local! {
    static CURRENT: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// Cancels the calls of the engine in functions that threads run with it.
#[pyclass(module = "tupelo._core", frozen)]
#[derive(Clone, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Calls a function on this thread.
    fn run<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let before = CURRENT.replace(Some(self.clone()));
        let result = function.call0();
        CURRENT.set(before);
        result
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Cancellation {
    /// The one that this thread runs with.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
