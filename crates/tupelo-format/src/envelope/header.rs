//! The header envelope and the schema description that header and footer share (format specification, "Header Envelope").

use super::{EnvelopeType, FeatureFlags, MAX_COLUMNS, MAX_FIELDS, frame, name, unwrap, wrap};
use crate::Result;
use crate::wire::{Buffer, Cursor, Memory};

/// Structural roles of fields.
pub mod role {
    /// Leaf, or a wrapper around one subfield (fixed array, atomic, enum).
    pub const PLAIN: u16 = 0x00;
    /// Collection.
    pub const COLLECTION: u16 = 0x01;
    /// Record.
    pub const RECORD: u16 = 0x02;
    /// Variant.
    pub const VARIANT: u16 = 0x03;
    /// Bytes written by a ROOT streamer.
    pub const STREAMER: u16 = 0x04;
}

/// Bits of the flags of a field record; others are ignored, as the format demands.
pub mod field_flag {
    /// `array_size` copies of the field for every one of its parent.
    pub const REPETITIVE: u16 = 0x01;
    /// A view of another field's columns.
    pub const PROJECTED: u16 = 0x02;
    /// Carries ROOT's checksum of the class.
    pub const CHECKSUM: u16 = 0x04;
    /// A collection of records that the C++ side keeps as a structure of arrays (format 1.0.2.0).
    pub const SOA: u16 = 0x08;
}

/// Bits of the flags of a column record.
pub mod column_flag {
    /// The column begins at `first_element`.
    pub const DEFERRED: u16 = 0x01;
    /// The column has a value range.
    pub const RANGE: u16 = 0x02;
}

/// One field, as listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldRecord {
    /// Version of the field's own on-disk layout.
    pub field_version: u32,
    /// Version of the C++ class; `u32::MAX` for one without a version.
    pub type_version: u32,
    /// Id of the parent field; a field's own id at the top level.
    pub parent: u32,
    /// One of [`role`].
    pub role: u16,
    /// Name.
    pub name: String,
    /// Normalised C++ type; empty for untyped records and collections.
    pub type_name: String,
    /// The type as the user spelt it, where it differs.
    pub type_alias: String,
    /// Free text.
    pub description: String,
    /// Number of repetitions of a repetitive field.
    pub array_size: Option<u64>,
    /// Source field of a projected field.
    pub source: Option<u32>,
    /// ROOT's class checksum.
    pub checksum: Option<u32>,
    /// Whether the field is a structure-of-arrays collection.
    pub soa: bool,
}

/// One physical column, as listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnRecord {
    /// Code of the column type.
    pub column_type: u16,
    /// Bits of one element on disk.
    pub bits: u16,
    /// The field to which the column belongs.
    pub field: u32,
    /// Which of the field's alternative representations.
    pub representation: u16,
    /// First stored element of a deferred column; negative where it is also suppressed until then.
    pub first_element: Option<i64>,
    /// Inclusive range of values.
    pub range: Option<(f64, f64)>,
}

/// One alias column: a projected field's view of a physical column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AliasColumnRecord {
    /// Physical column id.
    pub column: u32,
    /// Projected field id.
    pub field: u32,
}

/// Properties of a type beyond fields and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraTypeInfo {
    /// Kind of content; 0 = a streamed `TList` of `TStreamerInfo`.
    pub content_id: u32,
    /// Version of the type, 0 where it does not matter.
    pub type_version: u32,
    /// The type, empty where it does not matter.
    pub type_name: String,
    /// The content.
    pub content: Vec<u8>,
}

impl ExtraTypeInfo {
    /// [`ExtraTypeInfo::content_id`] of ROOT streamer infos.
    pub const STREAMER_INFO: u32 = 0;
}

/// The four lists that make up a schema description.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SchemaRecords {
    /// Fields; the index is the field id (counted on in the footer).
    pub fields: Vec<FieldRecord>,
    /// Columns; the index is the physical column id (counted on in the footer).
    pub columns: Vec<ColumnRecord>,
    /// Alias columns.
    pub alias_columns: Vec<AliasColumnRecord>,
    /// Extra type information.
    pub extra_type_info: Vec<ExtraTypeInfo>,
}

/// The header envelope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// Features that a reader must know.
    pub feature_flags: FeatureFlags,
    /// Name of the ntuple.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Program that wrote it.
    pub writer: String,
    /// Fields and columns known when writing began.
    pub schema: SchemaRecords,
}

