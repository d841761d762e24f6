//! The reports of ntuples and trees.

use std::collections::{HashMap, HashSet};

use tupelo_format::container::{self, ANCHOR_BYTES};
use tupelo_format::locator::EnvelopeLink;
use tupelo_format::open::ANCHOR_CLASS;
use tupelo_pages::decode::branches_of;
use tupelo_pages::source::{Blob, Metadata, TreeSource};
use tupelo_schema::schema::Field;
use tupelo_ttree::ValueLayout;
use tupelo_ttree::tree::{BasketPlace, Stored};

use super::report::{Counted, Pages, column_types, ratio};
use super::{
    AttributeSetReport, Bytes, ClusterReport, ColumnReport, FieldReport, PagePlace, Report, Sizes, Store, Summary,
    advice, columns_of, each_page_group, envelope_bytes, fields_of, shown_field, shown_fields, summary,
};
use crate::Result;
use crate::reader::{File, Ntuple, Table, Tree};

/// Says where the bytes of an ntuple or tree in a file are, from metadata alone: no page is read.
/// ```no_run
/// use tupelo::ops::inspect::inspect;
///
/// let file = tupelo::open("events.root").open_file()?;
/// let report = inspect(&file, &file.table(None)?)?;
/// for advice in &report.advice {
///     println!("{}: {}", advice.what, advice.how);
/// }
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Corrupt if a page list is damaged; limit if the pages are too many for the memory budget; invalid argument for several
/// files or tables that are read as one.
pub fn inspect(file: &File, table: &Table) -> Result<Report> {
    let mut report = match table.tree() {
        Some(tree) => of_tree(file, tree)?,
        None => of_ntuple(file, table.ntuple()?)?,
    };
    report.advice = advice::of(&report);
    Ok(report)
}

/// Unused bytes of a ROOT file.
fn free_bytes(file: &File) -> Option<u64> {
    // Other programs may leave a list that Tupelo does not use.
    file.root_file().ok()?.attempt(container::free_bytes).ok()
}

