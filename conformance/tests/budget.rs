//! The memory budget: what a file may make its reader take, whatever it says; and that large files are read all the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, Float32Array, Int64Array, LargeListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use conformance::model::{Cluster, Column, Group, Model, Page, Stage, zstd};
use conformance::{bad, memory, outcome, samples, summary};
use peak_alloc::PeakAlloc;
use tupelo::schema::Schema;
use tupelo::{Compression, ErrorKind, File, Ntuple, WriteOptions};
use tupelo_format::encoding::ColumnType;
use tupelo_format::envelope::{self, ColumnRecord, EnvelopeType, FieldRecord, SchemaRecords, role};
use tupelo_format::wire::Buffer;
use tupelo_storage::MemorySource;
use tupelo_storage::adapter::{IoEvent, IoLog, RecordingSource};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator counts for all threads: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: u64 = 1 << 20;
/// What is there besides the budget, in bytes: contexts of codecs, one block of compressed metadata, the file's first and
/// last bytes.
const SLACK: u64 = 64 * MIB;
/// Budgets that are tried, in bytes.
const BUDGETS: [u64; 4] = [4 * MIB, 32 * MIB, 128 * MIB, 1024 * MIB];

/// Those that are tried with every small damaged file.
const SMALL_BUDGETS: [u64; 2] = [4 * MIB, 128 * MIB];

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that `work` had at a time, beyond those before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = work();
    (done, ALLOCATOR.peak_usage().saturating_sub(before) as u64)
}

/// Everything that Tupelo does with a file stays within these budgets; gives what was said with each.
fn stays_within(what: &str, file: &Bytes, budgets: &[u64]) -> Vec<Option<tupelo::Error>> {
    let within = |budget: u64| {
        let (read, bytes) = peak(|| outcome::handle(file, true, budget).err());
        let outcome = read.as_ref().map_or("read".to_owned(), |error| error.to_string());
        assert!(bytes <= budget + SLACK, "{what}: {} MiB with {} MiB allowed: {outcome}", bytes / MIB, budget / MIB);
        read
    };
    budgets.iter().copied().map(within).collect()
}

/// Refused for its size with the smaller budgets at least.
fn is_limited(what: &str, file: &Bytes) {
    let said = stays_within(what, file, &BUDGETS);
    for (budget, error) in BUDGETS.iter().zip(&said).take(2) {
        let error = error.as_ref().unwrap_or_else(|| panic!("{what}: read with {} MiB", budget / MIB));
        assert_eq!(error.kind(), ErrorKind::Limit, "{what}: {error}");
        assert!(error.to_string().contains("budget"), "{what}: {error}");
    }
}

#[test]
fn every_damaged_file_stays_within_its_budget() {
    let _alone = alone();
    let all = bad::all();
    for bad in &all {
        stays_within(bad.name, &bad.bytes(), &SMALL_BUDGETS);
    }
    let budgets: Vec<_> = SMALL_BUDGETS.iter().map(|budget| (budget / MIB).to_string()).collect();
    summary::note("budget", &format!("{} damaged files within budgets of {} MiB", all.len(), budgets.join(", ")));
}

/// A model whose envelope is these bytes, compressed.
fn envelope_of(kind: EnvelopeType, payload: &[u8]) -> Bytes {
    let mut model = samples::flat();
    let (envelope, _) = envelope::wrap(kind, payload);
    let (stored, length) = (zstd(&envelope), envelope.len() as u64);
    model.edit_bytes(Stage::Stored(kind), move |bytes| *bytes = stored.clone());
    match kind {
        EnvelopeType::Header => model.edit_anchor(move |anchor| anchor.len_header = length),
        EnvelopeType::Footer => model.edit_anchor(move |anchor| anchor.len_footer = length),
        EnvelopeType::PageList => model.edit_footer(move |footer| footer.cluster_groups[0].page_list.length = length),
    }
    model.build().expect("a file")
}

/// A list frame around `count` times the same item.
fn list(count: usize, item: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut buffer = Buffer::new();
    buffer.i64_le(-((12 + count * item.len() + tail.len()) as i64));
    buffer.u32_le(count as u32);
    buffer.put(&item.repeat(count));
    buffer.put(tail);
    buffer.into_vec()
}

