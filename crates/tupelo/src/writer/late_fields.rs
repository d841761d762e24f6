//! Fields that an ntuple gets later, with values for the entries that it has.

use arrow_array::RecordBatch;
use tupelo_pages::encode::StoredColumn;
use tupelo_schema::schema::Schema;

use super::cluster_builder::{ClusterBuilder, WriteProgress};
use super::committer::Committer;
use super::sealed::{ClusterPages, FullCluster};
use crate::reader::Ntuple;
use crate::{Error, Result};

/// Adds fields to an ntuple of a file that is updated, with values for all entries that it has:
/// [`FileWriter::append_fields`](super::FileWriter::append_fields). Readers see the ntuple either as it was or with the new
/// fields.
#[derive(Debug)]
pub struct FieldsWriter {
    committer: Committer,
    /// The open cluster, with the new fields only.
    builder: ClusterBuilder,
    /// The end of each cluster of the ntuple, in entries.
    ends: Vec<u64>,
    /// The new columns of each complete cluster.
    stored: Vec<Vec<StoredColumn>>,
    progress: WriteProgress,
}

impl FieldsWriter {
    pub(super) fn new(mut committer: Committer, ntuple: &Ntuple, fields: &Schema) -> Result<Self> {
        let begun = ends_of_clusters(ntuple).and_then(|ends| Ok((ends, committer.late_fields(fields)?)));
        match begun {
            Ok((ends, builder)) => {
                Ok(Self { committer, builder, ends, stored: Vec::new(), progress: WriteProgress::default() })
            }
            Err(error) => {
                // The first error is the one to report.
                let _abandoned = committer.abandon();
                Err(error)
            }
        }
    }

    /// Values of the next entries. The columns of the batch must be the new fields, in order.
    ///
    /// # Errors
    /// As [`NtupleWriter::write`](super::NtupleWriter::write), and invalid argument for more entries than the ntuple has.
    /// After any of them the fields cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let written = self.committer.check_usable().and_then(|()| self.append(batch));
        written.map_err(|error| self.committer.poison(error))
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let (all, mut start) = (batch.num_rows(), 0);
        while start < all {
            let Some(&end) = self.ends.get(self.stored.len()) else {
                let entries = self.ends.last().copied().unwrap_or(0);
                return Err(Error::invalid_argument(format!("found more values than its {entries} entries")));
            };
            let room = usize::try_from(end.saturating_sub(self.progress.entries)).unwrap_or(usize::MAX);
            let piece = batch.slice(start, room.min(all - start));
            self.builder.validate(std::slice::from_ref(&piece))?;
            let too_large = |_| Err(Error::limit("the values of a cluster take too many bytes"));
            self.builder.append(std::slice::from_ref(&piece), too_large)?;
            start += piece.num_rows();
            self.progress.entries += piece.num_rows() as u64;
            if self.progress.entries == end {
                self.end_cluster()?;
            }
        }
        Ok(())
    }

    fn end_cluster(&mut self) -> Result<()> {
        let (stored, progress) = (&mut self.stored, &mut self.progress);
        self.builder.flush(|FullCluster { pages, unpacked_bytes, stored_bytes, .. }| {
            let ClusterPages::Stored(columns) = pages else {
                return Err(Error::unsupported("fields cannot be added to ntuples in object stores"));
            };
            stored.push(columns);
            progress.clusters += 1;
            progress.unpacked_bytes += unpacked_bytes;
            progress.stored_bytes += stored_bytes;
            Ok(*progress)
        })
    }

    /// Adds the fields, which become visible when the file is finished.
    ///
    /// # Errors
    /// Invalid argument if entries lack values; storage errors, or an error if an earlier call failed.
    pub fn finish(&mut self) -> Result<WriteProgress> {
        let finish = |own: &mut Self| {
            own.committer.check_usable()?;
            if own.stored.len() < own.ends.len() {
                let (written, entries) = (own.progress.entries, own.ends.last().copied().unwrap_or(0));
                return Err(Error::invalid_argument(format!("found values for {written} of its {entries} entries")));
            }
            own.committer.add_columns(std::mem::take(&mut own.stored))?;
            own.committer.finish().map(|_| own.progress)
        };
        finish(self).map_err(|error| self.committer.poison(error))
    }

    /// Leaves the ntuple as it was.
    ///
    /// # Errors
    /// Invalid argument in a process other than the one that began.
    pub fn abandon(mut self) -> Result<()> {
        let abandoned = self.committer.abandon();
        abandoned.map_err(|error| self.committer.context(error))
    }
}

/// The end of each cluster.
///
/// # Errors
/// Unsupported if fields were added after clusters; corrupt if a page list is damaged.
fn ends_of_clusters(ntuple: &Ntuple) -> Result<Vec<u64>> {
    let (source, columns) = (ntuple.source(), ntuple.descriptor().columns().len());
    let mut ends = Vec::new();
    for group in 0..ntuple.descriptor().cluster_groups().len() {
        for cluster in source.group_clusters(group)? {
            let listed = source.listed_columns(&cluster)?;
            if listed < columns {
                let what = format!(
                    "cluster {} lists {listed} of {columns} columns: fields were added after it; copy the ntuple, \
                     and add the fields to the copy",
                    cluster.number
                );
                return Err(Error::unsupported(what));
            }
            ends.push(cluster.first_entry + cluster.entries);
        }
    }
    Ok(ends)
}
