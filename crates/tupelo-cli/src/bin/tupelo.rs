//! The `tupelo` command as a program.

use std::process::ExitCode;

/// Keeps what was freed for a moment: the memory of pages is used again, and need not be cleared by the system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(tupelo_cli::run(std::env::args_os()))
}
