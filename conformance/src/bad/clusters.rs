//! Cluster groups and clusters.

use tupelo_format::envelope::{ClusterGroupRecord, SHARDED};
use tupelo_format::locator::Locator;

use super::{Bad, counted, flat};
use crate::model::{Group, Model};

/// The sample has one cluster group; its record in the footer.
fn group(model: &mut Model, edit: fn(&mut ClusterGroupRecord)) {
    model.edit_footer(move |footer| edit(&mut footer.cluster_groups[0]));
}

/// First entry and number of entries of both clusters.
fn entries(model: &mut Model, ranges: [(u64, u64); 2]) {
    for (cluster, range) in model.groups[0].clusters.iter_mut().zip(ranges) {
        (cluster.summary.first_entry, cluster.summary.entries) = range;
    }
}

/// The group as it was, whatever its clusters say.
fn span(model: &mut Model, min_entry: u64, entry_span: u64) {
    model.edit_footer(move |footer| {
        let group = &mut footer.cluster_groups[0];
        (group.min_entry, group.entry_span) = (min_entry, entry_span);
    });
}

fn length(model: &mut Model, length: u64) {
    model.edit_footer(move |footer| footer.cluster_groups[0].page_list.length = length);
}

fn place(model: &mut Model, edit: fn(u64, u64) -> Locator) {
    model.edit_footer(move |footer| {
        let locator = &mut footer.cluster_groups[0].page_list.locator;
        if let Locator::File { offset, bytes } = *locator {
            *locator = edit(offset, bytes);
        }
    });
}

