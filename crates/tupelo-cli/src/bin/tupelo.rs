//! The `tupelo` command as a program.

use std::env;
use std::process::ExitCode;

/// Keeps freed memory for a while, so that buffers of pages are reused and not cleared by the system each
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, unsafe_code, reason = "before any other thread runs")]
fn main() -> ExitCode {
    // Without a file for its log, libdaos writes it to stdout, between the data. Errors do not need it.
    if env::var_os("D_LOG_FILE").is_none() {
        // SAFETY: no other thread runs yet that could read the environment.
        unsafe { env::set_var("D_LOG_FILE", "/dev/null") };
    }
    ExitCode::from(tupelo_cli::run(env::args_os()))
}
