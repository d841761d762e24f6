//! Names of ATLAS's auxiliary stores and of their variables.

/// Whether a name is that of an auxiliary store, or of a variable of one. Athena ends them with `.` in trees (`XAux.`,
/// `XAuxDyn.y`), and with `:` in ntuples.
pub fn is_auxiliary(name: &str, end: char) -> bool {
    ["Aux", "AuxDyn"].iter().any(|store| name.contains(&format!("{store}{end}")))
}
