//! Histograms of any number of axes: `THnSparse`, which stores only filled bins, and `THn` (`THnBase::Add`).

use std::collections::HashMap;
use std::sync::Arc;

use tupelo_format::object::{Numbers, Object, Value};
use tupelo_format::streamer::StreamerInfos;

use super::arrays::{add_floats, added_up, floats, numbers};
use super::statistics::differing_part;

/// Whether objects of a class can be summed.
pub(super) fn is_histogram(class_name: &str) -> bool {
    class_name.starts_with("THnSparseT<") || class_name.starts_with("THnT<")
}

/// The sum of two histograms, which is the first one otherwise.
pub(super) fn sum(first: &Object, other: &Object) -> Result<Object, String> {
    check_axes(first, other)?;
    // A negative number says that no errors are computed.
    let [own_errors, other_errors] =
        [first, other].map(|it| matches!(it.get("fTsumw2"), Some(Value::Float(squares)) if *squares >= 0.0));
    if own_errors != other_errors {
        return Err("only one of the two histograms has errors".to_owned());
    }
    let mut sum = first.clone();
    add_floats(&mut sum, other, &["fEntries"]);
    if own_errors {
        add_floats(&mut sum, other, &["fTsumw", "fTsumw2"]);
        for name in ["fTsumwx", "fTsumwx2"] {
            let (Some(own), Some(added)) = (numbers(first, name), numbers(other, name)) else { continue };
            sum.set(name, array_like(first, name, added_up(own, added).ok_or_else(|| unlike(name))?)?);
        }
    }
    if first.get("fBinContent").is_some() {
        add_bins(&mut sum, other)?;
        return Ok(sum);
    }
    for name in ["fArray", "fSumw2"] {
        let data = |histogram: &Object| histogram.get(name)?.as_object()?.get("fData").cloned();
        let (Some(Value::Object(array)), Some(added)) = (first.get(name), data(other)) else {
            return Err(format!("its {name} is missing"));
        };
        let (Some(Value::Numbers(own)), Value::Numbers(added)) = (array.get("fData"), added) else {
            return Err(unlike(name));
        };
        let added = match (own.len(), added.len()) {
            // ROOT stores no zeros of a histogram that was never filled.
            (0, _) => Some(added),
            (_, 0) => continue,
            _ => added_up(own, &added),
        };
        let mut array = (**array).clone();
        array.set("fData", Value::Numbers(added.ok_or_else(|| unlike(name))?));
        sum.set(name, Value::Object(Arc::new(array)));
    }
    Ok(sum)
}

fn unlike(name: &str) -> String {
    format!("its {name} has another length or type")
}

/// Refuses histograms with other axes.
fn check_axes(first: &Object, other: &Object) -> Result<(), String> {
    let axes = |histogram: &Object| match histogram.get("fAxes")?.as_object()?.get("fObjects")? {
        Value::List(axes) => Some(axes.clone()),
        _ => None,
    };
    let (Some(own), Some(others)) = (axes(first), axes(other)) else { return Err("its axes are missing".to_owned()) };
    if own.len() != others.len() {
        return Err(format!("it has {} axes, not {}", others.len(), own.len()));
    }
    for (number, axes) in own.iter().zip(&others).enumerate() {
        if let Some(name) = differing_part([axes.0.as_object(), axes.1.as_object()]) {
            return Err(format!("its axis {number} has another {name}"));
        }
    }
    Ok(())
}

/// A `TArray` of the class of a member, with other numbers.
fn array_like(object: &Object, name: &str, numbers: Numbers) -> Result<Value, String> {
    let class_name = object.get(name).and_then(Value::as_object).map_or("TArrayD", Object::class_name);
    array(class_name, numbers)
}

fn array(class_name: &str, numbers: Numbers) -> Result<Value, String> {
    let members = HashMap::from([("fArray".to_owned(), Value::Numbers(numbers))]);
    let array = Object::new(class_name, members, &StreamerInfos::default());
    Ok(Value::Object(array.map_err(|error| error.to_string())?.into()))
}

/// The filled bins of a `THnSparse`, which it stores in chunks.
#[derive(Default)]
struct Bins {
    /// The packed coordinates of each.
    coordinates: Vec<Vec<i8>>,
    contents: Vec<f64>,
    squares: Vec<f64>,
}

