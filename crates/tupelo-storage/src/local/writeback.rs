//! The system begins to store what is written to a file before the file is synced: it does so while the next bytes are made.

use std::fs::File;

/// Bytes that are appended until the system begins to store them.
const WRITEBACK_BYTES: usize = 8 << 20;

/// Counts what is appended to a file.
#[derive(Debug, Default)]
pub(super) struct Writeback {
    waiting_bytes: usize,
}

impl Writeback {
    /// Notes that `count` bytes were appended, and lets the system begin where they are many.
    pub(super) fn appended(&mut self, count: usize, file: &File) {
        self.waiting_bytes += count;
        if self.waiting_bytes >= WRITEBACK_BYTES {
            self.waiting_bytes = 0;
            begin(file);
        }
    }
}

/// A hint: the sync of the file reports what fails.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "neither the standard library nor rustix has this system call")]
fn begin(file: &File) {
    use std::os::fd::AsRawFd;

    // All bytes from the first on; those that are being stored are passed over.
    let (first, to_the_end) = (0, 0);
    // SAFETY: the call gets a descriptor, which is open as long as the file, and no memory.
    unsafe { libc::sync_file_range(file.as_raw_fd(), first, to_the_end, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn begin(_: &File) {}
