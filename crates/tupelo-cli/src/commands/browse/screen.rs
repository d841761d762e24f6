//! The terminal: entered, and left on every way out; keys, and signals.

use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use std::{panic, thread};

use crossterm::event::{self, Event, KeyEventKind};
use crossterm::style::force_color_output;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::app::{App, Flow};
use super::draw::draw;
use super::reader::Reader;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How long to wait for a key before signals and answers are looked at: while something is read, and otherwise.
const WAITS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(100)];

/// Whether the terminal is in use.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether a thread panicked, which has left the terminal.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode, with the alternate screen. It is left on drop.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn enter() -> Result<Self, Failure> {
        leave_on_panic();
        let failed = |error: io::Error| {
            leave();
            Failure::new(format_args!("cannot use the terminal: {error}"))
        };
        IS_ENTERED.store(true, Ordering::SeqCst);
        enable_raw_mode().map_err(failed)?;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide).map_err(failed)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).map_err(failed)?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back as it was, once.
fn leave() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        // If the terminal is closed, there is nothing to give back.
        drop(execute!(io::stdout(), LeaveAlternateScreen, cursor::Show));
        drop(disable_raw_mode());
    }
}

/// Leaves the terminal before the message of a panic, whichever thread panics.
fn leave_on_panic() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if IS_ENTERED.load(Ordering::SeqCst) {
                HAS_PANICKED.store(true, Ordering::SeqCst);
                leave();
            }
            print(panic);
        }));
    });
}

/// Shows the state until the user quits.
pub(super) fn run(app: &mut App, reader: &mut Reader) -> Result<(), Failure> {
    let interrupt = Interrupt::watch()?;
    force_color_output(app.has_color);
    let mut screen = Screen::enter()?;
    let inputs = inputs()?;
    let mut is_changed = true;
    loop {
        if interrupt.is_set() {
            return Err(interrupt.failure());
        }
        if is_closed() {
            return Err(closed());
        }
        for (node, answer) in reader.answers() {
            app.take(node, answer);
            is_changed = true;
        }
        reader.follow(&app.wanted(), |node| app.task(node));
        if HAS_PANICKED.load(Ordering::SeqCst) {
            return Err(Failure::new("a thread ended unexpectedly; the message above says where"));
        }
        if std::mem::take(&mut is_changed) {
            let drawn = screen.terminal.draw(|frame| draw(frame, app));
            drawn.map_err(|error| failed("write to", &error))?;
        }
        let mut wait = WAITS[usize::from(!reader.is_busy())];
        // Several keys are one step: a key that is held down may come faster than the screen is drawn.
        while let Some(input) = next(&inputs, wait)? {
            wait = Duration::ZERO;
            is_changed = true;
            let flow = match input {
                Event::Key(key) if key.kind != KeyEventKind::Release => app.press(key),
                // A new size of the window is found where it is drawn.
                _ => Flow::Continue,
            };
            if flow == Flow::Quit {
                return Ok(());
            }
        }
    }
}

/// Keys and new sizes, from a thread that waits for them: it also waits in the middle of a sequence, and, in crossterm 0.29, for a
/// terminal that was closed.
fn inputs() -> Result<Receiver<io::Result<Event>>, Failure> {
    let (sender, receiver) = channel();
    let wait = move || {
        loop {
            let input = event::read();
            let is_last = input.is_err();
            if sender.send(input).is_err() || is_last {
                return;
            }
        }
    };
    let started = thread::Builder::new().name("tupelo-keys".to_owned()).spawn(wait);
    started.map_err(|error| Failure::new(format_args!("cannot start a thread that reads keys: {error}")))?;
    Ok(receiver)
}

/// The next key or size, if it comes in time.
fn next(inputs: &Receiver<io::Result<Event>>, wait: Duration) -> Result<Option<Event>, Failure> {
    let unread = |error: io::Error| failed("read from", &error);
    match inputs.recv_timeout(wait) {
        Ok(input) => input.map(Some).map_err(unread),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(unread(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Why the terminal cannot be used: it may have been closed meanwhile.
fn failed(verb: &str, error: &io::Error) -> Failure {
    if is_closed() { closed() } else { Failure::new(format_args!("cannot {verb} the terminal: {error}")) }
}

fn closed() -> Failure {
    Failure::new("the terminal was closed")
}

/// Whether the terminal was closed. A process that ignores SIGHUP learns it only so.
#[cfg(unix)]
fn is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

#[cfg(not(unix))]
fn is_closed() -> bool {
    false
}
