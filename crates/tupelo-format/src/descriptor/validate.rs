//! Every reference of header, footer and page list, checked once.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::{AttributeSet, ClusterGroup, Column, ColumnId, Descriptor, Dropped, Field, FieldId};
use crate::encoding::{ColumnType, Encoding};
use crate::envelope::{
    AliasColumnRecord, AttributeSetRecord, ClusterGroupRecord, ColumnRecord, FieldRecord, Footer, Header, MAX_COLUMNS,
    MAX_FIELDS, MIN_ENVELOPE_BYTES, PageList, role,
};
use crate::locator::Locator;
use crate::{Error, Result};

/// Deeper schemas are refused; real ones stay below 20.
pub const MAX_FIELD_DEPTH: usize = 64;
/// C++ compilers and ROOT stop at this many alternatives.
const MAX_VARIANT_ALTERNATIVES: usize = 125;
/// Messages show no more of a name.
const MAX_SHOWN_CHARS: usize = 200;
/// The only field layout version that exists.
const FIELD_VERSION: u32 = 0;
/// The attribute schema that is understood.
const ATTRIBUTE_SCHEMA_MAJOR: u16 = 1;

/// Errors of the footer are at its place in the file, where that is given.
pub(super) fn descriptor(
    header: Header,
    header_checksum: u64,
    footer: Footer,
    footer_at: Option<u64>,
) -> Result<Descriptor> {
    let in_footer = |error: Error| match footer_at {
        Some(offset) => error.at(offset),
        None => error,
    };
    if footer.header_checksum != header_checksum {
        return Err(in_footer(Error::corrupt(format!(
            "footer: belongs to another header (expected checksum {header_checksum:016x}, found {:016x})",
            footer.header_checksum
        ))));
    }
    let mut feature_flags = header.feature_flags;
    feature_flags.merge(&footer.feature_flags);

    let header_fields = header.schema.fields.len();
    let header_columns = header.schema.columns.len();
    // "As if it was found directly at the end of the header."
    let mut schema = header.schema;
    schema.fields.extend(footer.extension.fields);
    schema.columns.extend(footer.extension.columns);
    schema.alias_columns.extend(footer.extension.alias_columns);
    schema.extra_type_info.extend(footer.extension.extra_type_info);

    check_count("fields", schema.fields.len(), MAX_FIELDS)?;
    check_count("columns", schema.columns.len(), MAX_COLUMNS)?;
    check_count("alias columns", schema.alias_columns.len(), MAX_COLUMNS)?;

    let mut unknown = Vec::new();
    let mut fields = fields(schema.fields, &mut unknown)?;
    let columns = columns(&mut fields, schema.columns, header_columns, &mut unknown)?;
    projections(&fields)?;
    alias_columns(&mut fields, &columns, &schema.alias_columns)?;
    representations(&fields)?;
    let (top_level, dropped) = drop_unknown(&fields, unknown);
    let (cluster_groups, entries) = cluster_groups(&footer.cluster_groups).map_err(in_footer)?;
    let attribute_sets = attribute_sets(footer.attribute_sets).map_err(in_footer)?;
    Ok(Descriptor {
        name: header.name,
        description: header.description,
        writer: header.writer,
        feature_flags,
        header_checksum,
        header_fields,
        fields,
        columns,
        top_level,
        dropped,
        extra_type_info: schema.extra_type_info,
        cluster_groups,
        attribute_sets,
        entries,
    })
}

/// Each of header and footer stays below; together they must too.
fn check_count(what: &str, count: usize, most: usize) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => Err(Error::limit(format!("{count} {what} in header and footer exceed the limit of {most}"))),
    }
}

/// A field that must be dropped and why.
type Unknown = (FieldId, String);

