//! Times one reading request, without Python around it: `tupelo-bench FILE NTUPLE COLUMNS REPEAT [THREADS]`.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> tupelo::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, file, ntuple, columns, repeat, ..] = args.as_slice() else { return Ok(()) };
    let names: Vec<&str> = columns.split(',').collect();
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..=repeat.parse().unwrap_or(5) {
        let (wall, before) = (Instant::now(), cpu());
        let ntuple = tupelo::open(&format!("{file}:{ntuple}")).open()?;
        let read = match columns.as_str() {
            "*" => ntuple.read_all(),
            _ => ntuple.read(&names)?,
        };
        let batch = read.to_batch()?;
        bytes = batch.get_array_memory_size();
        drop(batch);
        times.push((wall.elapsed().as_secs_f64(), cpu() - before));
    }
    let times = &mut times[1..];
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (best, median) = (times[0], times[times.len() / 2]);
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!(
        "cpu min {:.4} median {:.4}; wall min {:.4} median {:.4}; {} MB",
        best.1,
        median.1,
        times[0].0,
        times[times.len() / 2].0,
        bytes / 1000000
    );
    Ok(())
}
