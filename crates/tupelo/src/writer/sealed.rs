//! Clusters whose pages are sealed already, which are stored without decoding.

use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::encoding::Encoding;

use crate::encode::{ColumnWriter, FieldWriter, SealedPage};
use crate::schema::Kind;
use crate::{Error, Result};

/// A whole cluster.
#[derive(Debug)]
pub(crate) struct SealedCluster {
    pub(crate) entries: u64,
    /// One for each physical column; `None` for those of representations that the cluster does not use.
    pub(crate) columns: Vec<Option<SealedColumn>>,
}

/// The pages of one column of a cluster.
#[derive(Debug)]
pub(crate) struct SealedColumn {
    pub(crate) encoding: Encoding,
    /// Compression setting.
    pub(crate) compression: u32,
    pub(crate) pages: Vec<SealedPage>,
}

impl SealedColumn {
    fn elements(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.elements)).sum()
    }

    /// Bytes before compression.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        let bytes = |page: &SealedPage| self.encoding.packed_bytes(page.elements.into()).unwrap_or(u64::MAX);
        self.pages.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes as stored, checksums included.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.bytes.len() as u64).sum()
    }

    fn check(&self, encoding: &Encoding) -> Result<()> {
        if self.encoding != *encoding {
            let [own, expected] = [&self.encoding, encoding].map(|encoding| encoding.column_type().name());
            return Err(Error::invalid_argument(format!("its pages are encoded as {own}, expected {expected}")));
        }
        self.pages.iter().enumerate().try_for_each(|(number, page)| {
            let bytes = page.bytes.len().checked_sub(page.checksum_bytes()).map(|bytes| bytes as u64);
            let packed_bytes = self.encoding.packed_bytes(page.elements.into());
            let is_size = bytes.zip(packed_bytes).is_some_and(|(bytes, packed)| (1..=packed).contains(&bytes));
            let is_digest = page.digest.is_none_or(|digest| page.bytes.ends_with(&digest.to_le_bytes()));
            match is_size && is_digest && page.elements <= i32::MAX as u32 {
                true => Ok(()),
                false => Err(Error::invalid_argument(format!(
                    "page {number} of {} elements and {} bytes (including any checksum of {CHECKSUM_BYTES} bytes) is \
                     not a valid sealed page",
                    page.elements,
                    page.bytes.len()
                ))),
            }
        })
    }
}

/// The columns of a sealed cluster in the order of their writers; `writers` has the writer of each physical column.
pub(super) fn by_writer(
    columns: Vec<Option<SealedColumn>>,
    writers: &[Option<usize>],
    columns_written: &[ColumnWriter],
) -> Result<Vec<SealedColumn>> {
    if columns.len() != writers.len() {
        let (given, expected) = (columns.len(), writers.len());
        return Err(Error::invalid_argument(format!("sealed cluster has {given} columns, expected {expected}")));
    }
    let mut ordered: Vec<Option<SealedColumn>> = columns_written.iter().map(|_| None).collect();
    for (index, (column, writer)) in columns.into_iter().zip(writers).enumerate() {
        let within = |error: Error| error.within(format!("column {index}"));
        match (column, writer.and_then(|writer| Some((columns_written.get(writer)?, ordered.get_mut(writer)?)))) {
            (Some(column), Some((writer, place))) => {
                column.check(&writer.options().encoding).map_err(within)?;
                *place = Some(column);
            }
            (None, None) => {}
            (None, Some(_)) => return Err(within(Error::invalid_argument("its pages are missing"))),
            (Some(_), None) => {
                let what = "its pages belong to a representation that is not written";
                return Err(within(Error::invalid_argument(what)));
            }
        }
    }
    let missing = || Error::invalid_argument("a column of the ntuple has no pages");
    ordered.into_iter().map(|column| column.ok_or_else(missing)).collect()
}

/// Checks that the numbers of elements agree with each other and with the number of entries, as far as that is known
/// without decoding.
pub(super) fn check_elements(fields: &[Option<FieldWriter>], columns: &[SealedColumn], entries: u64) -> Result<()> {
    for field in fields.iter().flatten() {
        let values = values(field, columns).map_err(|e| e.within(format!("field '{}'", field.path)))?;
        if let Some(values) = values.filter(|values| *values != entries) {
            let what = format!("found {values} values in column {} for {entries} entries", field.column);
            return Err(Error::invalid_argument(what).within(format!("field '{}'", field.path)));
        }
    }
    Ok(())
}

/// The number of values of a field; `None` where its columns do not tell.
fn values(field: &FieldWriter, columns: &[SealedColumn]) -> Result<Option<u64>> {
    let children = field.children.iter().map(|child| values(child, columns)).collect::<Result<Vec<_>>>()?;
    let first = field.column;
    let own = || columns.get(first).map(SealedColumn::elements);
    let fail = |what: String| Err(Error::invalid_argument(format!("subfields from column {first} on: {what}")));
    let divide = |elements: u64, size: u64| match elements.checked_rem(size) {
        Some(0) => Ok(Some(elements / size)),
        None if elements == 0 => Ok(None),
        _ => fail(format!("{elements} elements are not a multiple of size {size}")),
    };
    match &field.kind {
        Kind::Bitset { size } => own().map_or(Ok(None), |elements| divide(elements, *size)),
        Kind::Array { size, .. } => children.first().copied().flatten().map_or(Ok(None), |items| divide(items, *size)),
        Kind::Wrapper(_) => Ok(children.first().copied().flatten()),
        Kind::Record(_) | Kind::Tuple(_) => {
            let mut known = children.into_iter().flatten();
            let Some(values) = known.next() else { return Ok(None) };
            match known.find(|other| *other != values) {
                Some(other) => fail(format!("members of one record have {values} and {other} values")),
                None => Ok(Some(values)),
            }
        }
        Kind::Optional(_) | Kind::Variant(_) => {
            let (own, inner) = (own(), children.into_iter().flatten().fold(0, u64::saturating_add));
            match own.filter(|own| inner > *own) {
                Some(own) => fail(format!("found {inner} values, expected at most {own}")),
                None => Ok(own),
            }
        }
        _ => Ok(own()),
    }
}