fn fields(records: Vec<FieldRecord>, unknown: &mut Vec<Unknown>) -> Result<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::with_capacity(records.len());
    let mut depths: Vec<usize> = Vec::with_capacity(records.len());
    let mut names: HashSet<(Option<u32>, String)> = HashSet::with_capacity(records.len());
    for (index, record) in records.into_iter().enumerate() {
        let id = FieldId(index as u32);
        let wrong = |what: String| Error::corrupt(format!("field {index} '{}': {what}", shown(&record.name)));
        check_name(&record.name).map_err(&wrong)?;
        // Fields come after their parents, which makes cycles impossible.
        let parent = match record.parent.cmp(&id.0) {
            Ordering::Equal => None,
            Ordering::Less => Some(FieldId(record.parent)),
            Ordering::Greater => {
                return Err(wrong(format!("its parent is the later field {}", record.parent)));
            }
        };
        let depth =
            match parent.and_then(|parent| Some((fields.get_mut(parent.index())?, *depths.get(parent.index())?))) {
                None => 0,
                Some((parent, depth)) => {
                    check_child_count(parent).map_err(&wrong)?;
                    parent.children.push(id);
                    depth + 1
                }
            };
        if depth > MAX_FIELD_DEPTH {
            return Err(Error::limit(format!("field {index}: fields are nested more than {MAX_FIELD_DEPTH} deep")));
        }
        if !names.insert((parent.map(|p| p.0), record.name.clone())) {
            return Err(wrong("a sibling field has the same name".into()));
        }
        if record.role > role::STREAMER {
            unknown.push((id, format!("structural role {:#04x} is unknown", record.role)));
        }
        if record.field_version != FIELD_VERSION {
            unknown.push((id, format!("field version {} is unknown", record.field_version)));
        }
        if record.array_size == Some(0) {
            return Err(wrong("repetitive field has size 0".into()));
        }
        depths.push(depth);
        fields.push(Field { record, parent, children: Vec::new(), representations: Vec::new() });
    }
    Ok(fields)
}

/// A name for a message: short, and without characters that change a terminal.
fn shown(name: &str) -> String {
    match name.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default().escape_debug()),
        None => name.escape_debug().to_string(),
    }
}

/// The format's naming rules, except that blanks are let through: writers other than ROOT have written them.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("its name is empty".into());
    }
    match name.chars().find(|c| c.is_control() || matches!(c, '.' | '/' | '\\')) {
        Some(c) => Err(format!("its name contains {c:?}")),
        None => Ok(()),
    }
}

fn check_child_count(parent: &Field) -> Result<(), String> {
    let most = match parent.record.role {
        role::PLAIN | role::COLLECTION => 1,
        role::VARIANT => MAX_VARIANT_ALTERNATIVES,
        role::STREAMER => 0,
        _ => usize::MAX,
    };
    match parent.children.len() < most {
        true => Ok(()),
        false => Err(format!("its parent '{}' may have at most {most} subfields", shown(&parent.record.name))),
    }
}

fn columns(
    fields: &mut [Field],
    records: Vec<ColumnRecord>,
    header_columns: usize,
    unknown: &mut Vec<Unknown>,
) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(records.len());
    for (index, record) in records.into_iter().enumerate() {
        let wrong = |what: String| Error::corrupt(format!("column {index}: {what}"));
        let field_id = FieldId(record.field);
        let Some(field) = fields.get_mut(field_id.index()) else {
            return Err(wrong(format!("its field {field_id} does not exist")));
        };
        if field.record.source.is_some() {
            return Err(wrong(format!("its field {field_id} is projected and must not have columns")));
        }
        attach(field, record.representation, ColumnId(index as u32)).map_err(wrong)?;
        let encoding = match ColumnType::from_code(record.column_type) {
            Some(column_type) => Some(
                Encoding::new(column_type, record.bits, record.range)
                    .map_err(|e| e.within(format_args!("column {index}")))?,
            ),
            None => {
                unknown.push((field_id, format!("column type {:#04x} is unknown", record.column_type)));
                None
            }
        };
        columns.push(Column {
            field: field_id,
            encoding,
            representation: record.representation,
            first_element: record.first_element.map_or(0, first_element),
            starts_suppressed: record.first_element.is_some_and(|first| first < 0),
            in_extension: index >= header_columns,
        });
    }
    Ok(columns)
}

/// The sign marks a deferred column that is also suppressed.
fn first_element(stored: i64) -> u64 {
    stored.unsigned_abs() & (i64::MAX as u64)
}

/// Representations are consecutive from 0, and their columns come in order.
fn attach(field: &mut Field, representation: u16, column: ColumnId) -> Result<(), String> {
    let known = field.representations.len();
    if usize::from(representation) == known {
        field.representations.push(vec![column]);
        return Ok(());
    }
    match field.representations.last_mut() {
        Some(last) if usize::from(representation) + 1 == known => {
            last.push(column);
            Ok(())
        }
        _ => Err(format!(
            "found representation {representation} of '{}' after {known} others",
            shown(&field.record.name)
        )),
    }
}

