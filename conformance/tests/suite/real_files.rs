//! Every real ntuple beside the project reads the same in whichever way, survives a copy, and has nothing to complain of.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use bytes::Bytes;
use conformance::mutate::Random;
use conformance::{memory, summary};
use tupelo::ops::copy::{Pages, copy};
use tupelo::ops::verify::verify;
use tupelo::{Compression, FileWriter, Ntuple, WriteOptions};
use tupelo_storage::{MemoryFile, MemorySink};

fn ways(ntuple: &Ntuple) -> RecordBatch {
    let all = ntuple.read_all().to_batch().expect("all data");
    assert_eq!(all.num_rows() as u64, ntuple.entries());
    let mut random = Random::new(ntuple.entries());
    for _ in 0..3 {
        let start = random.below(ntuple.entries() + 1);
        let count = random.below(ntuple.entries() - start + 1);
        let range = ntuple.read_all().entries(start..start + count).to_batch().expect("a range");
        assert_eq!(range, all.slice(start as usize, count as usize), "entries {start}..{}", start + count);
    }
    let mut at = 0;
    for batch in ntuple.read_all().batches(1 + ntuple.entries() / 7).expect("batches") {
        let batch = batch.expect("a batch");
        assert_eq!(batch, all.slice(at, batch.num_rows()));
        at += batch.num_rows();
    }
    assert_eq!(at, all.num_rows());
    all
}

fn copied(ntuple: &Ntuple, pages: Pages) -> tupelo::Result<Bytes> {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "copy.root")?;
    let options = WriteOptions::default().with_compression(Compression::NONE).with_page_bytes(1000);
    let mut go_on = |_| ControlFlow::Continue(());
    copy(ntuple.read_all(), &file, memory::NAME, options, pages, &mut go_on)?;
    file.finish()?;
    Ok(target.bytes().expect("its bytes"))
}

#[test]
fn real_files_read_the_same_in_every_way() {
    let (mut files, mut ntuples, mut values) = (0, 0, 0);
    for path in summary::real_files() {
        let bytes = Bytes::from(std::fs::read(&path).expect("a file"));
        let file = memory::file(&bytes).expect("a ROOT file");
        let names = file.ntuple_names().expect("its directories");
        files += usize::from(!names.is_empty());
        for name in names {
            let what = format!("{}:{name}", path.display());
            println!("{what}");
            let ntuple = file.ntuple(Some(&name)).expect("an ntuple");
            let all = ways(&ntuple);
            let report = verify(&file, Some(&name), &mut |_| {}).expect("a report");
            assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
            ntuples += 1;
            values += all.num_rows() * all.num_columns();
            for pages in [Pages::Encode, Pages::Keep] {
                let copy = copied(&ntuple, pages).expect("a copy");
                let again = memory::ntuple(&copy).expect("a copy").read_all().to_batch().expect("its data");
                // Names of types may be spelled in another way.
                let plain = |batch: &RecordBatch| {
                    let values = batch.columns().iter().map(|column| column.to_data());
                    values.map(|data| (data.len(), data.null_count())).collect::<Vec<_>>()
                };
                assert_eq!(plain(&again), plain(&all), "{what}");
                if pages == Pages::Keep {
                    assert!(again.columns().iter().zip(all.columns()).all(|(own, other)| own == other), "{what}");
                }
            }
        }
    }
    let line =
        format!("{files} real files with {ntuples} ntuples read in every way, {values} values of top-level fields");
    summary::note("real_files", &line);
}
