//! Ntuples in a sink that is no ROOT file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use tupelo_format::envelope::{Footer, Header, PageList};
use tupelo_format::locator::Locator;

use super::WriteOptions;
use super::committer::{Committer, Place};
use crate::schema::Schema;
use crate::sink::{Links, PageSink, SealedPage, Stored};
use crate::{Error, Result};

/// Keeps every page and envelope as an object with a number of its own.
#[derive(Debug, Default)]
struct Objects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<u64, Vec<u8>>,
    next: u64,
    stored_bytes: u64,
    begun: Vec<String>,
    published: BTreeMap<String, Links>,
    checkpoints: usize,
}

impl Objects {
    fn put(&self, bytes: &[u8], stored_bytes: u64) -> Locator {
        let mut state = self.0.lock().unwrap();
        let location = state.next;
        state.next += 1;
        state.stored_bytes += bytes.len() as u64;
        state.objects.insert(location, bytes.to_vec());
        Locator::Object { location, bytes: stored_bytes }
    }

    fn get(&self, locator: &Locator) -> Vec<u8> {
        let Locator::Object { location, .. } = locator else { panic!("{locator}") };
        self.0.lock().unwrap().objects[location].clone()
    }

    fn published(&self, path: &str) -> Links {
        self.0.lock().unwrap().published[path]
    }
}

impl PageSink for Objects {
    fn name(&self) -> &str {
        "objects"
    }
    fn check_open(&self) -> Result<()> {
        Ok(())
    }
    fn position(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().stored_bytes)
    }
    fn begin(&self, path: &str, _: &str, _: Option<u16>) -> Result<()> {
        self.0.lock().unwrap().begun.push(path.to_owned());
        Ok(())
    }
    fn put_pages(&self, pages: &[SealedPage<'_>]) -> Result<Vec<Locator>> {
        Ok(pages.iter().map(|page| self.put(page.bytes, page.stored_bytes())).collect())
    }
    fn put_envelope(&self, envelope: &[u8]) -> Result<Locator> {
        Ok(self.put(envelope, envelope.len() as u64))
    }
    fn put_anchor(&self, name: &str, links: &Links) -> Result<(Locator, u32)> {
        let text = format!("{name}: {links:?}");
        Ok((self.put(text.as_bytes(), text.len() as u64), text.len() as u32))
    }
    fn publish(&self, path: &str, _: &str, links: &Links) -> Result<()> {
        self.0.lock().unwrap().published.insert(path.to_owned(), *links);
        Ok(())
    }
    fn release(&self, stored: Stored) {
        let locators = match stored {
            Stored::Envelope(locator) | Stored::Anchor(locator) => vec![locator],
            Stored::Pages(first, last) => vec![first.locator, last.locator],
        };
        for locator in locators {
            let Locator::Object { location, .. } = locator else { panic!("{locator}") };
            self.0.lock().unwrap().objects.remove(&location);
        }
    }
    fn checkpoint(&self) -> Result<()> {
        self.0.lock().unwrap().checkpoints += 1;
        Ok(())
    }
    fn end(&self, path: &str) {
        self.0.lock().unwrap().begun.retain(|begun| begun != path);
    }
    fn abandon(&self, path: &str) -> Result<()> {
        Err(Error::unsupported(path))
    }
    fn reported(&self) {}
}

fn numbers(range: std::ops::Range<i32>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    RecordBatch::try_from_iter([("x", numbers)]).unwrap()
}

/// The values of the only column, in the order of its clusters and pages.
fn values(sink: &Objects, links: &Links) -> Vec<i32> {
    let (header, checksum) = Header::read(&sink.get(&links.header.locator)).unwrap();
    assert_eq!(header.schema.fields.len(), 1);
    let footer = Footer::read(&sink.get(&links.footer.locator)).unwrap();
    let mut values = Vec::new();
    for group in &footer.cluster_groups {
        let list = PageList::read(sink.get(&group.page_list.locator).into(), checksum).unwrap();
        for cluster in 0..list.clusters().len() {
            for page in list.pages(cluster, 0).unwrap().unwrap().pages {
                let sealed = sink.get(&page.locator);
                let (stored, checksum) = sealed.split_last_chunk::<8>().unwrap();
                assert_eq!(u64::from_le_bytes(*checksum), tupelo_format::checksum::xxh3(stored));
                let Locator::Object { bytes, .. } = page.locator else { panic!("{}", page.locator) };
                assert_eq!((bytes, page.elements as usize), (stored.len() as u64, stored.len() / 4));
                values.extend(stored.chunks(4).map(|value| i32::from_le_bytes(value.try_into().unwrap())));
            }
        }
    }
    values
}

/// Nothing above the sink knows that pages lie in a file.
#[test]
fn an_ntuple_is_written_as_objects() {
    let sink = Arc::new(Objects::default());
    let schema = Schema::from_arrow(&numbers(0..1).schema()).unwrap();
    let options = WriteOptions::default().with_compression("none".parse().unwrap()).with_page_bytes(64);
    let place = Place::Listed("events".to_owned());
    let (mut committer, mut builder) = Committer::create(sink.clone(), place, &schema, options).unwrap();
    assert_eq!(sink.0.lock().unwrap().begun, ["events"]);
    for start in [0, 100] {
        let batch = numbers(start..start + 100);
        builder.check(&batch).unwrap();
        builder.append(&batch, |cluster| committer.commit(cluster)).unwrap();
        builder.flush(|cluster| committer.commit(cluster)).unwrap();
        committer.make_checkpoint().unwrap();
        let links = sink.published("events");
        assert_eq!(values(&sink, &links), (0..start + 100).collect::<Vec<_>>());
    }
    assert_eq!(sink.0.lock().unwrap().checkpoints, 2);
    let first = sink.published("events");
    let written = committer.finish().unwrap();
    assert_eq!((written.entries, written.clusters), (200, 2));
    // Nothing was new, so the envelopes are those of the checkpoint, and those before it are gone.
    assert_eq!(sink.published("events").footer, first.footer);
    let pages = 2 * 100_u64.div_ceil(16) as usize;
    // Header, footer, and one or two page lists: groups may have been joined.
    let envelopes = sink.0.lock().unwrap().objects.len() - pages;
    assert!((3..=4).contains(&envelopes), "{envelopes} envelopes");
    assert!(sink.0.lock().unwrap().begun.is_empty());
}