fn of_ntuple(file: &File, ntuple: &Ntuple) -> Result<Report> {
    let counted = ntuple.in_any_store(&|it| pages_of_ntuple(file, it)).map_err(|e| ntuple.context(e))?;
    let (sizes, counted, without_checksum) = counted;
    let (descriptor, shown) = (ntuple.descriptor(), shown_fields(ntuple)?);
    let fields = fields_of(ntuple, &sizes)?.into_iter().map(|field| FieldReport {
        name: field.name,
        type_name: field.type_name,
        columns: field.columns,
        pages: field.sizes.pages,
        stored_bytes: field.sizes.stored_bytes,
        unpacked_bytes: field.sizes.unpacked_bytes,
        projected_from: field.projected_from,
        unreadable: field.dropped,
    });
    let fields = fields.collect();
    let infos = columns_of(ntuple, sizes)?.into_iter().zip(&counted.spreads).zip(descriptor.columns());
    let columns = infos.map(|((info, spread), column)| {
        let record = &descriptor.field(shown_field(&shown, column.field))?.record;
        Ok(ColumnReport {
            path: info.field,
            field_type: if record.type_alias.is_empty() { &record.type_name } else { &record.type_alias }.clone(),
            column_type: info.column_type.unwrap_or("unknown").to_owned(),
            bits: info.bits,
            index: info.index,
            representation: info.representation,
            codec: info.sizes.codec(),
            pages: info.sizes.pages,
            shared_pages: info.sizes.shared_pages,
            elements: info.sizes.elements,
            stored_bytes: info.sizes.stored_bytes,
            unpacked_bytes: info.sizes.unpacked_bytes,
            page_bytes: *spread,
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let [header_bytes, footer_bytes, page_list_bytes] = envelope_bytes(ntuple);
    let other_metadata_bytes = ANCHOR_BYTES as u64;
    let bytes = Bytes {
        file_bytes: file.size(),
        free_bytes: free_bytes(file),
        metadata_bytes: other_metadata_bytes + header_bytes + footer_bytes + page_list_bytes,
        header_bytes,
        footer_bytes,
        page_list_bytes,
        other_metadata_bytes,
        ..Bytes::default()
    };
    Ok(Report {
        file: ntuple.file_name(),
        name: ntuple.path().to_owned(),
        class: ANCHOR_CLASS.to_owned(),
        description: ntuple.description().to_owned(),
        writer: ntuple.writer().to_owned(),
        format_version: ntuple.format_version().to_string(),
        store: Store::of(ntuple.source().store().hints()),
        pages_without_checksum: Some(without_checksum),
        attribute_sets: attribute_sets(ntuple),
        ..summed(ntuple.entries(), bytes, fields, columns, counted)
    })
}

/// A set that cannot be read does not keep the others from being listed.
fn attribute_sets(ntuple: &Ntuple) -> Vec<AttributeSetReport> {
    let report = |name: &str| {
        let own = AttributeSetReport {
            name: name.to_owned(),
            entries: 0,
            stored_bytes: 0,
            metadata_bytes: 0,
            unreadable: None,
        };
        match ntuple.attribute_set(name).and_then(|set| summary(&set)) {
            Ok(Summary { entries, metadata_bytes, sizes, .. }) => {
                AttributeSetReport { entries, stored_bytes: sizes.stored_bytes, metadata_bytes, ..own }
            }
            Err(error) => AttributeSetReport { unreadable: Some(error.to_string()), ..own },
        }
    };
    ntuple.attribute_sets().map(report).collect()
}

/// What is the same for both.
fn summed(
    entries: u64,
    bytes: Bytes,
    fields: Vec<FieldReport>,
    columns: Vec<ColumnReport>,
    counted: Counted,
) -> Report {
    let sum = |of: fn(&ColumnReport) -> u64| columns.iter().map(of).fold(0, u64::saturating_add);
    let (stored_bytes, unpacked_bytes) = (sum(|it| it.stored_bytes), sum(|it| it.unpacked_bytes));
    let of_entry = |bytes: u64| bytes as f64 / entries.max(1) as f64;
    Report {
        file: String::new(),
        name: String::new(),
        class: String::new(),
        description: String::new(),
        writer: String::new(),
        format_version: String::new(),
        entries,
        store: Store::Local,
        ratio: ratio(unpacked_bytes, stored_bytes),
        entry_bytes: of_entry(stored_bytes),
        entry_bytes_with_metadata: of_entry(stored_bytes.saturating_add(bytes.metadata_bytes)),
        bytes: Bytes { stored_bytes, unpacked_bytes, ..bytes },
        pages: counted.count,
        pages_without_checksum: None,
        fields,
        column_types: column_types(&columns),
        columns,
        codecs: counted.codecs,
        page_sizes: counted.page_sizes,
        clusters: counted.clusters,
        attribute_sets: Vec::new(),
        objects: counted.found.objects,
        map: counted.found.map,
        parts: counted.found.parts,
        advice: Vec::new(),
    }
}

impl Pages<'_> {
    /// Adds an envelope to the map.
    fn add_envelope(&mut self, source: &Metadata, link: &EnvelopeLink, what: String) -> Result<()> {
        let range = source.store().envelope_range(link)?;
        self.map.add_part(range.blob, range.start, range.bytes(), what);
        Ok(())
    }
}

/// The sizes of all columns, what their pages add up to, and the number of those without a checksum.
fn pages_of_ntuple(file: &File, ntuple: &Ntuple) -> Result<(Vec<Sizes>, Counted, u64)> {
    let source = ntuple.source();
    let descriptor = source.descriptor();
    let mut pages = Pages::new(source.session(), descriptor.columns().len());
    let anchor = source.store().anchor();
    pages.add_envelope(source, &anchor.header, "header".to_owned())?;
    pages.add_envelope(source, &anchor.footer, "footer".to_owned())?;
    for group in 0..descriptor.cluster_groups().len() {
        let list = &descriptor.cluster_groups()[group].page_list;
        pages.add_envelope(source, list, format!("page list of cluster group {group}"))?;
        let clusters = source.group_clusters(group)?;
        pages.clusters.extend(clusters.iter().map(|it| ClusterReport::new(it.first_entry, it.entries)));
    }
    let mut sizes = vec![Sizes::default(); descriptor.columns().len()];
    let mut without_checksum = 0;
    each_page_group(source, |cluster, column, own, places| {
        let column = column.index();
        for (page, PagePlace { range, is_shared, has_checksum }) in (0..).zip(places) {
            if !is_shared {
                without_checksum += u64::from(!has_checksum);
                pages.add(column, range.bytes(), Some((range.blob, range.start, cluster.number, page)))?;
            }
        }
        let setting = own.compression.first().copied().unwrap_or_default();
        pages.add_codec(setting, column, own.pages - own.shared_pages, [own.stored_bytes, own.unpacked_bytes]);
        if let Some(sum) = pages.clusters.get_mut(cluster.number as usize) {
            sum.stored_bytes = sum.stored_bytes.saturating_add(own.stored_bytes);
            sum.unpacked_bytes = sum.unpacked_bytes.saturating_add(own.unpacked_bytes);
        }
        sizes[column] += &own;
        Ok(())
    })?;
    let keys = file.stored_objects().map(|objects| &objects.anchor().keys);
    Ok((sizes, pages.finish(|blob| keys.map(|keys| keys.name(blob))), without_checksum))
}

fn of_tree(file: &File, tree: &Tree) -> Result<Report> {
    let source = tree.source();
    let report = || {
        let branches = branches_with_values(tree);
        let (columns, counted) = pages_of_tree(tree, &branches)?;
        let mut fields: Vec<FieldReport> = Vec::new();
        let sizes = tree.sizes();
        for (field, sizes) in tree.schema().fields.iter().zip(&sizes) {
            fields.push(FieldReport {
                name: field.name.clone(),
                type_name: field.display_type().to_owned(),
                columns: sizes.branches,
                pages: sizes.baskets,
                stored_bytes: sizes.stored_bytes,
                unpacked_bytes: sizes.unpacked_bytes,
                projected_from: None,
                unreadable: None,
            });
        }
        for (path, reason) in tree.refused() {
            let own = branches.iter().zip(&columns).filter(|(branch, _)| branch.refused == Some(path));
            let mut field = FieldReport {
                name: path.to_owned(),
                type_name: String::new(),
                columns: 0,
                pages: 0,
                stored_bytes: 0,
                unpacked_bytes: 0,
                projected_from: None,
                unreadable: Some(reason.to_owned()),
            };
            for (_, column) in own {
                field.columns += 1;
                field.pages += column.pages;
                field.stored_bytes = field.stored_bytes.saturating_add(column.stored_bytes);
                field.unpacked_bytes = field.unpacked_bytes.saturating_add(column.unpacked_bytes);
            }
            fields.push(field);
        }
        let embedded = columns_embedded(tree, &branches);
        let record_bytes = source.stored_record_bytes().saturating_sub(embedded);
        let bytes = Bytes {
            file_bytes: file.size(),
            free_bytes: free_bytes(file),
            metadata_bytes: record_bytes,
            record_bytes,
            ..Bytes::default()
        };
        Ok(Report {
            file: tree.file_name(),
            name: tree.path().to_owned(),
            class: tree.metadata().class_name.clone(),
            description: tree.description().to_owned(),
            store: Store::of(source.file().source().hints()),
            ..summed(tree.entries(), bytes, fields, columns, counted)
        })
    };
    report().map_err(|e| tree.context(e))
}

/// A branch with values.
struct TreeBranch<'t> {
    /// Number in the metadata.
    index: usize,
    path: String,
    /// The layout of its values; `None` where it cannot be read.
    layout: Option<&'t ValueLayout>,
    /// The branch that is refused and has it.
    refused: Option<&'t str>,
}

/// All branches with values: those of fields, and those that cannot be read.
fn branches_with_values(tree: &Tree) -> Vec<TreeBranch<'_>> {
    let (source, metadata) = (tree.source(), tree.metadata());
    let mut found = Vec::new();
    source.fields().iter().for_each(|field| branches_of(field, &field.name, &mut found));
    let mut branches: Vec<TreeBranch<'_>> = Vec::new();
    for (path, index, layout) in found {
        branches.push(TreeBranch { index, path, layout: Some(layout), refused: None });
    }
    let known: HashSet<usize> = branches.iter().map(|branch| branch.index).collect();
    let refused: Vec<&str> = tree.refused().map(|(path, _)| path).collect();
    if refused.is_empty() {
        return branches;
    }
    for index in (0..metadata.branches.len()).filter(|index| !known.contains(index)) {
        let path = metadata.path(index);
        let holds =
            |refused: &&&str| path.strip_prefix(**refused).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(refused) = refused.iter().find(holds)
            && metadata.branches.get(index).is_some_and(|branch| !branch.baskets.is_empty())
        {
            branches.push(TreeBranch { index, path, layout: None, refused: Some(refused) });
        }
    }
    branches
}

/// Stored bytes of the baskets that are in the record of the tree.
fn columns_embedded(tree: &Tree, branches: &[TreeBranch<'_>]) -> u64 {
    let baskets = branches.iter().filter_map(|branch| tree.metadata().branches.get(branch.index));
    let baskets = baskets.flat_map(|branch| &branch.baskets);
    let embedded = baskets.filter(|basket| matches!(basket.stored, Stored::Embedded(_)));
    embedded.map(|basket| tree.stored_bytes(&basket.stored)).fold(0, u64::saturating_add)
}

fn pages_of_tree(tree: &Tree, branches: &[TreeBranch<'_>]) -> Result<(Vec<ColumnReport>, Counted)> {
    let (source, metadata) = (tree.source(), tree.metadata());
    let types = types(tree);
    let mut pages = Pages::new(source.session(), branches.len());
    let clusters = tree.cluster_ranges().map(|it| ClusterReport::new(it.start, it.end.saturating_sub(it.start)));
    pages.clusters = clusters.collect();
    let (offset, bytes) = source.record_place();
    pages.map.add_part(Blob::default(), offset, bytes, "record of the tree, with the baskets in it".to_owned());
    let mut columns = Vec::with_capacity(branches.len());
    for (column, TreeBranch { index, path, layout, .. }) in branches.iter().enumerate() {
        let Some(branch) = metadata.branches.get(*index) else { continue };
        let unpacked_bytes = branch.bytes[0];
        let sizes: Vec<u64> = branch.baskets.iter().map(|basket| tree.stored_bytes(&basket.stored)).collect();
        let stored_bytes = sizes.iter().copied().fold(0, u64::saturating_add);
        let setting = u32::try_from(branch.compression).unwrap_or_default();
        for (page, (basket, &stored)) in (0..).zip(branch.baskets.iter().zip(&sizes)) {
            let cluster = source.cluster_of(basket.entries.start);
            if let Some(sum) = pages.clusters.get_mut(cluster) {
                let share = unpacked_bytes as f64 * stored as f64 / stored_bytes.max(1) as f64;
                sum.stored_bytes = sum.stored_bytes.saturating_add(stored);
                sum.unpacked_bytes = sum.unpacked_bytes.saturating_add(share as u64);
            }
            let place = place(source, branch, basket).map(|(blob, offset)| (blob, offset, cluster as u64, page));
            pages.add(column, stored, place)?;
        }
        pages.add_codec(setting, column, branch.baskets.len() as u64, [stored_bytes, unpacked_bytes]);
        let mut leaves: Vec<&str> = branch.leaves.iter().map(|leaf| leaf.leaf_class.as_str()).collect();
        leaves.dedup();
        let of_branch = || if branch.class_name.is_empty() { branch.title.clone() } else { branch.class_name.clone() };
        columns.push(ColumnReport {
            path: path.clone(),
            field_type: types.get(path.as_str()).map_or_else(of_branch, |name| (*name).to_owned()),
            column_type: if leaves.is_empty() { branch.branch_class.clone() } else { leaves.join(", ") },
            bits: match layout {
                Some(number @ ValueLayout::Number(..)) => number.fixed_bytes().map_or(0, |bytes| bytes as u16 * 8),
                _ => 0,
            },
            index: 0,
            representation: 0,
            codec: Sizes { compression: [setting].into(), ..Sizes::default() }.codec(),
            pages: sizes.len() as u64,
            shared_pages: 0,
            elements: branch.entries,
            stored_bytes,
            unpacked_bytes,
            page_bytes: None,
        });
    }
    let counted = pages.finish(|blob| source.other_name(blob).map(str::to_owned));
    columns.iter_mut().zip(&counted.spreads).for_each(|(column, spread)| column.page_bytes = *spread);
    Ok((columns, counted))
}

/// Where a basket is, unless it is in the record of the tree.
fn place(source: &TreeSource, branch: &tupelo_ttree::Branch, basket: &BasketPlace) -> Option<(Blob, u64)> {
    match &basket.stored {
        Stored::InFile { offset, .. } => Some((source.blob_of(branch), *offset)),
        Stored::Embedded(_) => None,
    }
}

/// The C++ types of fields by the paths of their branches, in which the items of a collection have no name.
fn types(tree: &Tree) -> HashMap<String, &str> {
    let mut types = HashMap::new();
    let mut fields: Vec<(String, &Field)> =
        tree.schema().fields.iter().rev().map(|field| (field.name.clone(), field)).collect();
    while let Some((path, field)) = fields.pop() {
        for child in field.children().iter().rev() {
            let is_item = child.name == "_0";
            let path = if is_item { path.clone() } else { format!("{path}.{}", child.name) };
            fields.push((path, child));
        }
        types.entry(path).or_insert_with(|| field.display_type());
    }
    types
}
