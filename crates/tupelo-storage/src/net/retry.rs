//! One policy for requests that fail: what is repeated, how long to wait, and when to stop.
//!
//! A transient failure (reset, timeout, stalled or truncated body, 429, 5xx) is repeated after a random wait of up to
//! 0.2 s, 0.4 s, 0.8 s and so on, at most 10 s ("full jitter"), or as long as the server asks for. Attempts that made
//! progress are not counted, so a transfer that is cut often still ends; the total time limits everything, and the
//! failure that it ends with names the one before.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::failure::Failure;
use crate::error::ErrorKind;
use crate::source::Traffic;

/// Limit of the first wait; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Limit of all waits, unless the server asks for a longer one.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Rate of the slowest transfer that is not taken for a stalled one: 64 KiB per second.
pub const SLOWEST_BYTES_PER_SECOND: u64 = 64 << 10;

/// Limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of attempts in a row without progress: 6.
    pub attempts: u32,
    /// Maximum time of a request with all its attempts: 180 s. A request reads or writes a few MiB; larger ones have
    /// more time, by [`SLOWEST_BYTES_PER_SECOND`].
    pub total: Duration,
    /// Maximum time without a byte from the server: 20 s.
    pub stall: Duration,
    /// Maximum time to connect, until a request can be sent: 10 s.
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

impl Limits {
    /// The same limits for a request that transfers as many bytes.
    #[must_use]
    pub(crate) fn for_bytes(self, bytes: u64) -> Self {
        Self { total: self.total.saturating_add(Self::slowest(bytes)), ..self }
    }

    /// The time that a slow transfer takes.
    pub(crate) fn slowest(bytes: u64) -> Duration {
        Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND)
    }
}

/// The attempts of one request.
#[derive(Debug)]
pub(crate) struct Attempts {
    limits: Limits,
    started: Instant,
    /// Why the last attempt failed that was repeated.
    last: Option<String>,
    /// All failed attempts.
    failed: u32,
    /// Failed attempts since the last progress.
    in_a_row: u32,
    /// Counts the attempts.
    traffic: Option<Arc<Traffic>>,
}

