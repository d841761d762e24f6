//! First inputs for the fuzz targets that do not take files: make_seeds FOLDER. Each target's layout stands in
//! `fuzz/fuzz_targets`.

use std::fs;
use std::path::{Path, PathBuf};

use conformance::bad::{self, Base};
use conformance::model::Stage;
use tupelo_format::compression::{self, Algorithm, Compression};
use tupelo_format::encoding::ColumnType;
use tupelo_format::envelope::EnvelopeType;

fn put(folder: &Path, target: &str, name: &str, bytes: &[u8]) {
    let folder = folder.join(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), bytes).expect("a seed");
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("make_seeds FOLDER"));
    let mut count = 0;
    for (number, base) in (0u8..).zip(Base::ALL) {
        for (kind, envelope) in (0u8..).zip([EnvelopeType::Header, EnvelopeType::Footer, EnvelopeType::PageList]) {
            // What the envelope holds is seen while it is put into a file.
            let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let mut model = base.model();
            let keep = std::rc::Rc::clone(&seen);
            model.edit_bytes(Stage::Payload(envelope), move |bytes| keep.borrow_mut().clone_from(bytes));
            model.build().expect("a file");
            let choice = kind + 3 * number;
            put(
                &folder,
                "envelope",
                &format!("{base:?}-{envelope:?}"),
                &[&[choice], seen.borrow().as_slice()].concat(),
            );
            count += 1;
        }
    }
    for bad in bad::all() {
        put(&folder, "container", bad.name, &[&[1], bad.bytes().as_ref()].concat());
        count += 1;
    }
    let packed: Vec<u8> = (0..96u8).collect();
    for column_type in ColumnType::ALL {
        for (codec, algorithm) in (0u8..).zip([Algorithm::Zlib, Algorithm::Lzma, Algorithm::Lz4, Algorithm::Zstd]) {
            let mut block = Vec::new();
            let compression = Compression::new(algorithm, 1).expect("level 1");
            compression::compress(compression, &[7; 96], &mut block).expect("a block");
            let bits = *column_type.bits_range().end() as u8;
            for (what, bytes) in [("plain", packed.as_slice()), ("block", block.as_slice()), ("payload", &block[9..])] {
                let head = [column_type.code() as u8, bits, codec, 96, 0];
                put(&folder, "page", &format!("{}-{algorithm}-{what}", column_type.name()), &[&head, bytes].concat());
                count += 1;
            }
        }
    }
    for seed in 0..64u8 {
        put(&folder, "records", &format!("{seed}"), &[seed, 0, 0, 0, 0, 0, 0, 0]);
        let decisions: Vec<u8> =
            (0..48).map(|i: u8| i.wrapping_mul(seed.wrapping_mul(2) | 1).wrapping_add(seed)).collect();
        put(&folder, "end_to_end", &format!("{seed}"), &[&[seed; 8], decisions.as_slice()].concat());
        count += 2;
    }
    println!("{count} seeds in {}", folder.display());
}
