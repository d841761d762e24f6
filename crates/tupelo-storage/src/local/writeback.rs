//! Writeback: the system begins to store a file on its disk while more is appended, so that the sync at the end waits for less.

use std::fs::File;

/// Number of appended bytes after which writeback begins.
const WRITEBACK_BYTES: usize = 8 << 20;

/// Counts what is appended to a file.
#[derive(Debug, Default)]
pub(super) struct Writeback {
    waiting_bytes: usize,
}

impl Writeback {
    /// Counts appended bytes, and begins the writeback of the file when they are many.
    pub(super) fn appended(&mut self, count: usize, file: &File) {
        self.waiting_bytes += count;
        if self.waiting_bytes >= WRITEBACK_BYTES {
            self.waiting_bytes = 0;
            begin(file);
        }
    }
}

/// Begins the writeback, without waiting for it. The sync of the file reports what fails.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "neither the standard library nor rustix has this system call")]
fn begin(file: &File) {
    use std::os::fd::AsRawFd;

    // From the first byte to the end: the system knows which bytes it has not begun to store.
    let (first, to_the_end) = (0, 0);
    // SAFETY: the call gets a descriptor, which is open as long as the file, and no memory.
    unsafe { libc::sync_file_range(file.as_raw_fd(), first, to_the_end, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn begin(_: &File) {}
