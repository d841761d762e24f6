//! Seconds, and what else is reported.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Instant;

use arrow_array::RecordBatch;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::{Result, digest};

/// What came of one mode.
#[derive(Debug, Default)]
pub(crate) struct Report {
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
    /// By the last call; none where the system does not tell.
    read_bytes: Option<u64>,
    pub(crate) answer: BTreeMap<String, String>,
    answer_bytes: u64,
}

impl Report {
    /// With a batch as the answer.
    pub(crate) fn with_batch(mut self, batch: &RecordBatch) -> Result<Self> {
        (self.answer, self.answer_bytes) = digest::of(batch)?;
        Ok(self)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "read_bytes": self.read_bytes.unwrap_or(0),
            "answer": self.answer,
            "answer_bytes": self.answer_bytes,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [cpu, wall] = [&self.cpu_seconds, &self.seconds].map(|seconds| {
            let mut sorted = seconds.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
            (at(0), at(sorted.len() / 2))
        });
        let mib = self.answer_bytes >> 20;
        write!(f, "cpu min {:.4} median {:.4}; wall min {:.4} median {:.4}; {mib} MiB", cpu.0, cpu.1, wall.0, wall.1)
    }
}

/// Calls once and then `repeat` times; gives what the last call gave.
pub(crate) fn measure<T>(repeat: usize, mut call: impl FnMut() -> Result<T>) -> Result<(Report, T)> {
    let mut report = Report::default();
    let mut result = call()?;
    for _ in 0..repeat {
        drop(result);
        let (bytes, cpu, begin) = (read_bytes(), cpu_seconds(), Instant::now());
        result = call()?;
        report.seconds.push(begin.elapsed().as_secs_f64());
        report.cpu_seconds.push(cpu_seconds() - cpu);
        report.read_bytes = read_bytes().zip(bytes).map(|(after, before)| after - before);
    }
    Ok((report, result))
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes that this process has read by system calls (proc_pid_io(5), `rchar`).
fn read_bytes() -> Option<u64> {
    fs::read_to_string("/proc/self/io").ok()?.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}
