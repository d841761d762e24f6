//! Reads what the screen lacks, in threads of their own, and cancels what it does not need any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tupelo::reader::Object;
use tupelo::{File, cancellable};

use super::super::head::drawing::{Labels, Plot};
use super::super::head::show::drawn;
use super::contents::Opened;
use super::outline::NodeId;
use super::values::{self, Wanted};
use crate::failure::Failure;

/// How long the selection must stay before what it shows is read.
const PAUSE: Duration = Duration::from_millis(80);

/// What is read for a node.
#[derive(Debug)]
pub(super) enum Task {
    /// The metadata of an ntuple or tree, by its name.
    Table(String),
    /// An object that is drawn.
    Object(Object),
    /// Values of a field.
    Values(Wanted),
}

/// What was read.
#[derive(Debug)]
pub(super) enum Answer {
    Table(Result<Arc<Opened>, Failure>),
    Plot(Result<(Plot, Labels), Failure>),
    /// Entries that were read, and of how many.
    Progress(u64, u64),
}

/// A running task. It is cancelled when it is dropped.
#[derive(Debug)]
struct Job {
    number: u64,
    node: NodeId,
    is_cancelled: Arc<AtomicBool>,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// The running tasks of a file.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    jobs: Vec<Job>,
    /// The number of jobs so far.
    started: u64,
    /// The first node that was wanted last, and since when.
    first: (Option<NodeId>, Instant),
    sender: Sender<(u64, Answer)>,
    receiver: Receiver<(u64, Answer)>,
}

impl Reader {
    pub(super) fn new(file: File) -> Self {
        let (sender, receiver) = channel();
        Self { file, jobs: Vec::new(), started: 0, first: (None, Instant::now()), sender, receiver }
    }

    /// Whether something is read, or soon will be.
    pub(super) fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || self.first.0.is_some()
    }

    /// Cancels all tasks but those of these nodes, and starts those that are new: that of the first node once it has stayed for
    /// a moment, the others at once.
    pub(super) fn follow(&mut self, wanted: &[NodeId], task: impl Fn(NodeId) -> Option<Task>) {
        self.jobs.retain(|job| wanted.contains(&job.node));
        if self.first.0 != wanted.first().copied() {
            self.first = (wanted.first().copied(), Instant::now());
        }
        for (place, node) in wanted.iter().enumerate() {
            let is_early = place == 0 && self.first.1.elapsed() < PAUSE;
            if is_early || self.jobs.iter().any(|job| job.node == *node) {
                continue;
            }
            if let Some(task) = task(*node) {
                self.start(*node, task);
            }
        }
    }

    fn start(&mut self, node: NodeId, task: Task) {
        self.started += 1;
        let (number, is_cancelled) = (self.started, Arc::new(AtomicBool::new(false)));
        let (file, sender, flag) = (self.file.clone(), self.sender.clone(), Arc::clone(&is_cancelled));
        let work = move || {
            let watched = Arc::clone(&flag);
            // Without a receiver, the command has ended.
            let tell = |answer| drop(sender.send((number, answer)));
            let answer = cancellable(move || watched.load(Ordering::Relaxed), || run(&file, task, &tell));
            tell(answer);
        };
        let started = thread::Builder::new().name("tupelo-browse".to_owned()).spawn(work);
        self.jobs.push(Job { number, node, is_cancelled });
        if let Err(error) = started {
            let failed = Failure::new(format_args!("cannot start a thread that reads: {error}"));
            drop(self.sender.send((number, Answer::Plot(Err(failed)))));
        }
    }

    /// What has come meanwhile for nodes that still need it.
    pub(super) fn answers(&mut self) -> Vec<(NodeId, Answer)> {
        let mut answers = Vec::new();
        while let Ok((number, answer)) = self.receiver.try_recv() {
            let Some(place) = self.jobs.iter().position(|job| job.number == number) else { continue };
            let node = self.jobs[place].node;
            if !matches!(answer, Answer::Progress(..)) {
                self.jobs.swap_remove(place);
            }
            answers.push((node, answer));
        }
        answers
    }
}

fn run(file: &File, task: Task, tell: &dyn Fn(Answer)) -> Answer {
    match task {
        Task::Table(name) => Answer::Table(Opened::read(file, &name).map(Arc::new)),
        Task::Object(object) => Answer::Plot(drawn(file, &object).and_then(|drawn| {
            drawn.ok_or_else(|| Failure::new(format_args!("'{}' is not a {}", object.path, object.class_name)))
        })),
        Task::Values(wanted) => Answer::Plot(values::plot(&wanted, |read, of| tell(Answer::Progress(read, of)))),
    }
}
