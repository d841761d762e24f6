//! Checks of clusters that are stored without decoding.

use crate::encode::{ColumnWriter, FieldWriter, SealedCluster, SealedColumn};
use crate::schema::Kind;
use crate::{Error, Result};

/// Checks the columns of a sealed cluster; returns them in the order of their writers.
pub(super) fn check(
    cluster: SealedCluster,
    fields: &[Option<FieldWriter>],
    writers: &[ColumnWriter],
) -> Result<Vec<SealedColumn>> {
    if cluster.entries == 0 {
        return Err(Error::invalid_argument("sealed cluster has no entries"));
    }
    let mut places = Vec::with_capacity(writers.len());
    fields.iter().flatten().for_each(|field| add_columns(field, &mut places));
    if cluster.columns.len() != places.len() {
        let (given, expected) = (cluster.columns.len(), places.len());
        return Err(Error::invalid_argument(format!("sealed cluster has {given} columns, expected {expected}")));
    }
    let mut placed: Vec<(usize, SealedColumn)> = places.into_iter().zip(cluster.columns).collect();
    placed.sort_by_key(|(place, _)| *place);
    for (place, column) in &placed {
        let checked = writers.get(*place).map_or(Ok(()), |writer| column.check(&writer.options().encoding));
        checked.map_err(|error| error.within(format!("column {place}")))?;
    }
    let columns: Vec<SealedColumn> = placed.into_iter().map(|(_, column)| column).collect();
    check_elements(fields, &columns, cluster.entries).map(|()| columns)
}

/// Adds the columns of a field before those of its subfields.
fn add_columns(field: &FieldWriter, places: &mut Vec<usize>) {
    places.extend(field.column..field.column + field.columns());
    field.children.iter().for_each(|child| add_columns(child, places));
}

/// Checks that the numbers of elements agree with each other and with the number of entries, as far as that is known
/// without decoding.
fn check_elements(fields: &[Option<FieldWriter>], columns: &[SealedColumn], entries: u64) -> Result<()> {
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
