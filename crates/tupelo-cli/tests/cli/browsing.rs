//! `tupelo browse` in a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use vt100::{Color, Parser};

use super::objects::plots;
use super::{Place, command, tupelo};

/// Time limit for what the command draws, and for its end; many tests share few cores.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks at the screen.
const SOON: Duration = Duration::from_millis(10);
/// Lines and columns.
const SIZE: [u16; 2] = [30, 100];

/// A terminal with the command in it.
struct Terminal {
    keyboard: File,
    /// The side of the command.
    device: File,
    screen: Arc<Mutex<Parser>>,
    /// The thread that reads what is drawn, until the flag is set.
    drawing: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    before: Termios,
    child: Running,
}

/// A command, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The end of a run.
struct Ended {
    status: Option<i32>,
    /// What is left on the screen.
    screen: String,
    stderr: String,
}

fn window([ws_row, ws_col]: [u16; 2]) -> Winsize {
    Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }
}

fn length(letters: u16) -> NonZero<u16> {
    NonZero::new(letters).expect("a letter")
}

impl Terminal {
    fn run(arguments: &[&str]) -> Self {
        // Not the terminal of the tests, and not a file of the command.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal");
        let name = ptsname(&keyboard, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32);
        let device = options.open(name).expect("the terminal");
        tcsetwinsize(&device, window(SIZE)).expect("a size");
        let before = tcgetattr(&device).expect("its modes");
        let side = || Stdio::from(OwnedFd::from(device.try_clone().expect("the terminal")));
        let mut command = command(arguments);
        command
            .stdin(side())
            .stdout(side())
            .stderr(Stdio::piped())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        let child = Running(command.spawn().expect("the command starts"));
        let keyboard = File::from(keyboard);
        let screen = Arc::new(Mutex::new(Parser::new(length(SIZE[0]), length(SIZE[1]), 0)));
        let is_over = Arc::<AtomicBool>::default();
        let (mut drawn, onto, until) = (keyboard.try_clone().expect("it"), Arc::clone(&screen), Arc::clone(&is_over));
        let drawing = thread::spawn(move || {
            let (mut bytes, soon) = ([0; 4096], Timespec { tv_sec: 0, tv_nsec: 20_000_000 });
            while !until.load(Ordering::Relaxed) {
                let is_ready = poll(&mut [PollFd::new(&drawn, PollFlags::IN)], Some(&soon)).expect("a terminal") > 0;
                if is_ready && let Ok(count) = drawn.read(&mut bytes) {
                    onto.lock().expect("no panic").process(&bytes[..count]);
                }
            }
        });
        Self { keyboard, device, screen, drawing, is_over, before, child }
    }

    fn screen(&self) -> MutexGuard<'_, Parser> {
        self.screen.lock().expect("no panic")
    }

    /// The text on the screen.
    fn text(&self) -> String {
        self.screen().screen().contents()
    }

    /// Types, and waits for a text on the screen.
    #[track_caller]
    fn expect(&mut self, keys: &str, text: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal");
        let until = Instant::now() + TIMEOUT;
        while !self.text().contains(text) {
            assert!(Instant::now() < until, "no {text:?} after {keys:?}:\n{}", self.text());
            thread::sleep(SOON);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).expect("the command is running");
    }

    fn resize(&self, size: [u16; 2]) {
        tcsetwinsize(&self.device, window(size)).expect("a size");
        self.screen().screen_mut().set_size(length(size[0]), length(size[1]));
        self.signal(Signal::WINCH);
    }

    /// Types, waits for the end of the command, and checks that the terminal is as before.
    #[track_caller]
    fn end(mut self, keys: &str) -> Ended {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal");
        let (status, stderr) = ended(&mut self.child);
        let after = tcgetattr(&self.device).expect("its modes");
        assert_eq!((after.local_modes, after.input_modes), (self.before.local_modes, self.before.input_modes));
        assert_eq!((after.output_modes, after.control_modes), (self.before.output_modes, self.before.control_modes));
        // What it wrote last may still be on its way.
        thread::sleep(10 * SOON);
        let screen = self.screen().screen().clone();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", screen.contents());
        self.close();
        Ended { status, screen: screen.contents(), stderr }
    }

    /// Closes the terminal, and returns the command in it.
    fn close(self) -> Running {
        self.is_over.store(true, Ordering::Relaxed);
        self.drawing.join().expect("no panic");
        self.child
    }
}

/// Status and stderr of a command, when it has ended.
#[track_caller]
fn ended(Running(child): &mut Running) -> (Option<i32>, String) {
    let until = Instant::now() + TIMEOUT;
    let status = loop {
        match child.try_wait().expect("a status") {
            Some(status) => break status.code(),
            None => {
                assert!(Instant::now() < until, "the command goes on");
                thread::sleep(SOON);
            }
        }
    };
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("UTF-8");
    (status, stderr)
}

impl Ended {
    /// The run succeeded and left nothing on the screen.
    #[track_caller]
    fn ok(self) {
        assert_eq!((self.status, self.stderr.as_str(), self.screen.trim()), (Some(0), "", ""));
    }
}

/// A terminal with the page of a file.
fn opened() -> (Place, Terminal) {
    let place = Place::new();
    let mut terminal = Terminal::run(&["browse", &place.nanoaod()]);
    terminal.expect("", "Advice");
    (place, terminal)
}

