//! The `tupelo` command as a program.

use std::process::ExitCode;

/// Keeps freed memory for a while, so that buffers of pages are reused and not cleared by the system each
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(tupelo_cli::run(std::env::args_os()))
}
