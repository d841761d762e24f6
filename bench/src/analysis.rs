//! The mass of three kaons as a histogram, in one loop over the engine's batches.
//!
//! The same as `analysis` in `bench/packages.py` and `bench/root_rival.hpp`, in the same order of operations, so that
//! all get the same counts.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use tupelo::reader::DEFAULT_BATCH_BYTES;

use crate::timing::{self, Report};
use crate::{Result, digest, open};

/// In MeV.
const KAON_MASS: f64 = 493.677;
const LOWEST: f64 = 5000.0;
const BIN_WIDTH: f64 = 10.0;
const BINS: usize = 60;
const MEMBERS: [&str; 6] = ["PX", "PY", "PZ", "ProbK", "ProbPi", "isMuon"];

/// One of the three particles in a batch.
struct Track<'a> {
    momentum: [&'a [f64]; 3],
    prob_k: &'a [f64],
    prob_pi: &'a [f64],
    is_muon: &'a [i32],
}

impl<'a> Track<'a> {
    /// The columns of the hadron with that index.
    fn new(batch: &'a RecordBatch, hadron: usize) -> Result<Self> {
        let column = |member: usize| batch.column(hadron * MEMBERS.len() + member);
        let doubles = |member: usize| -> Result<&'a [f64]> {
            let array = column(member).as_primitive_opt::<Float64Type>();
            Ok(array.ok_or_else(|| digest::wants(MEMBERS[member], column(member).data_type()))?.values())
        };
        let is_muon = column(5).as_primitive_opt::<Int32Type>();
        Ok(Self {
            momentum: [doubles(0)?, doubles(1)?, doubles(2)?],
            prob_k: doubles(3)?,
            prob_pi: doubles(4)?,
            is_muon: is_muon.ok_or_else(|| digest::wants(MEMBERS[5], column(5).data_type()))?.values(),
        })
    }

    fn is_kaon(&self, entry: usize) -> bool {
        self.is_muon[entry] == 0 && self.prob_k[entry] > 0.5 && self.prob_pi[entry] < 0.5
    }
}

fn fill(batch: &RecordBatch, counts: &mut [u64; BINS]) -> Result<()> {
    let tracks = [Track::new(batch, 0)?, Track::new(batch, 1)?, Track::new(batch, 2)?];
    for entry in 0..batch.num_rows() {
        if !tracks.iter().all(|track| track.is_kaon(entry)) {
            continue;
        }
        let momenta = tracks.each_ref().map(|track| track.momentum.map(|component| component[entry]));
        let [e1, e2, e3] = momenta.map(|[x, y, z]| (x * x + y * y + z * z + KAON_MASS * KAON_MASS).sqrt());
        let energy = e1 + e2 + e3;
        let [x, y, z] = [0, 1, 2].map(|axis| momenta[0][axis] + momenta[1][axis] + momenta[2][axis]);
        let mass = (energy * energy - (x * x + y * y + z * z)).max(0.0).sqrt();
        if mass >= LOWEST
            && let Some(count) = counts.get_mut(((mass - LOWEST) / BIN_WIDTH) as usize)
        {
            *count += 1;
        }
    }
    Ok(())
}

pub(crate) fn run(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, ntuple] = arguments else { return Err("analysis wants two arguments".into()) };
    let columns: Vec<String> = (1..=3).flat_map(|hadron| MEMBERS.map(|member| format!("H{hadron}_{member}"))).collect();
    let (mut report, counts) = timing::measure(repeat, || {
        let mut counts = [0; BINS];
        // The schema has the columns in the order of the file, the loop wants its own.
        let read = open(file, ntuple)?.read(&columns)?;
        let schema = read.arrow_schema();
        let order = columns.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        for batch in read.batches_of_bytes(DEFAULT_BATCH_BYTES)? {
            fill(&batch?.project(&order)?, &mut counts)?;
        }
        Ok(counts)
    })?;
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    report.answer.insert("counts".to_owned(), counts.join(" "));
    Ok(report)
}