pub(super) const BAD: &[Bad] = &[
    flat("54-clusters-0", |m| group(m, |g| g.clusters = 0)),
    flat("54-clusters-3", |m| group(m, |g| g.clusters = 3)),
    flat("54-clusters-max", |m| group(m, |g| g.clusters = u32::MAX)),
    flat("55-group-begins-at-10", |m| group(m, |g| g.min_entry = 10)),
    flat("55-group-begins-at-2-63", |m| group(m, |g| g.min_entry = 1 << 63)),
    flat("55-group-begins-at-max", |m| group(m, |g| g.min_entry = u64::MAX)),
    flat("55-group-spans-2-63", |m| group(m, |g| g.entry_span = 1 << 63)),
    flat("55-group-spans-11", |m| group(m, |g| g.entry_span = 11)),
    flat("55-group-spans-max", |m| group(m, |g| g.entry_span = u64::MAX)),
    flat("56-group-spans-0", |m| group(m, |g| g.entry_span = 0)),
    flat("56-group-spans-1", |m| group(m, |g| g.entry_span = 1)),
    flat("57-group-twice", |m| {
        m.edit_footer(|footer| footer.cluster_groups.push(footer.cluster_groups[0]));
    }),
    flat("57-group-twice-one-after-the-other", |m| {
        m.edit_footer(|footer| {
            let again = ClusterGroupRecord { min_entry: 10, ..footer.cluster_groups[0] };
            footer.cluster_groups.push(again);
        });
    }),
    flat("57-group-2000-times", |m| {
        m.edit_footer(|footer| footer.cluster_groups = vec![footer.cluster_groups[0]; 2000]);
    }),
    flat("57-groups-of-nothing-share-a-page-list", |m| {
        m.groups.push(Group::default());
        m.edit_footer(|footer| {
            let empty = ClusterGroupRecord { min_entry: 10, ..footer.cluster_groups[1] };
            footer.cluster_groups.truncate(1);
            footer.cluster_groups.resize(2000, empty);
        });
    }),
    flat("58-page-lists-of-400-mib", |m| {
        m.groups.push(Group::default());
        m.edit_footer(|footer| {
            footer.cluster_groups[1].min_entry = 10;
            footer.cluster_groups.iter_mut().for_each(|group| group.page_list.length = 200 << 20);
        });
    }),
    flat("57-group-of-nothing-between", |m| {
        let second = m.groups[0].clusters.split_off(1);
        m.groups.push(Group::default());
        m.groups.push(Group { clusters: second });
        m.edit_footer(|footer| footer.cluster_groups[1].min_entry = 6);
    }),
    flat("57-two-groups", |m| {
        let second = m.groups[0].clusters.split_off(1);
        m.groups.push(Group { clusters: second });
    }),
    flat("57-two-groups-swapped", |m| {
        let second = m.groups[0].clusters.split_off(1);
        m.groups.push(Group { clusters: second });
        m.edit_footer(|footer| footer.cluster_groups.swap(0, 1));
    }),
    flat("57-two-groups-one-page-list", |m| {
        let second = m.groups[0].clusters.split_off(1);
        m.groups.push(Group { clusters: second });
        m.edit_footer(|footer| footer.cluster_groups[1].page_list = footer.cluster_groups[0].page_list);
    }),
    flat("58-page-list-length-0", |m| length(m, 0)),
    flat("58-page-list-length-6-gib", |m| length(m, 6 << 30)),
    flat("58-page-list-length-1-more", |m| {
        m.edit_footer(|footer| footer.cluster_groups[0].page_list.length += 1);
    }),
    flat("58-page-list-stored-0", |m| place(m, |offset, _| Locator::File { offset, bytes: 0 })),
    flat("58-page-list-stored-1-tib", |m| place(m, |offset, _| Locator::File { offset, bytes: 1 << 40 })),
    flat("58-page-list-stored-2-31", |m| place(m, |offset, _| Locator::File { offset, bytes: 1 << 31 })),
    flat("58-page-list-stored-max", |m| place(m, |offset, _| Locator::File { offset, bytes: u64::MAX })),
    flat("58-page-list-length-15", |m| length(m, 15)),
    flat("58-page-list-length-16", |m| length(m, 16)),
    flat("58-page-list-length-max", |m| length(m, u64::MAX)),
    flat("58-page-list-is-the-header", |m| {
        m.pack = false;
        place(m, |_, bytes| Locator::File { offset: 368, bytes });
    }),
    flat("58-page-list-elsewhere", |m| place(m, |_, bytes| Locator::File { offset: 300, bytes })),
    flat("58-page-list-behind-the-end", |m| place(m, |_, bytes| Locator::File { offset: 1 << 63, bytes })),
    flat("58-page-list-at-max", |m| place(m, |_, bytes| Locator::File { offset: u64::MAX, bytes })),
    flat("59-page-list-in-an-object", |m| place(m, |location, bytes| Locator::Object { location, bytes })),
    flat("59-page-list-locator-unknown", |m| place(m, |_, _| Locator::Unknown { kind: 0x55 })),
    flat("61-gap", |m| {
        entries(m, [(0, 6), (7, 4)]);
        span(m, 0, 11);
    }),
    flat("61-overlap", |m| {
        entries(m, [(0, 6), (5, 4)]);
        span(m, 0, 9);
    }),
    flat("61-both-at-0", |m| entries(m, [(0, 6), (0, 4)])),
    flat("61-descending", |m| {
        entries(m, [(6, 4), (0, 6)]);
        span(m, 0, 10);
    }),
    flat("61-at-max", |m| {
        entries(m, [(u64::MAX - 5, 6), (0, 4)]);
        span(m, 0, 10);
    }),
    flat("62-entries-0", |m| entries(m, [(0, 0), (0, 10)])),
    flat("62-entries-0-and-all", |m| entries(m, [(0, 0), (0, 4)])),
    flat("62-entries-1-less", |m| entries(m, [(0, 5), (5, 4)])),
    flat("62-entries-1-more", |m| entries(m, [(0, 7), (7, 4)])),
    flat("62-entries-moved", |m| entries(m, [(0, 7), (7, 3)])),
    flat("62-entries-2-40", |m| entries(m, [(0, 6), (6, 1 << 40)])),
    flat("62-entries-2-55", |m| entries(m, [(0, 6), (6, 1 << 55)])),
    flat("62-entries-2-56-minus-1", |m| entries(m, [(0, 6), (6, (1 << 56) - 1)])),
    flat("62-entries-too-many-for-64-bits", |m| {
        entries(m, [(0, (1 << 56) - 1), ((1 << 56) - 1, (1 << 56) - 1)]);
        span(m, 0, 1 << 62);
    }),
    flat("63-sharded", |m| m.groups[0].clusters[1].summary.flags = SHARDED),
    flat("63-other-flag", |m| m.groups[0].clusters[1].summary.flags = 0x80),
    flat("64-column-missing", |m| drop(m.groups[0].clusters[1].columns.pop())),
    flat("64-columns-missing", |m| m.groups[0].clusters[0].columns.clear()),
    flat("64-column-too-many", |m| {
        let column = m.column(0, 0).clone();
        m.groups[0].clusters[0].columns.push(column);
    }),
    flat("64-cluster-missing", |m| {
        drop(m.groups[0].clusters.pop());
        span(m, 0, 10);
        group(m, |g| g.clusters = 2);
    }),
    flat("64-entries-without-fields", |m| {
        m.header.schema = Default::default();
        m.groups[0].clusters.iter_mut().for_each(|cluster| cluster.columns.clear());
        entries(m, [(0, 1 << 40), (1 << 40, 1)]);
    }),
    counted("64-items-without-members", |m| {
        m.header.schema.fields.truncate(2);
        m.header.schema.columns.truncate(1);
        m.column(0, 1).pages.clear();
        m.groups[0].clusters[0].columns.truncate(1);
    }),
    counted("64-items-without-members-2-50", |m| {
        m.header.schema.fields.truncate(2);
        m.header.schema.columns.truncate(1);
        m.groups[0].clusters[0].columns.truncate(1);
        super::store(m.page(0, 0, 0), &[2, 1 << 50]);
    }),
];