impl Attempts {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, started: Instant::now(), last: None, failed: 0, in_a_row: 0, traffic: None }
    }

    /// Counts each attempt as a request.
    pub(crate) fn counted_in(self, traffic: &Arc<Traffic>) -> Self {
        Self { traffic: Some(Arc::clone(traffic)), ..self }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Extends the total time.
    pub(crate) fn extend(&mut self, more: Duration) {
        self.limits.total = self.limits.total.saturating_add(more);
    }

    /// Counts received bytes.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        if let Some(traffic) = &self.traffic {
            traffic.add_bytes(bytes);
        }
    }

    /// The attempts of another request of the same call, which share its total time.
    pub(crate) fn of_same_call(&self) -> Self {
        Self { started: self.started, traffic: self.traffic.clone(), ..Self::new(&self.limits) }
    }

    /// The attempts of another call, counted as these.
    pub(crate) fn anew(&self) -> Self {
        Self { started: Instant::now(), ..self.of_same_call() }
    }

    /// Runs one attempt within the total time.
    pub(crate) async fn run<T>(&self, attempt: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let (left, sent) = (self.limits.total.saturating_sub(self.started.elapsed()), Instant::now());
        if let Some(traffic) = &self.traffic {
            traffic.add_request();
        }
        let answer = timeout(left, attempt).await.unwrap_or_else(|_| Err(self.late()));
        if let Some(traffic) = &self.traffic {
            traffic.add_time(sent.elapsed());
        }
        answer
    }

    #[cold]
    fn late(&self) -> Failure {
        let seconds = self.limits.total.as_secs_f64();
        let late = Failure::lasting(ErrorKind::Timeout, format!("no complete answer within {seconds} s"));
        self.with_last(late)
    }

    /// Adds why the last attempt failed, if this failure is that the total time is over. A request inside an attempt may
    /// report that, and does not know the earlier attempts.
    fn with_last(&self, failure: Failure) -> Failure {
        let is_late = !failure.is_transient && failure.kind == ErrorKind::Timeout;
        match &self.last {
            Some(last) if is_late && !failure.reason.contains(last) => {
                failure.remark(format_args!("last failure: {last}"))
            }
            _ => failure,
        }
    }

    /// Repeats a whole request until it succeeds or must not be repeated.
    pub(crate) async fn repeat<T, F: Future<Output = Result<T, Failure>>>(
        mut self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        loop {
            match self.run(attempt()).await {
                Ok(value) => return Ok(value),
                Err(failure) => self.again(failure, false).await?,
            }
        }
    }

    /// Waits after a failed attempt. Returns the failure if there must be no other attempt.
    pub(crate) async fn again(&mut self, failure: Failure, has_progress: bool) -> Result<(), Failure> {
        self.failed += 1;
        self.in_a_row = if has_progress { 1 } else { self.in_a_row + 1 };
        if !failure.is_transient || self.in_a_row >= self.limits.attempts {
            return Err(self.counted(failure));
        }
        let most = FIRST_WAIT.saturating_mul(1 << (self.in_a_row - 1).min(16)).min(MAX_WAIT);
        let wait = most.mul_f64(fastrand::f64()).max(failure.wait.unwrap_or_default());
        if self.started.elapsed().saturating_add(wait) >= self.limits.total {
            return Err(self.counted(failure));
        }
        self.last = Some(failure.reason);
        sleep(wait).await;
        if let Some(traffic) = &self.traffic {
            traffic.add_retry();
        }
        Ok(())
    }

    /// The failure that ends the request, with the number of attempts.
    fn counted(&self, failure: Failure) -> Failure {
        let mut failure = self.with_last(failure);
        if self.failed > 1 {
            let seconds = self.started.elapsed().as_secs_f64();
            failure.reason += &format!(" ({} attempts in {seconds:.1} s)", self.failed);
        }
        if let Some(wait) = failure.wait {
            failure.reason += &format!("; the server asks for a wait of {} s", wait.as_secs());
        }
        failure
    }
}

/// Repeats a whole request until it succeeds or must not be repeated.
pub(crate) async fn repeat<T, F: Future<Output = Result<T, Failure>>>(
    limits: &Limits,
    attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    Attempts::new(limits).repeat(attempt).await
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
        assert_eq!(endless.reason, "no complete answer within 180 s; last failure: cut");
        assert!(attempts.again(cut(), true).await.is_err(), "there is no time left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_failure_before_the_end_of_the_time_is_named_once() {
        let limits = Limits { total: Duration::from_secs(30), ..Limits::default() };
        let mut request = Attempts::new(&limits);
        request.again(Failure::transient(ErrorKind::Timeout, "silence"), false).await.unwrap();
        // The second attempt runs out of time while it opens the file again, which has its own attempts.
        let opening = request.of_same_call();
        let open = async || opening.counted(opening.run(std::future::pending::<Result<(), _>>()).await.unwrap_err());
        let failure = request.run(async { Err::<(), _>(open().await) }).await.unwrap_err();
        let reason = request.again(failure, false).await.unwrap_err().reason;
        assert_eq!(reason, "no complete answer within 30 s; last failure: silence (2 attempts in 30.0 s)");
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
        assert!(attempts.again(busy(u64::MAX), false).await.is_err());
        assert!(before.elapsed() >= Duration::from_secs(100));
        let failure = attempts.again(busy(100), false).await.unwrap_err();
        assert!(failure.reason.ends_with("; the server asks for a wait of 100 s"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_steps_are_cut() {
        let step = unless_stalled(Duration::from_secs(3), std::future::pending::<Result<(), Failure>>());
        assert_eq!(step.await, Err(Failure::transient(ErrorKind::Timeout, "no data for 3 s")));
    }
}