fn alias_columns(fields: &mut [Field], columns: &[Column], records: &[AliasColumnRecord]) -> Result<()> {
    for (index, record) in records.iter().enumerate() {
        let wrong = |what: String| Error::corrupt(format!("alias column {index}: {what}"));
        let Some(column) = columns.get(record.column as usize) else {
            return Err(wrong(format!("column {} does not exist", record.column)));
        };
        let Some(field) = fields.get_mut(record.field as usize) else {
            return Err(wrong(format!("field {} does not exist", record.field)));
        };
        match field.record.source {
            None => return Err(wrong(format!("field {} is not projected", record.field))),
            Some(source) if source != column.field.0 => {
                return Err(wrong(format!(
                    "column {} belongs to field {}, but field {} is projected from field {source}",
                    record.column, column.field, record.field
                )));
            }
            Some(_) => {}
        }
        attach(field, column.representation, ColumnId(record.column)).map_err(wrong)?;
    }
    Ok(())
}

fn representations(fields: &[Field]) -> Result<()> {
    for (index, field) in fields.iter().enumerate() {
        let mut lengths = field.representations.iter().map(Vec::len);
        let first = lengths.next().unwrap_or(0);
        if lengths.any(|length| length != first) {
            return Err(Error::corrupt(format!(
                "field {index}: its representations have different numbers of columns"
            )));
        }
    }
    Ok(())
}

/// Format specification, "Field Description": what a projected field may have as its source.
fn projections(fields: &[Field]) -> Result<()> {
    for (index, field) in fields.iter().enumerate() {
        let Some(source_id) = field.record.source else { continue };
        let wrong =
            |what: &str| Error::corrupt(format!("projected field {index} '{}': {what}", shown(&field.record.name)));
        let Some(source) = fields.get(source_id as usize) else {
            return Err(wrong("its source does not exist"));
        };
        if source.record.source.is_some() {
            return Err(wrong("its source is itself a projected field"));
        }
        let is_cardinality = field.record.type_name.starts_with("ROOT::RNTupleCardinality<");
        if is_cardinality {
            if source.record.role != role::COLLECTION {
                return Err(wrong("the source of a cardinality must be a collection"));
            }
        } else if source.record.role != field.record.role {
            return Err(wrong("its source has another structural role"));
        } else if matches!(field.record.role, role::PLAIN | role::STREAMER)
            && source.record.type_name != field.record.type_name
        {
            return Err(wrong("its source has another type"));
        }
        if field.record.role == role::VARIANT || field.record.array_size.is_some() {
            return Err(wrong("variants and fixed arrays cannot be projected"));
        }
        if collection_path(fields, index, true) != collection_path(fields, source_id as usize, false) {
            return Err(wrong("its source is in different collections"));
        }
    }
    Ok(())
}

/// Ids of the collections above a field. Collections above a projected field are projected too, so their sources count.
fn collection_path(fields: &[Field], index: usize, through_sources: bool) -> Vec<u32> {
    let mut path = Vec::new();
    let mut next = fields.get(index).and_then(|field| field.parent);
    while let Some((id, field)) = next.and_then(|id| Some((id, fields.get(id.index())?))) {
        if matches!(field.record.role, role::COLLECTION | role::VARIANT) {
            path.push(if through_sources { field.record.source.unwrap_or(id.0) } else { id.0 });
        }
        next = field.parent;
    }
    path
}

fn drop_unknown(fields: &[Field], unknown: Vec<Unknown>) -> (Vec<FieldId>, Vec<Dropped>) {
    let top_of = |mut id: FieldId| {
        while let Some(parent) = fields.get(id.index()).and_then(|field| field.parent) {
            id = parent;
        }
        id
    };
    let name = |id: FieldId| fields.get(id.index()).map(|f| f.record.name.clone()).unwrap_or_default();
    let mut dropped = Vec::new();
    let mut gone = HashSet::new();
    for (id, reason) in unknown {
        let top = top_of(id);
        if gone.insert(top) {
            let subject = if top == id { String::new() } else { format!("subfield '{}': ", shown(&name(id))) };
            dropped.push(Dropped { field: name(top), reason: format!("{subject}{reason}") });
        }
    }
    for (index, field) in fields.iter().enumerate() {
        let Some(source) = field.record.source.map(|source| top_of(FieldId(source))) else { continue };
        let top = top_of(FieldId(index as u32));
        if gone.contains(&source) && gone.insert(top) {
            let reason = format!("it is projected from the dropped field '{}'", shown(&name(source)));
            dropped.push(Dropped { field: name(top), reason });
        }
    }
    let top_level = (0..fields.len() as u32)
        .map(FieldId)
        .filter(|id| fields.get(id.index()).is_some_and(|field| field.parent.is_none()) && !gone.contains(id))
        .collect();
    (top_level, dropped)
}