#[test]
fn fields_are_browsed_with_keys() {
    let (_place, mut terminal) = opened();
    assert!(terminal.screen().screen().alternate_screen());
    // The first field is selected, and its values are read and drawn.
    terminal.expect("\x1b[B", "in all 500 entries");
    terminal.expect("/MET_p", "/MET_p   Enter keeps it");
    assert!(!terminal.text().contains("Muon_pt"));
    terminal.expect("\rj", "MET_pt");
    terminal.expect("", "deviation");
    terminal.expect("s", "s order: size");
    terminal.expect("?", "Ctrl-C");
    terminal.expect("x\x1b[C", "/MET_p   Esc shows all");
    terminal.expect("\x1b", "Muon_pt");
    terminal.end("q").ok();
}

#[test]
fn objects_of_a_file_are_browsed() {
    let place = Place::new();
    let file = plots(&place, &["mass", "dir/other"]);
    let mut terminal = Terminal::run(&["browse", &file]);
    // Directories, histograms and ntuples.
    terminal.expect("", "dir/");
    terminal.expect("g", "10 entries, mean 2");
    terminal.expect("jl", "other");
    terminal.expect("G", "3 entries in 1 field");
    terminal.end("\x03").ok();
    // One of them, and a directory, by their names.
    let mut terminal = Terminal::run(&["browse", &format!("{file}:mass")]);
    terminal.expect("", "10 entries, mean 2");
    terminal.end("\x1b").ok();
    let mut terminal = Terminal::run(&["browse", &format!("{file}:dir")]);
    terminal.expect("", "other");
    terminal.end("q").ok();
}

#[test]
fn the_terminal_is_left_on_signals() {
    let place = Place::new();
    let file = place.nanoaod();
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut terminal = Terminal::run(&["browse", &file]);
        terminal.expect("", "Advice");
        terminal.signal(signal);
        let ended = terminal.end("");
        assert_eq!((ended.status, ended.screen.trim()), (Some(status), ""));
        assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    }
}

/// Defect of crossterm 0.29: it reads a closed terminal again and again.
#[test]
fn the_command_ends_with_its_terminal() {
    let (_place, terminal) = opened();
    let (status, stderr) = ended(&mut terminal.close());
    assert!(status == Some(1) && stderr.contains("the terminal was closed"), "{stderr}");
}

#[test]
fn the_window_may_change_its_size() {
    let (_place, mut terminal) = opened();
    terminal.resize([5, 20]);
    terminal.expect("", "? help   q quit");
    terminal.expect("jj", "3/43");
    terminal.resize([1, 1]);
    terminal.resize([12, 40]);
    terminal.expect("", "Tab panel");
    terminal.expect("\t", "Stored");
    terminal.resize(SIZE);
    terminal.expect("", "deviation");
    terminal.expect("\tj", "4/43");
    terminal.end("q").ok();
}

/// Defect of crossterm 0.29 without `use-dev-tty`: a key that came with a new size waited for the next key.
#[test]
fn keys_that_come_with_a_new_size_are_not_left() {
    let (_place, mut terminal) = opened();
    for step in 2..40 {
        terminal.resize([20 + step % 10, 100]);
        terminal.expect("j", &format!(" {step}/43"));
    }
    terminal.end("q").ok();
}

#[test]
fn colours_are_an_addition() {
    let place = Place::new();
    let file = place.nanoaod();
    let is_coloured = |arguments: &[&str]| {
        let mut terminal = Terminal::run(&[&["browse", &file], arguments].concat());
        terminal.expect("", "q quit");
        let screen = terminal.screen().screen().clone();
        assert!(screen.cell(1, 5).is_some_and(vt100::Cell::inverse), "the selected line is reversed");
        terminal.end("q").ok();
        let cells = (0..SIZE[0]).flat_map(|line| (0..SIZE[1]).map(move |column| (line, column)));
        let mut cells = cells.filter_map(|(line, column)| screen.cell(line, column));
        cells.any(|cell| cell.fgcolor() != Color::Default || cell.bold() || cell.dim())
    };
    assert!(is_coloured(&[]));
    assert!(!is_coloured(&["--color", "never"]));
}

/// Errors before the first screen are those of other commands.
#[test]
fn files_that_cannot_be_opened_leave_the_terminal_alone() {
    let place = Place::new();
    let refused = |name: &str| {
        let ended = Terminal::run(&["browse", name]).end("");
        assert_eq!((ended.status, ended.screen.trim()), (Some(1), ""), "{}", ended.stderr);
        ended.stderr
    };
    assert!(refused(&place.path("missing.root")).contains("missing.root"));
    let file = place.nanoaod();
    let error = refused(&format!("{file}:Event"));
    assert!(error.contains("'Event'") && error.contains("'Events'") && error.contains("tupelo ls"), "{error}");
    let bytes = std::fs::read(&file).expect("a file");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("a file");
    let error = refused(&file);
    assert!(error.contains("error:") && error.contains("nanoaod.root"), "{error}");
}

/// Errors of a read are in the panel.
#[test]
fn damaged_pages_are_shown() {
    let place = Place::new();
    let file = place.nanoaod();
    let layout = tupelo(&["layout", "--json", &file]).json();
    let mut bytes = std::fs::read(&file).expect("a file");
    for region in layout["regions"].as_array().expect("regions").iter().filter(|region| region["what"] == "pages") {
        bytes[region["offset"].as_u64().expect("a number") as usize] ^= 1;
    }
    std::fs::write(&file, bytes).expect("a file");
    let mut terminal = Terminal::run(&["browse", &file]);
    terminal.expect("", "Advice");
    terminal.expect("j", "error: ");
    terminal.expect("", "`tupelo verify");
    terminal.end("q").ok();
}

#[test]
fn without_a_terminal_another_command_is_named() {
    let place = Place::new();
    let file = place.nanoaod();
    let error = tupelo(&["browse", &file]).fails(2);
    assert!(error.contains("is not a terminal") && error.contains(&format!("`tupelo inspect {file}`")), "{error}");
}
