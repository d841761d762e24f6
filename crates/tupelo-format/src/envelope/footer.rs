//! The footer envelope (format specification, "Footer Envelope").

use super::{
    EnvelopeType, FeatureFlags, MAX_ATTRIBUTE_SETS, MAX_CLUSTER_GROUPS, SchemaRecords, frame, name, unwrap, wrap,
};
use crate::locator::{EnvelopeLink, Locator};
use crate::wire::{Buffer, Cursor, Memory};
use crate::{Error, Result};

/// One cluster group, as listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterGroupRecord {
    /// First entry of its clusters.
    pub min_entry: u64,
    /// Entries covered.
    pub entry_span: u64,
    /// Number of clusters.
    pub clusters: u32,
    /// The group's page list.
    pub page_list: EnvelopeLink,
}

/// One linked attribute set, as listed (format 1.0.1.0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeSetRecord {
    /// Version of the attribute schema; other major versions are not readable.
    pub schema_major: u16,
    /// Minor version, for information.
    pub schema_minor: u16,
    /// Uncompressed bytes of the set's own anchor.
    pub anchor_length: u32,
    /// Where the set's anchor lies (the key's payload).
    pub anchor: Locator,
    /// Name of the set.
    pub name: String,
}

/// The footer envelope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Footer {
    /// Features in addition to the header's.
    pub feature_flags: FeatureFlags,
    /// Checksum of the header to which this footer belongs.
    pub header_checksum: u64,
    /// Fields and columns added after writing began.
    pub extension: SchemaRecords,
    /// Cluster groups, in order.
    pub cluster_groups: Vec<ClusterGroupRecord>,
    /// Attribute sets.
    pub attribute_sets: Vec<AttributeSetRecord>,
}

impl Footer {
    /// Reads a decompressed envelope.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Self::read_within(bytes, &Memory::unlimited())
    }

    /// As [`Footer::read`], with memory that is counted.
    pub fn read_within(bytes: &[u8], memory: &Memory) -> Result<Self> {
        let (cursor, _) = unwrap(bytes, EnvelopeType::Footer)?;
        Self::read_payload(&mut cursor.within(memory)).map_err(|e| e.within("footer"))
    }

    fn read_payload(cursor: &mut Cursor<'_>) -> Result<Self> {
        let feature_flags = FeatureFlags::read(cursor)?;
        feature_flags.check()?;
        Ok(Self {
            feature_flags,
            header_checksum: cursor.u64_le()?,
            extension: SchemaRecords::read(&mut frame::record(cursor)?).map_err(|e| e.within("schema extension"))?,
            cluster_groups: frame::read_list(
                cursor,
                "cluster group",
                40,
                MAX_CLUSTER_GROUPS,
                ClusterGroupRecord::read,
            )?,
            // Footers before format 1.0.1.0 end here.
            attribute_sets: match cursor.remaining() {
                0 => Vec::new(),
                _ => frame::read_list(cursor, "attribute set", 24, MAX_ATTRIBUTE_SETS, AttributeSetRecord::read)?,
            },
        })
    }

    /// Writes the envelope.
    pub fn write(&self) -> Vec<u8> {
        let mut buffer = Buffer::new();
        self.feature_flags.write(&mut buffer);
        buffer.u64_le(self.header_checksum);
        frame::write_record(&mut buffer, |b| self.extension.write(b));
        frame::write_list(&mut buffer, self.cluster_groups.len(), |b| {
            self.cluster_groups.iter().for_each(|group| group.write(b));
        });
        frame::write_list(&mut buffer, self.attribute_sets.len(), |b| {
            self.attribute_sets.iter().for_each(|set| set.write(b));
        });
        wrap(EnvelopeType::Footer, buffer.as_slice()).0
    }
}

impl ClusterGroupRecord {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        Ok(Self {
            min_entry: record.u64_le()?,
            entry_span: record.u64_le()?,
            clusters: record.u32_le()?,
            page_list: EnvelopeLink::read(&mut record)?,
        })
    }

    fn write(&self, buffer: &mut Buffer) {
        frame::write_record(buffer, |b| {
            b.u64_le(self.min_entry);
            b.u64_le(self.entry_span);
            b.u32_le(self.clusters);
            self.page_list.write(b);
        });
    }
}

impl AttributeSetRecord {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        let set = Self {
            schema_major: record.u16_le()?,
            schema_minor: record.u16_le()?,
            anchor_length: record.u32_le()?,
            anchor: Locator::read(&mut record)?,
            name: name(&mut record)?,
        };
        if set.name.is_empty() {
            return Err(Error::corrupt("attribute set has an empty name").at(record.offset()));
        }
        Ok(set)
    }

    fn write(&self, buffer: &mut Buffer) {
        frame::write_record(buffer, |b| {
            b.u16_le(self.schema_major);
            b.u16_le(self.schema_minor);
            b.u32_le(self.anchor_length);
            self.anchor.write(b);
            b.string_le(&self.name);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_read_back() {
        let footer = Footer {
            header_checksum: 77,
            cluster_groups: vec![ClusterGroupRecord {
                min_entry: 0,
                entry_span: 10,
                clusters: 2,
                page_list: EnvelopeLink { length: 99, locator: Locator::File { offset: 5, bytes: 50 } },
            }],
            attribute_sets: vec![AttributeSetRecord {
                schema_major: 1,
                schema_minor: 0,
                anchor_length: 78,
                anchor: Locator::File { offset: 500, bytes: 78 },
                name: "attrs".into(),
            }],
            ..Footer::default()
        };
        assert_eq!(Footer::read(&footer.write()), Ok(footer));
    }

    #[test]
    fn a_footer_of_format_1_0_0_has_no_attribute_sets_and_trailing_bytes_are_ignored() {
        let footer = Footer::default();
        let bytes = footer.write();
        let payload = &bytes[8..bytes.len() - 8];
        let (old, _) = wrap(EnvelopeType::Footer, &payload[..payload.len() - 12]);
        assert_eq!(Footer::read(&old), Ok(footer.clone()));
        let (future, _) = wrap(EnvelopeType::Footer, &[payload, &[1, 2, 3]].concat());
        assert_eq!(Footer::read(&future), Ok(footer));
    }
}
