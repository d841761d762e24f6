//! Tasks in order. Other threads begin a few of them ahead.

use std::collections::VecDeque;
use std::sync::Arc;

use tupelo_storage::cancel::{Scope, with_flag};

use super::{Spawned, begin, check, is_concurrent, pool, thread_failed};
use crate::Result;

/// Tasks that run ahead of the one whose result is wanted.
const TASKS_AHEAD: usize = 4;

/// The results of tasks, in their order. Without [other threads](is_concurrent), each runs when its result is wanted.
pub(crate) struct Ahead<I: Iterator, R> {
    tasks: I,
    work: Arc<dyn Fn(I::Item) -> Result<R> + Send + Sync>,
    running: VecDeque<Spawned<Result<R>>>,
}

impl<I: Iterator, R> Ahead<I, R> {
    pub(crate) fn new(tasks: I, work: impl Fn(I::Item) -> Result<R> + Send + Sync + 'static) -> Self {
        Self { tasks, work: Arc::new(work), running: VecDeque::new() }
    }
}

impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> Iterator for Ahead<I, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let Some(pool) = pool().filter(|_| is_concurrent()) else {
            return self.tasks.next().map(|task| check().and_then(|()| (self.work)(task)));
        };
        let flag = Scope::current().map(|scope| scope.flag());
        while self.running.len() < TASKS_AHEAD
            && let Some(task) = self.tasks.next()
        {
            let (work, flag) = (Arc::clone(&self.work), flag.clone());
            let run = move || with_flag(flag, || check().and_then(|()| work(task)));
            self.running.push_back(begin(&pool, run));
        }
        let next = self.running.pop_front()?;
        Some(next.wait().unwrap_or_else(|| Err(thread_failed())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn results_come_in_the_order_of_tasks() {
        let squares: Vec<u64> = Ahead::new(0..100, |n: u64| Ok(n * n)).collect::<Result<_>>().unwrap();
        assert_eq!(squares, (0..100).map(|n| n * n).collect::<Vec<u64>>());
        let failing = Ahead::new(0..100, |n: u64| if n < 7 { Ok(n) } else { Err(Error::corrupt("seven")) });
        assert_eq!(failing.take_while(Result::is_ok).count(), 7);
    }
}
