//! Numbers of several runs, as T. Hoefler and R. Belli recommend (SC 2015): medians with confidence intervals that assume no
//! distribution, and outliers that are named, not removed.

use serde::Serialize;

/// Distance of neighbours in the clusters of slow loads, in microseconds, and how many make a cluster; as published.
pub(crate) const DISTANCE: f64 = 2000.0;
pub(crate) const NEIGHBOURS: usize = 5;
/// A run departs from the others if it is this many scaled median deviations away from the median, and this part of it.
const OUTLIER: (f64, f64) = (3.0, 0.05);
/// A median deviation of normal values, times this, is their standard deviation.
const NORMAL: f64 = 1.4826;

/// A median of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// The median itself.
    pub median: f64,
    /// Where the median of all possible runs is with 95 % confidence, for six runs or more.
    pub interval: Option<[f64; 2]>,
    /// Least and greatest run.
    pub range: [f64; 2],
}

/// Sorted values.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of sorted values; 0 of none.
pub(crate) fn median_of(sorted: &[f64]) -> f64 {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 || half == 0 { at(half) } else { (at(half - 1) + at(half)) / 2.0 }
}

impl Median {
    /// Of some runs.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values = sorted(values);
        let count = values.len() as f64;
        let half = 1.96 * count.sqrt();
        let ranks = [((count - half) / 2.0).floor(), (1.0 + (count + half) / 2.0).ceil()];
        // Ranks count from 1.
        let at = |rank: f64| values.get((rank as usize).checked_sub(1)?).copied();
        let interval = at(ranks[0]).zip(at(ranks[1])).map(|(low, high)| [low, high]);
        let range = [values.first(), values.last()].map(|value| value.copied().unwrap_or(0.0));
        Self { median: median_of(&values), interval, range }
    }
}

/// The places of values that depart from the others.
pub(crate) fn outliers(values: &[f64]) -> Vec<usize> {
    let median = median_of(&sorted(values.iter().copied()));
    let deviation = median_of(&sorted(values.iter().map(|value| (value - median).abs())));
    let limit = (OUTLIER.0 * NORMAL * deviation).max(OUTLIER.1 * median);
    let departs = |(_, value): &(usize, &f64)| (*value - median).abs() > limit;
    values.iter().enumerate().filter(departs).map(|(place, _)| place).collect()
}

/// Clusters of values as DBSCAN finds them (M. Ester et al., 1996): the cluster of each value, `None` for noise. Values of the
/// same cluster follow each other when they are sorted, since they are numbers.
pub(crate) fn clusters(values: &[f64], distance: f64, neighbours: usize) -> Vec<Option<usize>> {
    let near = |a: f64| values.iter().filter(|b| (a - **b).abs() <= distance).count();
    let is_core: Vec<bool> = values.iter().map(|value| near(*value) >= neighbours).collect();
    let mut order: Vec<usize> = (0..values.len()).filter(|place| is_core[*place]).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut found = vec![None; values.len()];
    let (mut cluster, mut last) = (0, None);
    for place in order {
        if last.is_some_and(|last: f64| values[place] - last > distance) {
            cluster += 1;
        }
        (found[place], last) = (Some(cluster), Some(values[place]));
    }
    // Values at the border belong to the cluster of the nearest core.
    for place in (0..values.len()).filter(|place| !is_core[*place]) {
        let cores = (0..values.len()).filter(|other| is_core[*other]);
        let nearest = cores.min_by(|a, b| {
            let away = |other: &usize| (values[*other] - values[place]).abs();
            away(a).total_cmp(&away(b))
        });
        found[place] =
            nearest.filter(|core| (values[*core] - values[place]).abs() <= distance).and_then(|core| found[core]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_have_intervals_of_ranks() {
        let twenty = Median::of((1..=20).map(f64::from));
        assert_eq!((twenty.median, twenty.range), (10.5, [1.0, 20.0]));
        // J.-Y. Le Boudec, Performance Evaluation, table A.1: ranks 6 and 15 cover 95.9 %; the approximation is wider by one.
        assert_eq!(twenty.interval, Some([5.0, 16.0]));
        assert_eq!(Median::of([3.0, 1.0, 2.0]), Median { median: 2.0, interval: None, range: [1.0, 3.0] });
    }

    #[test]
    fn runs_that_depart_are_found() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.0, 30.0, 10.05]), [4]);
        assert!(outliers(&[10.0, 10.0, 10.0, 10.2]).is_empty());
        assert!(outliers(&[]).is_empty());
    }

    #[test]
    fn clusters_have_neighbours() {
        let values = [1.0, 2.0, 3.0, 50.0, 51.0, 52.0, 53.4, 99.0];
        let found = clusters(&values, 1.5, 3);
        assert_eq!(found, [Some(0), Some(0), Some(0), Some(1), Some(1), Some(1), Some(1), None]);
        assert_eq!(clusters(&values, 1.5, 5), [None; 8]);
    }
}