/// Class 72: kilobytes that become a quarter of a gibibyte of zeros, or more.
#[test]
fn bombs_of_metadata() {
    let _alone = alone();
    for kind in [EnvelopeType::Header, EnvelopeType::Footer, EnvelopeType::PageList] {
        let file = envelope_of(kind, &vec![0; 255 << 20]);
        assert!(file.len() < 64 << 10, "{} bytes", file.len());
        is_limited(&format!("a bomb as {kind:?}"), &file);
    }
}

/// Records that are as short as they can be grow most: to fields with names, children, columns, Arrow schemas.
#[test]
fn records_that_grow() {
    let _alone = alone();
    let header = |fields: &[u8], columns: &[u8]| {
        let mut payload = vec![0; 8];
        payload.extend_from_slice(&[1, 0, 0, 0, b'n', 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend_from_slice(fields);
        payload.extend_from_slice(columns);
        payload.extend_from_slice(&list(0, &[], &[]).repeat(2));
        payload
    };
    let nothing = list(0, &[], &[]);
    // Fields without a name, 40 bytes each; columns of 20 bytes each.
    let field = [&40u64.to_le_bytes()[..], &[0; 32]].concat();
    is_limited("nameless fields", &envelope_of(EnvelopeType::Header, &header(&list(2_000_000, &field, &[]), &nothing)));
    let column = [&20u64.to_le_bytes()[..], &[0; 12]].concat();
    is_limited("columns", &envelope_of(EnvelopeType::Header, &header(&nothing, &list(4_000_000, &column, &[]))));
    // Fields that are legal, with one column each: all of them become a schema.
    let mut fields = Buffer::new();
    const FIELDS: u32 = 60_000;
    for id in 0..FIELDS {
        fields.i64_le(40 + 5 + 5);
        [0, 0, id, 0].into_iter().for_each(|word| fields.u32_le(word));
        fields.string_le(&format!("{id:05}"));
        fields.string_le("float");
        fields.u32_le(0);
        fields.u32_le(0);
    }
    let fields = fields.into_vec();
    let fields = [&(-((12 + fields.len()) as i64)).to_le_bytes()[..], &FIELDS.to_le_bytes(), &fields].concat();
    let mut columns = Buffer::new();
    for id in 0..FIELDS {
        columns.i64_le(20);
        columns.u16_le(ColumnType::Real32.code());
        columns.u16_le(32);
        columns.u32_le(id);
        columns.u32_le(0);
    }
    let columns = columns.into_vec();
    let columns = [&(-((12 + columns.len()) as i64)).to_le_bytes()[..], &FIELDS.to_le_bytes(), &columns].concat();
    is_limited("fields", &envelope_of(EnvelopeType::Header, &header(&fields, &columns)));

    // Groups of 40 bytes with a page list that is nowhere.
    let checksum = samples::flat().header.write().1;
    let footer = |groups: &[u8]| {
        let mut payload = vec![0; 8];
        payload.extend_from_slice(&checksum.to_le_bytes());
        payload.extend_from_slice(&56u64.to_le_bytes());
        payload.extend_from_slice(&nothing.repeat(4));
        payload.extend_from_slice(groups);
        payload.extend_from_slice(&nothing);
        payload
    };
    let mut group = Buffer::new();
    group.i64_le(40);
    [0, 0].into_iter().for_each(|word| group.u64_le(word));
    group.u32_le(0);
    group.u64_le(16);
    group.u32_le(1 << 31 | 0x55 << 24 | 4);
    let groups = list(900_000, group.as_slice(), &[]);
    is_limited("cluster groups", &envelope_of(EnvelopeType::Footer, &footer(&groups)));
}

/// A page list of clusters without columns, and one of a column with pages of eight bytes each.
#[test]
fn page_lists_that_grow() {
    let _alone = alone();
    let checksum = samples::flat().header.write().1;
    let page_list = |summaries: &[u8], clusters: &[u8]| [&checksum.to_le_bytes()[..], summaries, clusters].concat();
    let summary = [&24u64.to_le_bytes()[..], &[0; 16]].concat();
    let (summaries, clusters) = (list(2_000_000, &summary, &[]), list(2_000_000, &list(0, &[], &[]), &[]));
    let file = envelope_of(EnvelopeType::PageList, &page_list(&summaries, &clusters));
    is_limited("clusters of nothing", &file);

    let first = [&24u64.to_le_bytes()[..], &0u64.to_le_bytes(), &6u64.to_le_bytes()].concat();
    let second = [&24u64.to_le_bytes()[..], &6u64.to_le_bytes(), &4u64.to_le_bytes()].concat();
    let page = [&0u32.to_le_bytes()[..], &(1u32 << 31 | 0x55 << 24 | 4).to_le_bytes()].concat();
    let columns = list(1, &list(12_000_000, &page, &[0; 12]), &[]);
    let column = list(0, &[], &[0; 12]);
    let columns = [
        &(-((12 + columns.len() - 12 + column.len()) as i64)).to_le_bytes()[..],
        &2u32.to_le_bytes(),
        &columns[12..],
        &column,
    ]
    .concat();
    let other = list(2, &column, &[]);
    let clusters =
        [&(-((12 + columns.len() + other.len()) as i64)).to_le_bytes()[..], &2u32.to_le_bytes(), &columns, &other]
            .concat();
    let file = envelope_of(EnvelopeType::PageList, &page_list(&list(2, &[], &[first, second].concat()), &clusters));
    is_limited("pages of eight bytes", &file);
}

/// A key list that is most of the file: names without end, and directories that make every path long.
#[test]
fn key_lists_that_grow() {
    let _alone = alone();
    let mut model = samples::flat();
    model.edit_bytes(Stage::File, |file| {
        let record = 100 + u32::from_be_bytes([file[28], file[29], file[30], file[31]]) as usize;
        let at =
            u32::from_be_bytes([file[record + 26], file[record + 27], file[record + 28], file[record + 29]]) as usize;
        let key_bytes = usize::from(u16::from_be_bytes([file[at + 14], file[at + 15]]));
        // The shortest key: no class, no name, no title.
        let mut key = Buffer::new();
        key.u32_be(100);
        key.u16_be(4);
        [0, 0].into_iter().for_each(|word| key.u32_be(word));
        key.u16_be(29);
        key.u16_be(1);
        [100, 100].into_iter().for_each(|word| key.u32_be(word));
        key.put(&[0; 3]);
        const KEYS: usize = 1_500_000;
        let mut list = file[at..at + key_bytes].to_vec();
        list.extend_from_slice(&(KEYS as u32).to_be_bytes());
        list.extend_from_slice(&key.as_slice().repeat(KEYS));
        let nbytes = (list.len() as u32).to_be_bytes();
        list[..4].copy_from_slice(&nbytes);
        let place = (file.len() as u32).to_be_bytes();
        file[record + 26..record + 30].copy_from_slice(&place);
        file.extend_from_slice(&list);
    });
    is_limited("a million keys", &model.build().expect("a file"));
}

fn page_of_zeros(bytes: usize, elements: u32) -> Page {
    Page { elements, stored: zstd(&vec![0; bytes]), checksum: Some(None), locator: None, digest: None }
}

/// One cluster of one field whose columns have these pages.
fn one_field(fields: Vec<FieldRecord>, columns: Vec<ColumnRecord>, pages: Vec<Vec<Page>>, entries: u64) -> Bytes {
    let mut model = samples::flat();
    model.header.schema = SchemaRecords { fields, columns, ..SchemaRecords::default() };
    let column = |pages| Column { pages, first_element: Some(0), compression: 505 };
    let summary = envelope::ClusterSummary { first_entry: 0, entries, flags: 0 };
    model.groups =
        vec![Group { clusters: vec![Cluster { summary, columns: pages.into_iter().map(column).collect() }] }];
    model.build().expect("a file")
}

fn field(name: &str, type_name: &str, parent: u32, role: u16) -> FieldRecord {
    FieldRecord { name: name.into(), type_name: type_name.into(), parent, role, ..FieldRecord::default() }
}

fn column(field: u32, column_type: ColumnType, bits: u16) -> ColumnRecord {
    let range = (column_type == ColumnType::Real32Quant).then_some((0.0, 1.0));
    ColumnRecord { column_type: column_type.code(), bits, field, range, ..ColumnRecord::default() }
}

/// Class 72: pages that are as large as they may be, or become so when they are decoded.
#[test]
fn bombs_of_pages() {
    let _alone = alone();
    let floats = || vec![field("f", "float", 0, role::PLAIN)];
    let file = one_field(
        floats(),
        vec![column(0, ColumnType::Real32, 32)],
        vec![vec![page_of_zeros(256 << 20, 64 << 20)]],
        64 << 20,
    );
    assert!(file.len() < 64 << 10, "{} bytes", file.len());
    is_limited("a page of zeros", &file);
    // A bit an element becomes four bytes of each.
    let bits = |entries: u32| vec![page_of_zeros(entries as usize / 8, entries)];
    let file = one_field(floats(), vec![column(0, ColumnType::Real32Quant, 1)], vec![bits(1 << 28)], 1 << 28);
    is_limited("a page of bits as floats", &file);
    // As doubles, which batches take in part: the whole page must be decoded for it.
    let doubles = vec![field("d", "double", 0, role::PLAIN)];
    let file = one_field(doubles, vec![column(0, ColumnType::Real32Quant, 1)], vec![bits(1 << 28)], 1 << 28);
    is_limited("a page of bits as doubles", &file);
    let ntuple = ntuple(&file, 64 * MIB);
    let (error, bytes) = peak(|| ntuple.read_all().entries(7..9).to_batch().expect_err("a page too large"));
    assert!(error.to_string().contains("pages to decode: needs 2181038080 bytes of memory"), "{error}");
    assert!(bytes < 64 * MIB + SLACK, "{bytes} bytes");
    // Many pages that share the same few bytes: the file cannot show for them.
    let model = |pages: usize| {
        let page = page_of_zeros(16 << 20, 4 << 20);
        let pages = vec![page; pages];
        one_field(floats(), vec![column(0, ColumnType::Real32, 32)], vec![pages.clone()], (pages.len() as u64) << 22)
    };
    is_limited("pages of zeros", &model(16));
}

/// Values that Arrow makes where nothing is stored.
#[test]
fn values_that_are_not_stored_are_limited() {
    let _alone = alone();
    // A column that begins at the end: all of it is zero.
    let mut late = column(0, ColumnType::Real64, 64);
    late.first_element = Some(1 << 31);
    let file = one_field(vec![field("d", "double", 0, role::PLAIN)], vec![late], vec![Vec::new()], 1 << 31);
    is_limited("a late column", &file);
    // Fixed arrays that are missing take as much place as those that are there.
    let mut array = field("_0", "std::array<float,1000000>", 0, role::PLAIN);
    array.array_size = Some(1_000_000);
    let fields = vec![
        field("o", "std::optional<std::array<float,1000000>>", 0, role::COLLECTION),
        array,
        field("_0", "float", 1, role::PLAIN),
    ];
    let columns = vec![column(0, ColumnType::Index64, 64), column(2, ColumnType::Real32, 32)];
    let file = one_field(fields, columns, vec![vec![page_of_zeros(80_000, 10_000)], Vec::new()], 10_000);
    is_limited("missing arrays", &file);
}

fn ntuple(file: &Bytes, budget: u64) -> Ntuple {
    let file = memory::file(file).expect("a file").with_memory_budget(budget);
    file.ntuple(None).expect("an ntuple")
}

/// Random floats, so that nothing shrinks, in clusters of a mebibyte.
fn large(clusters: usize) -> (Bytes, u64) {
    let mut random = conformance::mutate::Random::new(1);
    let batches: Vec<RecordBatch> = (0..clusters)
        .map(|_| {
            let values: Float32Array = (0..256 << 10).map(|_| (random.next() >> 40) as f32).collect();
            RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).expect("a batch")
        })
        .collect();
    let schema = Schema::from_arrow(&batches[0].schema()).expect("a schema");
    let options = WriteOptions::default().with_compression(Compression::NONE).with_page_bytes(64 << 10);
    let bytes = memory::write(&schema, &batches, options, true).expect("a file");
    (bytes, (clusters as u64) << 20)
}

/// What is larger than the budget is fetched in parts, and its values are the caller's own wish.
#[test]
fn large_files_are_read_with_small_budgets() {
    let _alone = alone();
    let (file, values) = large(48);
    let log = IoLog::default();
    let source = RecordingSource::new(MemorySource::new(file), &log);
    let file = File::new(Arc::new(source), true).expect("a file").with_memory_budget(4 * MIB);
    let ntuple = file.ntuple(None).expect("an ntuple");
    let (batch, bytes) = peak(|| ntuple.read_all().to_batch().expect("all data"));
    assert_eq!(batch.num_rows() as u64 * 4, values);
    assert!(bytes < values + 6 * MIB, "{} MiB for {} MiB of values", bytes / MIB, values / MIB);
    let most = log.events().into_iter().filter_map(|event| match event {
        IoEvent::Read { requests, .. } => Some(requests.iter().map(|range| range.end - range.start).sum::<u64>()),
        _ => None,
    });
    let most = most.max().unwrap_or_default();
    assert!(most <= 2 * MIB, "{most} bytes were fetched at once");
    drop(batch);
    let (rows, bytes) = peak(|| {
        let batches = ntuple.read_all().batches(10_000).expect("batches");
        batches.map(|batch| batch.expect("a batch").num_rows() as u64).sum::<u64>()
    });
    assert_eq!(rows * 4, values);
    assert!(bytes < 4 * MIB + MIB, "{} KiB with 4 MiB allowed", bytes >> 10);
}

/// Entries may grow: the number of entries that are decoded at once is chosen by the first ones.
#[test]
fn a_stream_holds_no_more_than_the_budget_and_one_batch() {
    let _alone = alone();
    const BUDGET: u64 = 16 * MIB;
    // Twenty clusters of 1000 entries with an item each, then one in which every entry has 64 KiB.
    let lists = |entries: usize, items: usize| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..entries * items).map(|i| i as i64 * 7919)));
        let item = Arc::new(Field::new("item", DataType::Int64, false));
        let offsets = OffsetBuffer::from_lengths(vec![items; entries]);
        let list = LargeListArray::new(item, offsets, values, None);
        RecordBatch::try_from_iter([("v", Arc::new(list) as ArrayRef)]).expect("a batch")
    };
    let mut batches = vec![lists(1000, 1); 20];
    batches.push(lists(1000, 8 << 10));
    batches.push(lists(1000, 1));
    let schema = Schema::from_arrow(&tupelo::schema::tighten(&batches[0])).expect("a schema");
    let options = WriteOptions::default().with_page_bytes(64 << 10);
    let file = memory::write(&schema, &batches, options, true).expect("a file");
    let ntuple = ntuple(&file, BUDGET);
    let ((rows, largest), bytes) = peak(|| {
        let (mut rows, mut largest) = (0, 0);
        for batch in ntuple.read_all().batches(100).expect("batches") {
            let batch = batch.expect("a batch");
            rows += batch.num_rows();
            largest = largest.max(batch.slice(0, batch.num_rows()).get_array_memory_size() as u64);
        }
        (rows, largest)
    });
    assert_eq!(rows, 22_000);
    // A batch of 100 large entries is 6.25 MiB of values.
    assert!(bytes <= BUDGET + 8 * MIB, "{} MiB, the largest batch has {} MiB", bytes / MIB, largest / MIB);
}

