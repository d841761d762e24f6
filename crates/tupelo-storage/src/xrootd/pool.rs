//! Connections that files on the same server share.
//!
//! There is one for each server, with its user, encryption and credentials. Requests of many files are multiplexed on it,
//! so that opening a thousand files makes one connection. It is closed when nothing has used it for [`IDLE_TIME`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, Terms};
use super::url::Server;
use crate::net::{Failure, Options, bearer_token};

/// How long an unused connection is kept: 15 seconds.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// Maximum number of connections that are shared. Beyond it, unused ones are closed, and if there are none, files have
/// connections of their own.
const MAX_CONNECTIONS: usize = 64;

/// The key of a connection: connections with the same key are shared.
#[derive(PartialEq, Eq)]
struct Key {
    server: Server,
    terms: Terms,
    options: Options,
    /// The token of the environment, which may be replaced while the program runs.
    token: Option<String>,
}

/// A place for a connection, which is locked while it is made.
struct Slot {
    key: Key,
    state: AsyncMutex<State>,
}

struct State {
    connection: Option<Arc<Connection>>,
    /// When the connection was given to a caller last.
    used: Instant,
    /// Whether a task closes it when it is idle.
    is_watched: bool,
    /// When connecting failed last, and why.
    failed: Option<(Instant, Failure)>,
}

impl State {
    /// How long nothing has used the connection.
    fn idle(&self) -> Option<Duration> {
        let is_free = self.connection.as_ref().is_none_or(|connection| Arc::strong_count(connection) == 1);
        is_free.then(|| self.used.elapsed())
    }
}

/// The slots of a process.
#[derive(Default)]
struct Pool {
    process: u32,
    slots: Vec<Arc<Slot>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { process: 0, slots: Vec::new() });

/// A connection to a server: one that exists, or a new one.
pub(super) async fn connect(server: &Server, terms: &Terms, options: &Options) -> Result<Arc<Connection>, Failure> {
    let may_find = terms.is_trusted && !options.is_anonymous() && options.get("bearer_token").is_none();
    // A token that cannot be read is an error only if the server requires one.
    let token = if may_find { bearer_token().ok().flatten() } else { None };
    let key = Key { server: server.clone(), terms: terms.clone(), options: options.clone(), token };
    let slot = POOL.lock().unwrap_or_else(PoisonError::into_inner).slot(key, std::process::id());
    let began = Instant::now();
    let mut state = slot.state.lock().await;
    state.used = Instant::now();
    if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.channel.is_closed()) {
        return Ok(Arc::clone(connection));
    }
    // A caller that has waited for the attempt of another one does not repeat it.
    if let Some((_, failure)) = state.failed.as_ref().filter(|(when, _)| *when >= began) {
        return Err(failure.clone());
    }
    state.connection = None;
    let opened = Connection::open(server, terms, options).await;
    let connection = Arc::new(opened.inspect_err(|failure| state.failed = Some((Instant::now(), failure.clone())))?);
    state.used = Instant::now();
    state.connection = Some(Arc::clone(&connection));
    if !std::mem::replace(&mut state.is_watched, true) {
        tokio::spawn(close_when_idle(Arc::clone(&slot)));
    }
    Ok(connection)
}

async fn close_when_idle(slot: Arc<Slot>) {
    loop {
        sleep(IDLE_TIME).await;
        let mut state = slot.state.lock().await;
        if state.idle().is_some_and(|time| time >= IDLE_TIME) {
            (state.connection, state.is_watched) = (None, false);
            return;
        }
    }
}

impl Pool {
    /// The slot of a key; one outside of the pool if it is full.
    fn slot(&mut self, key: Key, process: u32) -> Arc<Slot> {
        if self.process != process {
            // The connections belong to the parent process: dropping them would close them.
            std::mem::forget(std::mem::replace(self, Self { process, slots: Vec::new() }));
        }
        if let Some(slot) = self.slots.iter().find(|slot| slot.key == key) {
            return Arc::clone(slot);
        }
        // Those with a connection are also held by the task that closes it.
        self.slots.retain(|slot| Arc::strong_count(slot) > 1);
        if self.slots.len() >= MAX_CONNECTIONS {
            self.close_longest_idle();
        }
        let state = State { connection: None, used: Instant::now(), is_watched: false, failed: None };
        let slot = Arc::new(Slot { key, state: AsyncMutex::new(state) });
        if self.slots.len() < MAX_CONNECTIONS {
            self.slots.push(Arc::clone(&slot));
        }
        slot
    }

    fn close_longest_idle(&mut self) {
        let idle = |slot: &Arc<Slot>| slot.state.try_lock().ok().and_then(|state| state.idle());
        let longest = self.slots.iter().enumerate().filter_map(|(at, slot)| Some((idle(slot)?, at))).max();
        if let Some((_, at)) = longest {
            let slot = self.slots.swap_remove(at);
            if let Ok(mut state) = slot.state.try_lock() {
                state.connection = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> Key {
        let server = Server { host: "host".to_owned(), port };
        let terms = Terms { tls: false, is_trusted: true, user: None, login_token: None };
        Key { server, terms, options: Options::default(), token: None }
    }

    #[test]
    fn a_forked_child_has_its_own_connections() {
        let mut pool = Pool::default();
        let slot = pool.slot(key(1), 7);
        assert!(Arc::ptr_eq(&slot, &pool.slot(key(1), 7)));
        assert!(!Arc::ptr_eq(&slot, &pool.slot(key(1), 8)));
        assert_eq!(Arc::strong_count(&slot), 2, "the one of the parent is not dropped");
    }

    #[test]
    fn the_pool_is_bounded() {
        let mut pool = Pool::default();
        let full = MAX_CONNECTIONS as u16;
        let used: Vec<_> = (0..full).map(|port| pool.slot(key(port), 7)).collect();
        let locked: Vec<_> = used.iter().map(|slot| slot.state.try_lock().unwrap()).collect();
        let more = pool.slot(key(full), 7);
        assert!(!Arc::ptr_eq(&more, &pool.slot(key(full), 7)), "it is outside of the pool");
        drop(locked);
        let other = pool.slot(key(full), 7);
        assert!(Arc::ptr_eq(&other, &pool.slot(key(full), 7)));
        assert_eq!(pool.slots.len(), MAX_CONNECTIONS);
        drop((used, more, other));
        pool.slot(key(full + 1), 7);
        assert_eq!(pool.slots.len(), 1, "unused ones are forgotten");
    }
}
