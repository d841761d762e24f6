//! Memory that each thread uses again and again on the way from sealed pages to values.

use std::cell::RefCell;

use crate::{Error, Result};

/// What a thread keeps of each kind when it is done with a page, in bytes.
const KEPT_BYTES: usize = 4 << 20;

/// Room for one step each.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Pages as they are stored.
    pub(crate) sealed: Vec<u8>,
    /// A page that was decompressed.
    pub(crate) packed: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Lends the thread's memory; what `work` calls must not ask for it again.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        let done = work(scratch);
        for room in [&mut scratch.sealed, &mut scratch.packed] {
            if room.len() > KEPT_BYTES {
                *room = Vec::new();
            }
        }
        done
    })
}

/// Room for so many bytes, which hold anything.
pub(crate) fn sized(room: &mut Vec<u8>, bytes: u64) -> Result<&mut [u8]> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    if room.len() < wanted {
        // Exactly, and without the old and the new one at a time.
        *room = Vec::new();
        room.try_reserve_exact(wanted).map_err(|_| Error::limit(format!("no memory for a page of {bytes} bytes")))?;
        room.resize(wanted, 0);
    }
    Ok(&mut room[..wanted])
}
