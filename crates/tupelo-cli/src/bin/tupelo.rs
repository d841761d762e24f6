//! The `tupelo` command as a program.

use std::process::ExitCode;

/// Keeps freed memory for a while, so that buffers of pages are reused and not cleared by the system each
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Starts the program again with a log file for libdaos, if an argument names a container: without one, libdaos writes
/// its log to stdout, between the data. Errors do not need it.
#[cfg(unix)]
fn keep_daos_log_out_of_data() {
    use std::env::{args_os, current_exe, var_os};
    use std::os::unix::process::CommandExt;

    let names_container = args_os().any(|argument| argument.to_string_lossy().contains("daos://"));
    if let (true, None, Ok(program)) = (names_container, var_os("D_LOG_FILE"), current_exe()) {
        let mut again = std::process::Command::new(program);
        again.arg0(args_os().next().unwrap_or_default()).args(args_os().skip(1)).env("D_LOG_FILE", "/dev/null");
        // It returns after an error only; then the log stays where it is.
        let _ = again.exec();
    }
}

fn main() -> ExitCode {
    #[cfg(unix)]
    keep_daos_log_out_of_data();
    ExitCode::from(tupelo_cli::run(std::env::args_os()))
}