impl Header {
    /// Reads a decompressed envelope; also returns its checksum, by which footer and page lists refer to their header.
    pub fn read(bytes: &[u8]) -> Result<(Self, u64)> {
        Self::read_within(bytes, &Memory::unlimited())
    }

    /// As [`Header::read`], with memory that is counted.
    pub fn read_within(bytes: &[u8], memory: &Memory) -> Result<(Self, u64)> {
        let (cursor, checksum) = unwrap(bytes, EnvelopeType::Header)?;
        let header = Self::read_payload(&mut cursor.within(memory)).map_err(|e| e.within("header"))?;
        Ok((header, checksum))
    }

    fn read_payload(cursor: &mut Cursor<'_>) -> Result<Self> {
        // Flags before everything else: what follows may be of a shape that only the feature explains.
        let feature_flags = FeatureFlags::read(cursor)?;
        feature_flags.check()?;
        Ok(Self {
            feature_flags,
            name: name(cursor)?,
            description: cursor.string_le()?,
            writer: cursor.string_le()?,
            schema: SchemaRecords::read(cursor)?,
        })
    }

    /// Writes the envelope; also returns its checksum.
    pub fn write(&self) -> (Vec<u8>, u64) {
        let mut buffer = Buffer::new();
        self.feature_flags.write(&mut buffer);
        buffer.string_le(&self.name);
        buffer.string_le(&self.description);
        buffer.string_le(&self.writer);
        self.schema.write(&mut buffer);
        wrap(EnvelopeType::Header, buffer.as_slice())
    }
}

impl SchemaRecords {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            fields: frame::read_list(cursor, "field", 40, MAX_FIELDS, FieldRecord::read)?,
            columns: frame::read_list(cursor, "column", 20, MAX_COLUMNS, ColumnRecord::read)?,
            alias_columns: frame::read_list(cursor, "alias column", 16, MAX_COLUMNS, AliasColumnRecord::read)?,
            extra_type_info: frame::read_list(cursor, "extra type information", 24, MAX_FIELDS, ExtraTypeInfo::read)?,
        })
    }

    pub(super) fn write(&self, buffer: &mut Buffer) {
        frame::write_list(buffer, self.fields.len(), |b| self.fields.iter().for_each(|f| f.write(b)));
        frame::write_list(buffer, self.columns.len(), |b| self.columns.iter().for_each(|c| c.write(b)));
        frame::write_list(buffer, self.alias_columns.len(), |b| self.alias_columns.iter().for_each(|a| a.write(b)));
        frame::write_list(buffer, self.extra_type_info.len(), |b| self.extra_type_info.iter().for_each(|e| e.write(b)));
    }
}

impl FieldRecord {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        let (field_version, type_version) = (record.u32_le()?, record.u32_le()?);
        let parent = record.u32_le()?;
        let (role, flags) = (record.u16_le()?, record.u16_le()?);
        let has = |bit| flags & bit != 0;
        Ok(Self {
            field_version,
            type_version,
            parent,
            role,
            name: name(&mut record)?,
            type_name: record.string_le()?,
            type_alias: record.string_le()?,
            description: record.string_le()?,
            array_size: has(field_flag::REPETITIVE).then(|| record.u64_le()).transpose()?,
            source: has(field_flag::PROJECTED).then(|| record.u32_le()).transpose()?,
            checksum: has(field_flag::CHECKSUM).then(|| record.u32_le()).transpose()?,
            soa: has(field_flag::SOA),
        })
    }

    fn write(&self, buffer: &mut Buffer) {
        let flag = |on: bool, bit| if on { bit } else { 0 };
        frame::write_record(buffer, |b| {
            b.u32_le(self.field_version);
            b.u32_le(self.type_version);
            b.u32_le(self.parent);
            b.u16_le(self.role);
            b.u16_le(
                flag(self.array_size.is_some(), field_flag::REPETITIVE)
                    | flag(self.source.is_some(), field_flag::PROJECTED)
                    | flag(self.checksum.is_some(), field_flag::CHECKSUM)
                    | flag(self.soa, field_flag::SOA),
            );
            for text in [&self.name, &self.type_name, &self.type_alias, &self.description] {
                b.string_le(text);
            }
            if let Some(size) = self.array_size {
                b.u64_le(size);
            }
            for word in [self.source, self.checksum].into_iter().flatten() {
                b.u32_le(word);
            }
        });
    }
}

