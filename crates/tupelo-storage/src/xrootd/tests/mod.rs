//! Tests against the `xrootd` server, and against servers that follow a script.

mod fake;
mod real;
mod script;
mod server;
mod writing;
