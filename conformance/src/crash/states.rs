//! The files that can be left of a recording.

use std::ops::Range;

use bytes::Bytes;
use tupelo_storage::adapter::DiskCall;

use super::Recording;
use crate::mutate::Random;

/// What disks write as a whole or not at all, in bytes.
pub const SECTOR_BYTES: u64 = 512;
/// Appends up to this many bytes are torn at every byte, longer ones at every sector and at some bytes between.
const TORN_EVERYWHERE_BYTES: usize = 128;
/// How many places between sectors.
const TORN_ANYWHERE: usize = 80;
/// Of recordings with more calls than these, only some appends are looked at, and torn at one place.
const MANY_CALLS: usize = 150;
/// So many pieces that wait for a sync are lost in all combinations, more of them in random ones.
const EXHAUSTIVE_PIECES: usize = 9;
/// How many.
const RANDOM_SUBSETS: usize = 150;
/// And how many of pieces that are more than these, in large files.
const MANY_PIECES: (usize, usize) = (2000, 15);

/// How a state came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The process ended between two calls.
    Between,
    /// It ended inside an append, after this many of its bytes.
    TornAppend(usize),
    /// It ended inside of an overwrite.
    TornOverwrite(usize),
    /// Power failed: only some of the sectors that waited for a sync were written.
    Power {
        /// Whether a partial write is an overwrite. Readers never see a partial append.
        is_torn: bool,
    },
}

/// What a crash left.
#[derive(Debug, Clone)]
pub struct State {
    /// The file.
    pub file: Bytes,
    /// How many calls had surely been done.
    pub calls: usize,
    /// Why it is as it is.
    pub cause: Cause,
}

/// Every state in which a process that dies can leave the file: between two calls, and inside of each.
pub fn killed(recording: &Recording, mut each: impl FnMut(State)) {
    let mut file = recording.old.to_vec();
    let mut random = Random::new(recording.calls.len() as u64);
    let stride = recording.calls.len() / MANY_CALLS + 1;
    for (done, call) in recording.calls.iter().enumerate() {
        if matches!(call, DiskCall::Append(_)) && done % stride != 0 {
            call.replay(&mut file);
            continue;
        }
        each(State { file: file.clone().into(), calls: done, cause: Cause::Between });
        let (bytes, is_overwrite) = match call {
            DiskCall::Append(bytes) => (bytes, false),
            DiskCall::Overwrite { bytes, .. } => (bytes, true),
            DiskCall::Sync | DiskCall::Truncate(_) => {
                call.replay(&mut file);
                continue;
            }
        };
        let mut cuts = cuts(bytes.len(), file.len() as u64, is_overwrite, &mut random);
        if stride > 1 && !is_overwrite {
            cuts.truncate(1);
        }
        for cut in cuts {
            let part = match call {
                DiskCall::Overwrite { offset, .. } => {
                    DiskCall::Overwrite { offset: *offset, bytes: bytes.slice(..cut) }
                }
                _ => DiskCall::Append(bytes.slice(..cut)),
            };
            let mut torn = file.clone();
            part.replay(&mut torn);
            let cause = if is_overwrite { Cause::TornOverwrite(cut) } else { Cause::TornAppend(cut) };
            each(State { file: torn.into(), calls: done, cause });
        }
        call.replay(&mut file);
    }
    each(State { file: file.into(), calls: recording.calls.len(), cause: Cause::Between });
}

/// Where a write is torn.
fn cuts(len: usize, offset: u64, everywhere: bool, random: &mut Random) -> Vec<usize> {
    if everywhere || len <= TORN_EVERYWHERE_BYTES {
        return (1..len).collect();
    }
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
    let mut cuts: Vec<usize> = (first..len).step_by(SECTOR_BYTES as usize).collect();
    cuts.extend((0..TORN_ANYWHERE).map(|_| 1 + random.below(len as u64 - 1) as usize));
    cuts
}