impl ColumnRecord {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        let (column_type, bits, field) = (record.u16_le()?, record.u16_le()?, record.u32_le()?);
        let (flags, representation) = (record.u16_le()?, record.u16_le()?);
        let first_element = (flags & column_flag::DEFERRED != 0).then(|| record.i64_le()).transpose()?;
        let range = match flags & column_flag::RANGE != 0 {
            true => Some((record.f64_le()?, record.f64_le()?)),
            false => None,
        };
        Ok(Self { column_type, bits, field, representation, first_element, range })
    }

    fn write(&self, buffer: &mut Buffer) {
        let deferred = if self.first_element.is_some() { column_flag::DEFERRED } else { 0 };
        let ranged = if self.range.is_some() { column_flag::RANGE } else { 0 };
        frame::write_record(buffer, |b| {
            b.u16_le(self.column_type);
            b.u16_le(self.bits);
            b.u32_le(self.field);
            b.u16_le(deferred | ranged);
            b.u16_le(self.representation);
            if let Some(first) = self.first_element {
                b.i64_le(first);
            }
            if let Some((min, max)) = self.range {
                b.f64_le(min);
                b.f64_le(max);
            }
        });
    }
}

impl AliasColumnRecord {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        Ok(Self { column: record.u32_le()?, field: record.u32_le()? })
    }

    fn write(&self, buffer: &mut Buffer) {
        frame::write_record(buffer, |b| {
            b.u32_le(self.column);
            b.u32_le(self.field);
        });
    }
}

impl ExtraTypeInfo {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut record = frame::record(cursor)?;
        let (content_id, type_version) = (record.u32_le()?, record.u32_le()?);
        let type_name = record.string_le()?;
        let content_bytes = record.u32_le()? as usize;
        Ok(Self { content_id, type_version, type_name, content: record.copy(content_bytes)? })
    }

    fn write(&self, buffer: &mut Buffer) {
        frame::write_record(buffer, |b| {
            b.u32_le(self.content_id);
            b.u32_le(self.type_version);
            b.string_le(&self.type_name);
            b.u32_le(u32::try_from(self.content.len()).unwrap_or(u32::MAX));
            b.put(&self.content);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> Header {
        let field = |name: &str, parent| FieldRecord {
            name: name.into(),
            type_name: "float".into(),
            parent,
            ..FieldRecord::default()
        };
        Header {
            name: "Events".into(),
            description: "d".into(),
            writer: "w".into(),
            schema: SchemaRecords {
                fields: vec![
                    field("a", 0),
                    FieldRecord {
                        array_size: Some(3),
                        source: Some(0),
                        checksum: Some(9),
                        soa: true,
                        role: role::COLLECTION,
                        ..field("b", 1)
                    },
                ],
                columns: vec![
                    ColumnRecord { column_type: 0x18, bits: 32, ..Default::default() },
                    ColumnRecord { first_element: Some(-5), range: Some((0.5, 2.0)), ..Default::default() },
                ],
                alias_columns: vec![AliasColumnRecord { column: 0, field: 1 }],
                extra_type_info: vec![ExtraTypeInfo {
                    content_id: 0,
                    type_version: 1,
                    type_name: "T".into(),
                    content: vec![0, 255],
                }],
            },
            ..Header::default()
        }
    }

    #[test]
    fn written_records_are_read_back() {
        let header = sample();
        let (bytes, checksum) = header.write();
        assert_eq!(Header::read(&bytes), Ok((header, checksum)));
    }

    #[test]
    fn errors_name_the_record() {
        let mut header = sample();
        header.schema.columns.truncate(1);
        let (bytes, _) = header.write();
        // Field 1's record claims one byte more than its list has.
        let position = bytes.windows(8).rposition(|w| w == 62u64.to_le_bytes()).unwrap();
        let mut payload = bytes[8..bytes.len() - 8].to_vec();
        payload[position - 8] = 0xff;
        let (damaged, _) = wrap(EnvelopeType::Header, &payload);
        assert!(Header::read(&damaged).unwrap_err().to_string().starts_with("header: field 1: frame of 255 bytes"));
    }
}
