//! Reading and writing at an offset of a file: `pread` and `pwrite` on Unix, seeks elsewhere.
//!
//! Both versions repeat interrupted reads and continue short ones. The end of the file is an error of kind
//! [`io::ErrorKind::UnexpectedEof`].

use std::fs::File;
use std::io::{self, IoSliceMut};

#[cfg(not(unix))]
pub(super) use seeking::Positioned;
#[cfg(unix)]
pub(super) use unix::Positioned;

/// The error of a read that hit the end of the file after `got` bytes.
fn ends_early(got: usize) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends after {got} bytes of the range"))
}

/// Allocates `len` bytes. Failure is an error instead of an abort.
fn room(len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(bytes)
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::FileExt;

    use rustix::buffer::spare_capacity;
    use rustix::io::{Errno, pread, preadv};

    use super::{File, IoSliceMut, ends_early, io, room};

    /// Maximum number of slices in one call: 1024 in Linux; POSIX guarantees 16.
    const MAX_PIECES: usize = 16;

    /// A file that is read and written at explicit offsets.
    #[derive(Debug)]
    pub(in super::super) struct Positioned(File);

    impl Positioned {
        pub(in super::super) fn new(file: File) -> Self {
            Self(file)
        }

        pub(in super::super) fn file(&self) -> &File {
            &self.0
        }

        /// Exactly `len` bytes; the memory is not cleared first, unlike with `read_exact_at`.
        pub(in super::super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
            let mut bytes = room(len)?;
            while bytes.len() < len {
                let at = offset + bytes.len() as u64;
                match pread(&self.0, spare_capacity(&mut bytes), at) {
                    Ok(0) => return Err(ends_early(bytes.len())),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            // The capacity may be larger than requested.
            bytes.truncate(len);
            Ok(bytes)
        }

        /// Fills all slices, one after the other, from `offset`.
        pub(in super::super) fn read_into(&self, offset: u64, pieces: &mut [&mut [u8]]) -> io::Result<()> {
            let mut pieces: Vec<IoSliceMut<'_>> = pieces.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
            let (mut rest, mut got) = (&mut pieces[..], 0);
            // Empty slices are skipped, and the number of slices in one call is limited.
            IoSliceMut::advance_slices(&mut rest, 0);
            while !rest.is_empty() {
                let few = rest.len().min(MAX_PIECES);
                match preadv(&self.0, &mut rest[..few], offset + got as u64) {
                    Ok(0) => return Err(ends_early(got)),
                    Ok(more) => {
                        got += more;
                        IoSliceMut::advance_slices(&mut rest, more);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        }

        /// One call, which may write fewer bytes than given.
        pub(in super::super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
            self.0.write_at(bytes, offset)
        }
    }
}

/// Also compiled and tested on Unix, where it is not used.
#[cfg(any(test, not(unix)))]
mod seeking {
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::sync::{Mutex, PoisonError};

    use super::{File, ends_early, io, room};

    /// A file that is read and written at explicit offsets, one call at a time; the cursor does not change.
    #[derive(Debug)]
    pub(in super::super) struct Positioned {
        file: File,
        turn: Mutex<()>,
    }

    impl Positioned {
        pub(in super::super) fn new(file: File) -> Self {
            Self { file, turn: Mutex::new(()) }
        }

        pub(in super::super) fn file(&self) -> &File {
            &self.file
        }

        pub(in super::super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
            let mut bytes = room(len)?;
            self.at(offset, |file| file.take(len as u64).read_to_end(&mut bytes))?;
            if bytes.len() == len { Ok(bytes) } else { Err(ends_early(bytes.len())) }
        }

        /// Fills all slices, one after the other, from `offset`.
        pub(in super::super) fn read_into(&self, offset: u64, pieces: &mut [&mut [u8]]) -> io::Result<()> {
            self.at(offset, |mut file| pieces.iter_mut().try_for_each(|piece| file.read_exact(piece)))
        }

        /// One call, which may write fewer bytes than given.
        pub(in super::super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
            self.at(offset, |mut file| file.write(bytes))
        }

        fn at<T>(&self, offset: u64, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut file = &self.file;
            let cursor = file.stream_position()?;
            file.seek(SeekFrom::Start(offset))?;
            let result = work(file);
            file.seek(SeekFrom::Start(cursor))?;
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    macro_rules! twin_laws {
        ($name:ident, $twin:ty) => {
            #[test]
            fn $name() {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(b"0123456789").unwrap();
                file.seek(SeekFrom::Start(4)).unwrap();
                let twin = <$twin>::new(file);
                assert_eq!(twin.read(2, 5).unwrap(), b"23456");
                assert_eq!(twin.read(2, 0).unwrap(), b"");
                assert_eq!(twin.read(7, 4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
                assert_eq!(twin.read(0, usize::MAX).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
                let mut pieces = [[0; 1]; 20];
                let mut few: Vec<&mut [u8]> = vec![&mut []];
                few.extend(pieces.iter_mut().take(7).map(|piece| &mut piece[..]));
                twin.read_into(3, &mut few).unwrap();
                assert_eq!(pieces[..7].concat(), b"3456789");
                let mut all: Vec<&mut [u8]> = pieces.iter_mut().map(|piece| &mut piece[..]).collect();
                assert_eq!(twin.read_into(0, &mut all).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
                twin.read_into(50, &mut [&mut []]).unwrap();
                assert_eq!(twin.write(8, b"abc").unwrap(), 3);
                assert_eq!(twin.read(0, 11).unwrap(), b"01234567abc");
                assert_eq!(twin.file().stream_position().unwrap(), 4);
            }
        };
    }
    #[cfg(unix)]
    twin_laws!(unix_reads_and_writes_in_place, unix::Positioned);
    twin_laws!(seeking_reads_and_writes_in_place, seeking::Positioned);
}
