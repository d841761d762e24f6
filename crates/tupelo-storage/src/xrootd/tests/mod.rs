//! Tests against the `xrootd` server, and against servers that follow a script.

mod real;
mod server;
