//! One policy for requests that fail: what is repeated, how long to wait, and when to stop.
//!
//! A transient failure (reset, timeout, stalled or truncated body, 429, 5xx) is repeated after a random wait of up to
//! 0.2 s, 0.4 s, 0.8 s and so on, at most 10 s ("full jitter"), or as long as the server asks for. Attempts that made
//! progress are not counted, so a transfer that is cut often still ends; the total time limits everything.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::error::{Error, ErrorKind};

/// Limit of the first wait; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Limit of all waits, unless the server asks for a longer one.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of attempts in a row without progress: 6.
    pub attempts: u32,
    /// Maximum time of a request with all its attempts: 180 s. A request reads or writes a few MiB.
    pub total: Duration,
    /// Maximum time without a byte from the server: 20 s.
    pub stall: Duration,
    /// Maximum time to connect: 10 s.
    pub connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts: 6,
            total: Duration::from_secs(180),
            stall: Duration::from_secs(20),
            connect: Duration::from_secs(10),
        }
    }
}

/// Why an attempt failed. Its text has no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) reason: String,
    /// Whether the same request may succeed later.
    pub(crate) is_transient: bool,
    /// How long the server asks to wait.
    pub(crate) wait: Option<Duration>,
}

impl Failure {
    /// A failure that another attempt does not change.
    pub(crate) fn lasting(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_transient: false, wait: None }
    }

    /// A failure that another attempt may not have.
    pub(crate) fn transient(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_transient: true, wait: None }
    }

    /// The error of the operation.
    #[cold]
    pub(crate) fn into_error(self, action: impl Into<String>, uri: impl fmt::Display) -> Error {
        Error::new(self.kind, action.into(), uri, self.reason)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

/// The attempts of one request.
#[derive(Debug)]
pub(crate) struct Attempts {
    limits: Limits,
    started: Instant,
    /// All failed attempts.
    failed: u32,
    /// Failed attempts since the last progress.
    in_a_row: u32,
}

impl Attempts {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, started: Instant::now(), failed: 0, in_a_row: 0 }
    }

    /// Runs one attempt within the total time.
    pub(crate) async fn run<T>(&self, attempt: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let left = self.limits.total.saturating_sub(self.started.elapsed());
        let seconds = self.limits.total.as_secs_f64();
        let late = || Failure::lasting(ErrorKind::Timeout, format!("no complete answer within {seconds} s"));
        timeout(left, attempt).await.unwrap_or_else(|_| Err(late()))
    }

    /// Waits after a failed attempt. Returns the failure if there must be no other attempt.
    pub(crate) async fn again(&mut self, failure: Failure, has_progress: bool) -> Result<(), Failure> {
        self.failed += 1;
        self.in_a_row = if has_progress { 1 } else { self.in_a_row + 1 };
        if !failure.is_transient || self.in_a_row >= self.limits.attempts {
            return Err(self.last(failure));
        }
        let most = FIRST_WAIT.saturating_mul(1 << (self.in_a_row - 1).min(16)).min(MAX_WAIT);
        let wait = most.mul_f64(fastrand::f64()).max(failure.wait.unwrap_or_default());
        if self.started.elapsed() + wait >= self.limits.total {
            return Err(self.last(failure));
        }
        sleep(wait).await;
        Ok(())
    }

    /// The failure that ends the request, with the number of attempts.
    fn last(&self, mut failure: Failure) -> Failure {
        if self.failed > 1 {
            let seconds = self.started.elapsed().as_secs_f64();
            failure.reason += &format!(" ({} attempts in {seconds:.1} s)", self.failed);
        }
        if let Some(wait) = failure.wait {
            failure.reason += &format!("; the server asks to wait for {} s", wait.as_secs());
        }
        failure
    }
}

/// Repeats a whole request until it succeeds or must not be repeated.
pub(crate) async fn repeat<T, F: Future<Output = Result<T, Failure>>>(
    limits: &Limits,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    let mut attempts = Attempts::new(limits);
    loop {
        match attempts.run(attempt()).await {
            Ok(value) => return Ok(value),
            Err(failure) => attempts.again(failure, false).await?,
        }
    }
}

/// Cuts a step of a transfer that takes longer than `limit`.
pub(crate) async fn unless_stalled<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let stalled = || Failure::transient(ErrorKind::Timeout, format!("no data for {} s", limit.as_secs_f64()));
    timeout(limit, step).await.unwrap_or_else(|_| Err(stalled()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn limits(attempts: u32) -> Limits {
        Limits { attempts, ..Limits::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_repeated_up_to_the_limit() {
        for (failures, expected) in [(0, Ok(0)), (3, Ok(3)), (4, Err(4)), (9, Err(4))] {
            let (calls, limits) = (Cell::new(0), limits(4));
            let result = repeat(&limits, || {
                let call = calls.replace(calls.get() + 1);
                async move {
                    if call < failures { Err(Failure::transient(ErrorKind::Unavailable, "reset")) } else { Ok(call) }
                }
            });
            match (result.await, expected) {
                (Ok(call), Ok(expected)) => assert_eq!(call, expected),
                (Err(failure), Err(attempts)) => {
                    assert!(failure.reason.starts_with(&format!("reset ({attempts} attempts in ")), "{failure}");
                }
                (result, expected) => panic!("{result:?} instead of {expected:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lasting_failures_end_the_request_at_once() {
        let mut attempts = Attempts::new(&limits(4));
        let failure = Failure::lasting(ErrorKind::Denied, "HTTP status 403");
        assert_eq!(attempts.again(failure.clone(), false).await, Err(failure));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_starts_the_count_again_but_not_the_clock() {
        let mut attempts = Attempts::new(&limits(2));
        let cut = || Failure::transient(ErrorKind::Unavailable, "cut");
        for _ in 0..20 {
            attempts.again(cut(), true).await.unwrap();
        }
        assert!(attempts.again(cut(), false).await.unwrap_err().reason.starts_with("cut (21 attempts in "));
        let endless = attempts.run(std::future::pending::<Result<(), Failure>>()).await.unwrap_err();
        assert_eq!((endless.kind, endless.is_transient), (ErrorKind::Timeout, false));
        assert!(attempts.again(cut(), true).await.is_err(), "there is no time left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_the_server_asks_for_is_kept_within_the_total_time() {
        let mut attempts = Attempts::new(&limits(9));
        let busy = |seconds| Failure {
            wait: Some(Duration::from_secs(seconds)),
            ..Failure::transient(ErrorKind::Unavailable, "HTTP status 503")
        };
        let before = Instant::now();
        attempts.again(busy(100), false).await.unwrap();
        assert!(before.elapsed() >= Duration::from_secs(100));
        let failure = attempts.again(busy(100), false).await.unwrap_err();
        assert!(failure.reason.ends_with("; the server asks to wait for 100 s"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_steps_are_cut() {
        let step = unless_stalled(Duration::from_secs(3), std::future::pending::<Result<(), Failure>>());
        assert_eq!(step.await, Err(Failure::transient(ErrorKind::Timeout, "no data for 3 s")));
    }
}