fn cluster_groups(records: &[ClusterGroupRecord]) -> Result<(Vec<ClusterGroup>, u64)> {
    let (mut entries, mut clusters) = (0u64, 0u64);
    let mut groups = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let wrong = |what: String| Error::corrupt(format!("footer: cluster group {index}: {what}"));
        if record.min_entry != entries {
            return Err(wrong(format!("it begins at entry {}, expected entry {entries}", record.min_entry)));
        }
        if record.page_list.length < MIN_ENVELOPE_BYTES {
            return Err(wrong(format!("its page list of {} bytes is too short", record.page_list.length)));
        }
        groups.push(ClusterGroup {
            first_entry: entries,
            entries: record.entry_span,
            first_cluster: clusters,
            clusters: record.clusters,
            page_list: record.page_list,
        });
        entries = entries
            .checked_add(record.entry_span)
            .filter(|&end| i64::try_from(end).is_ok())
            .ok_or_else(|| wrong(format!("it covers too many entries: {}", record.entry_span)))?;
        clusters += u64::from(record.clusters);
    }
    Ok((groups, entries))
}

/// The attribute sets that are understood. Each has a name and an anchor of its own.
fn attribute_sets(records: Vec<AttributeSetRecord>) -> Result<Vec<AttributeSet>> {
    let understood = records.into_iter().filter(|set| set.schema_major == ATTRIBUTE_SCHEMA_MAJOR);
    let set =
        |set: AttributeSetRecord| AttributeSet { name: set.name, anchor: set.anchor, anchor_length: set.anchor_length };
    let sets: Vec<AttributeSet> = understood.map(set).collect();
    let wrong = |one: &str, other: &str, what: &str| {
        Error::corrupt(format!("footer: attribute sets '{}' and '{}' have the same {what}", shown(one), shown(other)))
    };
    let mut names = HashSet::with_capacity(sets.len());
    if let Some(set) = sets.iter().find(|set| !names.insert(set.name.as_str())) {
        return Err(wrong(&set.name, &set.name, "name"));
    }
    let place = |set: &'_ AttributeSet| match set.anchor {
        Locator::File { offset, bytes } => Some((offset, bytes)),
        _ => None,
    };
    let mut anchors: Vec<(u64, u64, &str)> = Vec::with_capacity(sets.len());
    anchors.extend(sets.iter().filter_map(|set| place(set).map(|(offset, bytes)| (offset, bytes, set.name.as_str()))));
    anchors.sort_unstable();
    for (one, other) in anchors.iter().zip(anchors.iter().skip(1)) {
        if one.0.saturating_add(one.1) > other.0 {
            return Err(wrong(one.2, other.2, "anchor"));
        }
    }
    Ok(sets)
}

pub(super) fn page_list(descriptor: &Descriptor, group: &ClusterGroup, list: &PageList) -> Result<()> {
    let wrong = |what: String| Error::corrupt(format!("page list: {what}"));
    if list.clusters().len() != group.clusters as usize {
        return Err(wrong(format!("found {} clusters, but the footer says {}", list.clusters().len(), group.clusters)));
    }
    let mut entry = group.first_entry;
    let least = descriptor.columns.iter().filter(|column| !column.in_extension).count();
    for (index, cluster) in list.clusters().iter().enumerate() {
        let number = group.first_cluster + index as u64;
        if cluster.first_entry != entry {
            return Err(wrong(format!(
                "cluster {number} begins at entry {}, expected entry {entry}",
                cluster.first_entry
            )));
        }
        entry = entry.saturating_add(cluster.entries);
        let columns = list.columns(index);
        // Elements in a cluster without entries could never be read.
        for column in 0..if cluster.entries == 0 { columns } else { 0 } {
            if let Some(elements) = list.pages(index, column)?.map(|pages| pages.elements()).filter(|&n| n > 0) {
                return Err(wrong(format!(
                    "cluster {number} has no entries, but column {column} has {elements} elements"
                )));
            }
        }
        if columns < least || columns > descriptor.columns.len() {
            return Err(wrong(format!(
                "cluster {number} lists {columns} columns, but the schema has {}",
                descriptor.columns.len()
            )));
        }
    }
    if entry != group.first_entry + group.entries {
        return Err(wrong(format!(
            "its clusters end at entry {entry}, but the group ends at entry {}",
            group.first_entry + group.entries
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_limited_together() {
        assert_eq!(check_count("fields", 7, 7), Ok(()));
        let error = check_count("fields", 8, 7).unwrap_err();
        assert_eq!(error.to_string(), "8 fields in header and footer exceed the limit of 7");
    }
}
