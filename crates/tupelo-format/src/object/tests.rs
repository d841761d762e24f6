//! Objects that were streamed by hand, those of the real files, and damaged ones. What ROOT writes into streamer fields
//! is compared in `conformance/test_objects.py`.

use super::*;
use crate::ErrorKind;
use crate::container::tests::{real_files, run};
use crate::container::{list_objects, object_bytes, streamer_infos};

/// All objects of the real files that are no trees and no ntuples: class, bytes, bytes of the key, layouts.
fn real_objects() -> Vec<(String, Vec<u8>, u16, StreamerInfos)> {
    let mut all = Vec::new();
    for (_, file) in real_files() {
        let infos = run(&file, streamer_infos).unwrap();
        for object in run(&file, list_objects).unwrap() {
            let class = object.key.class_name.clone();
            if !matches!(class.as_str(), "TTree" | "TNtuple" | "ROOT::RNTuple" | "TDirectory" | "TDirectoryFile") {
                let bytes = run(&file, |fetched| object_bytes(fetched, &object.key)).unwrap();
                all.push((class, bytes, object.key.key_bytes, infos.clone()));
            }
        }
    }
    all
}

#[test]
fn real_objects_are_read() {
    for (class, bytes, key_bytes, infos) in real_objects() {
        let r = read_behind_key(&bytes, key_bytes, &class, &infos);
        println!(
            "{class}: {}",
            match r {
                Ok(_) => "ok".to_owned(),
                Err(e) => e.to_string(),
            }
        );
    }
}