/// What one reader holds is not there for another one of the same file, and comes back when it is dropped.
#[test]
fn metadata_is_counted_together() {
    let mut model: Model = samples::flat();
    model.header.description = "x".repeat(1 << 20);
    let file = model.build().expect("a file");
    let file = memory::file(&file).expect("a file").with_memory_budget(6 * MIB);
    let mut open = Vec::new();
    let error = loop {
        match file.ntuple(None) {
            Ok(ntuple) => open.push(ntuple),
            Err(error) => break error,
        }
        assert!(open.len() < 100, "nothing is counted");
    };
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("allow a larger memory budget"), "{error}");
    open.clear();
    assert!(file.ntuple(None).is_ok());
    assert!(file.with_memory_budget(1024).ntuple(None).is_err());
}

/// Honest data may be all zeros: 1.5 GiB of values in a few hundred KiB are read in batches with the budget that
/// everybody has.
#[test]
fn highly_compressed_data_is_read_in_batches_with_the_default_budget() {
    let _alone = alone();
    const BATCH: usize = 1 << 20;
    const BATCHES: usize = 96;
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; BATCH]));
    let batch = RecordBatch::try_from_iter([("a", zeros.clone()), ("b", zeros)]).expect("a batch");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let batches = vec![batch; BATCHES];
    let file = memory::write(&schema, &batches, WriteOptions::default(), false).expect("a file");
    let values = (BATCH * BATCHES * 16) as u64;
    assert!(values == 1536 * MIB && file.len() < 4 << 20, "{} bytes stored", file.len());
    let ntuple = memory::file(&file).expect("a file").ntuple(None).expect("an ntuple");
    let batches = [ntuple.read_all().batches(100_000), ntuple.read_all().batches_of_bytes(64 << 20)];
    for batches in batches.map(|batches| batches.expect("batches")) {
        let (rows, bytes) = peak(|| batches.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>());
        assert_eq!(rows, BATCH * BATCHES);
        assert!(bytes < 1024 * MIB + SLACK, "{} MiB", bytes / MIB);
    }
}
