//! What fuzzing found, each as the smallest file that shows it.

use conformance::{outcome, samples};

const BUDGET_BYTES: u64 = 64 << 20;

/// `end_to_end`: verifying looked at each cluster alone, and so did not see that the items of a collection begin in the
/// second one where they did not end in the first; reading did.
#[test]
fn verifying_follows_columns_from_cluster_to_cluster() {
    let mut model = samples::nested();
    let mut second = model.groups[0].clusters[0].clone();
    second.summary.first_entry = second.summary.entries;
    for column in &mut second.columns {
        let elements = column.pages.iter().map(|page| u64::from(page.elements)).sum::<u64>();
        column.first_element = column.first_element.map(|first| first + elements);
    }
    model.groups[0].clusters.push(second);
    let data = outcome::handle(&model.build().expect("a file"), true, BUDGET_BYTES).expect("it is whole");
    assert_eq!(data[0].batch.num_rows(), 10);
    model.column(1, 1).first_element = Some(1 << 55);
    let error = outcome::handle(&model.build().expect("a file"), true, BUDGET_BYTES).expect_err("a gap").to_string();
    let place = "field 'v._0': column 1 begins at element 36028797018963968 in cluster 1, expected element 7";
    assert!(error.ends_with(place), "{error}");
}

/// `end_to_end`: a fixed array longer than Arrow's can be was refused only when it was read, even where there was nothing
/// to read, and verifying said nothing.
#[test]
fn an_array_longer_than_arrows_is_refused_by_all() {
    let mut model = samples::nested();
    model.groups.clear();
    let array = model.header.schema.fields.iter_mut().find(|field| field.array_size.is_some()).expect("an array");
    array.array_size = Some(1 << 31);
    array.type_name = format!("std::array<float,{}>", 1u64 << 31);
    let error = outcome::handle(&model.build().expect("a file"), true, BUDGET_BYTES).expect_err("too long").to_string();
    assert!(error.ends_with("field 'a': fixed array of 2147483648 items exceeds the limit of 2147483647"), "{error}");
}
