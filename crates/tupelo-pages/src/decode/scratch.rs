//! Memory that each thread reuses on the way from sealed pages to values.

use std::cell::RefCell;

use crate::{Error, Result};

/// Bytes of each buffer that a thread keeps after a page.
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

/// Passes the thread's buffers to `work`. They are moved out of the cell, not borrowed, because a cancellation callback
/// may start another read on this thread.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take();
    let done = work(&mut scratch);
    for room in [&mut scratch.sealed, &mut scratch.packed] {
        if room.len() > KEPT_BYTES {
            *room = Vec::new();
        }
    }
    SCRATCH.set(scratch);
    done
}

/// Room for this many bytes, with unspecified content.
pub(crate) fn sized(room: &mut Vec<u8>, bytes: u64) -> Result<&mut [u8]> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    if room.len() < wanted {
        // Exactly this size, and without holding the old and the new buffer at the same time.
        *room = Vec::new();
        room.try_reserve_exact(wanted).map_err(|_| Error::limit(format!("cannot allocate a page of {bytes} bytes")))?;
        room.resize(wanted, 0);
    }
    Ok(&mut room[..wanted])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handler of a signal that read something while a page was decompressed would have panicked.
    #[test]
    fn nested_uses_do_not_share_scratch() {
        let kept = with_scratch(|outer| {
            outer.packed = vec![1; 10];
            with_scratch(|inner| {
                assert!(inner.packed.is_empty());
                inner.packed = vec![2; 20];
            });
            outer.packed.clone()
        });
        assert_eq!(kept, [1; 10]);
        with_scratch(|scratch| assert_eq!(scratch.packed, [1; 10]));
    }
}