impl Bins {
    fn of(histogram: &Object) -> Option<Self> {
        let mut bins = Self::default();
        for chunk in chunks(histogram)? {
            let chunk = chunk.as_object()?;
            let Value::Int(bytes) = chunk.get("fSingleCoordinateSize")? else { return None };
            let bytes = usize::try_from(*bytes).ok().filter(|&bytes| bytes > 0)?;
            let coordinates: &[i8] = match chunk.get("fCoordinates")? {
                Value::Numbers(Numbers::I8(coordinates)) => coordinates,
                Value::Null => &[],
                _ => return None,
            };
            let count = coordinates.len() / bytes;
            let contents = floats(numbers(chunk, "fContent")?);
            // Without errors, the square of each bin is its content.
            let squares = numbers(chunk, "fSumw2").map_or_else(|| contents.clone(), floats);
            bins.coordinates.extend(coordinates.chunks_exact(bytes).map(<[i8]>::to_vec));
            bins.contents.extend(contents.get(..count)?);
            bins.squares.extend(squares.get(..count)?);
        }
        Some(bins)
    }
}

fn chunks(histogram: &Object) -> Option<&[Value]> {
    match histogram.get("fBinContent")?.as_object()?.get("fObjects")? {
        Value::List(chunks) => Some(chunks),
        _ => None,
    }
}

/// Adds the bins of another histogram. Those that are new follow the others, in its order.
fn add_bins(sum: &mut Object, other: &Object) -> Result<(), String> {
    let damaged = || "its bins cannot be read".to_owned();
    let (mut bins, added) = (Bins::of(sum).ok_or_else(damaged)?, Bins::of(other).ok_or_else(damaged)?);
    let [own_size, added_size] = [&bins, &added].map(|it| it.coordinates.first().map(Vec::len));
    if own_size.zip(added_size).is_some_and(|(own, added)| own != added) {
        return Err(damaged());
    }
    let mut places: HashMap<Vec<i8>, usize> = bins.coordinates.iter().cloned().zip(0..).collect();
    for ((coordinates, content), square) in added.coordinates.into_iter().zip(added.contents).zip(added.squares) {
        let place = *places.entry(coordinates).or_insert_with_key(|coordinates| {
            bins.coordinates.push(coordinates.clone());
            bins.contents.push(0.0);
            bins.squares.push(0.0);
            bins.contents.len() - 1
        });
        bins.contents[place] += content;
        bins.squares[place] += square;
    }
    let template = [&*sum, other].into_iter().find_map(|it| chunks(it)?.first()?.as_object().cloned());
    let Some(template) = template else { return Ok(()) };
    let (Some(Value::Object(list)), Some(&Value::Int(size))) = (sum.get("fBinContent"), sum.get("fChunkSize")) else {
        return Err(damaged());
    };
    let size = usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(damaged)?;
    let mut list = (**list).clone();
    let parts = bins.coordinates.chunks(size).zip(bins.contents.chunks(size)).zip(bins.squares.chunks(size));
    let chunk = |((coordinates, contents), squares)| chunk_like(&template, size, coordinates, contents, squares);
    list.set("fObjects", Value::List(parts.map(chunk).collect::<Result<_, _>>()?));
    sum.set("fFilledBins", Value::Int(i64::try_from(bins.contents.len()).map_err(|_| damaged())?));
    sum.set("fBinContent", Value::Object(Arc::new(list)));
    Ok(())
}

/// A chunk of some bins, with room for `size` of them.
fn chunk_like(
    template: &Object,
    size: usize,
    coordinates: &[Vec<i8>],
    contents: &[f64],
    squares: &[f64],
) -> Result<Value, String> {
    let padded = |values: &[f64]| values.iter().copied().chain(std::iter::repeat(0.0)).take(size).collect::<Vec<f64>>();
    let mut chunk = template.clone();
    let coordinates = coordinates.concat();
    chunk.set("fCoordinatesSize", Value::Int(i64::try_from(coordinates.len()).unwrap_or(i64::MAX)));
    chunk.set("fCoordinates", Value::Numbers(Numbers::I8(coordinates)));
    // What is stored bounds how much room a damaged file can ask for.
    let stored = numbers(template, "fContent").filter(|stored| stored.len() == size);
    let stored = stored.ok_or_else(|| "its chunks do not have the size that it names".to_owned())?;
    chunk.set("fContent", array_like(template, "fContent", of_type(stored, padded(contents)))?);
    if matches!(template.get("fSumw2"), Some(Value::Object(_))) {
        chunk.set("fSumw2", array("TArrayD", Numbers::F64(padded(squares)))?);
    }
    Ok(Value::Object(Arc::new(chunk)))
}

/// Numbers in the type of others. Integers stay within it.
fn of_type(like: &Numbers, values: Vec<f64>) -> Numbers {
    macro_rules! to {
        ($variant:ident, $type:ty) => {
            Numbers::$variant(values.into_iter().map(|value| value as $type).collect())
        };
    }
    match like {
        Numbers::I8(_) => to!(I8, i8),
        Numbers::I16(_) => to!(I16, i16),
        Numbers::I32(_) => to!(I32, i32),
        Numbers::I64(_) => to!(I64, i64),
        Numbers::F32(_) => to!(F32, f32),
        _ => Numbers::F64(values),
    }
}