/// A part of a write that lies in one sector.
#[derive(Debug, Clone)]
struct Piece {
    offset: u64,
    bytes: Bytes,
    /// The call that it is a part of, if that overwrites and has other parts.
    overwrite: Option<usize>,
}

/// States in which a power failure can leave the file: of the writes since the last sync any may be lost, each sector
/// by itself, and the file's length may be old or new. All combinations where they are few, else a random choice.
pub fn unpowered(recording: &Recording, mut each: impl FnMut(State)) {
    let mut durable = recording.old.to_vec();
    let mut start = 0;
    while start < recording.calls.len() {
        let end = recording.calls[start..].iter().position(|call| *call == DiskCall::Sync);
        let end = end.map_or(recording.calls.len(), |sync| start + sync);
        let mut random = Random::new((start + end) as u64);
        group(&durable, &recording.calls, start..end, &mut random, &mut each);
        recording.calls[start..end].iter().for_each(|call| call.replay(&mut durable));
        start = end + 1;
    }
}

/// The states between two syncs.
fn group(durable: &[u8], calls: &[DiskCall], range: Range<usize>, random: &mut Random, each: &mut impl FnMut(State)) {
    let mut len = durable.len() as u64;
    let mut pieces: Vec<Piece> = Vec::new();
    for at in range.clone() {
        match &calls[at] {
            DiskCall::Append(bytes) => {
                pieces.extend(sectors(len, bytes, None));
                len += bytes.len() as u64;
            }
            DiskCall::Overwrite { offset, bytes } => {
                let mut parts = sectors(*offset, bytes, Some(at));
                if let [whole] = parts.as_mut_slice() {
                    whole.overwrite = None;
                }
                pieces.extend(parts);
            }
            DiskCall::Truncate(to) => len = *to,
            DiskCall::Sync => {}
        }
    }
    let mut try_subset = |kept: &[bool], is_long: bool| {
        let mut file = durable.to_vec();
        for piece in pieces.iter().zip(kept).filter(|(_, kept)| **kept).map(|(piece, _)| piece) {
            DiskCall::Overwrite { offset: piece.offset, bytes: piece.bytes.clone() }.replay(&mut file);
        }
        if is_long {
            file.resize(file.len().max(len as usize), 0);
        }
        let parts = |wanted: bool| {
            let these = pieces.iter().zip(kept).filter(move |(_, kept)| **kept == wanted);
            these.filter_map(|(piece, _)| piece.overwrite).collect::<Vec<_>>()
        };
        let there = parts(true);
        let is_torn = parts(false).iter().any(|call| there.contains(call));
        each(State { file: file.into(), calls: range.start, cause: Cause::Power { is_torn } });
    };
    let count = pieces.len();
    if count <= EXHAUSTIVE_PIECES {
        for subset in 0..1u32 << count {
            let kept: Vec<bool> = (0..count).map(|piece| subset >> piece & 1 == 1).collect();
            try_subset(&kept, false);
            try_subset(&kept, true);
        }
        return;
    }
    for subset in 0..if count > MANY_PIECES.0 { MANY_PIECES.1 } else { RANDOM_SUBSETS } {
        // Nearly all, about half, or nearly none of the sectors are lost.
        let one_in = [count as u64, 2, 20][subset % 3];
        let is_inverse = subset % 2 == 0;
        let kept: Vec<bool> = (0..count).map(|_| (random.below(one_in) == 0) != is_inverse).collect();
        try_subset(&kept, subset % 5 == 0);
    }
}

/// A write, cut where sectors end.
fn sectors(offset: u64, bytes: &Bytes, overwrite: Option<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let here = offset + at as u64;
        let len = ((SECTOR_BYTES - here % SECTOR_BYTES) as usize).min(bytes.len() - at);
        pieces.push(Piece { offset: here, bytes: bytes.slice(at..at + len), overwrite });
        at += len;
    }
    pieces
}
