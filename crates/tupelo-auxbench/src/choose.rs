//! What is measured: stores, their variables, and entries.

use std::collections::BTreeSet;

use serde::Serialize;
use tupelo::{Error, Result};
use tupelo_xaod::Event;

use crate::config::{Config, Store};
use crate::random::Random;

/// The store and the number of its variables that the first published runs loaded.
const LEGACY: (&str, u64) = ("EventInfo", 10);
/// Stores that are always left out by `storeNameFiltering` begin like this.
const FILTERED: &str = "AnalysisTrigMatch";

/// A store and the variables that are measured of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) store: String,
    pub(crate) variables: Vec<String>,
}

/// Entries that are loaded, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entries {
    /// Of the warm-up.
    pub warmup: Vec<u64>,
    /// Those that are measured.
    pub measured: Vec<u64>,
}

/// The stores with all variables that every event has, after the options that choose stores. Adds to the warnings.
pub(crate) fn stores(config: &Config, events: &[(Store, Event)], warnings: &mut Vec<String>) -> Result<Vec<Chosen>> {
    let all = common(events, warnings);
    let names: Vec<String> = all.iter().map(|it| it.store.clone()).collect();
    let common = reduced(all, &config.variable_names)?;
    let is_kept = |name: &str| {
        !config.store_name_filtering
            || !name.starts_with(FILTERED) && !config.problematic_stores.iter().any(|other| other == name)
    };
    let known = || names.iter().map(String::as_str);
    if config.legacy {
        let (name, count) = LEGACY;
        let store = common.iter().find(|it| it.store == name).ok_or_else(|| Error::no_such("store", name, known()))?;
        let variables = chosen(&mut Random::new(config.seed), &store.variables, count);
        return Ok(vec![Chosen { store: name.to_owned(), variables }]);
    }
    if let Some(missing) = config.problematic_stores.iter().find(|name| !known().any(|known| known == *name)) {
        warnings.push(format!("storeNamesWithProblematicAuxids: no store is named '{missing}'"));
    }
    if !config.store_names.is_empty() {
        if config.n_stores.is_some() || config.min_auxids > 1 {
            warnings.push("storeNames overrides nStores and minAuxids".to_owned());
        }
        let found = |name: &String| {
            if !names.contains(name) {
                return Err(Error::no_such("store", name, known()));
            }
            let found = common.iter().find(|it| it.store == *name);
            found.cloned().ok_or_else(|| {
                Error::invalid_argument(format!("variableNames names no variable of '{name}', which storeNames names"))
            })
        };
        let named: Vec<Chosen> = config.store_names.iter().map(found).collect::<Result<_>>()?;
        let (kept, left_out): (Vec<_>, Vec<_>) = named.into_iter().partition(|it| is_kept(&it.store));
        warnings.extend(left_out.iter().map(|it| format!("store '{}' is left out by storeNameFiltering", it.store)));
        return if kept.is_empty() { Err(Error::invalid_argument("no store is left")) } else { Ok(kept) };
    }
    let all: Vec<Chosen> = common.iter().filter(|it| is_kept(&it.store)).cloned().collect();
    let largest = all.iter().map(|it| it.variables.len()).max().unwrap_or(0);
    let large = match config.min_auxids > largest {
        true => {
            let what = format!("no store has {} variables (minAuxids), the largest has {largest}", config.min_auxids);
            warnings.extend(config.verbose.then(|| format!("{what}: all stores are taken")));
            all
        }
        false => all.into_iter().filter(|it| it.variables.len() >= config.min_auxids).collect(),
    };
    if large.is_empty() {
        return Err(Error::invalid_argument("no store has variables"));
    }
    let wanted = config.n_stores.unwrap_or(large.len());
    if config.verbose && wanted > large.len() {
        warnings.push(format!("there are {} stores, nStores asks for {wanted}: all are taken", large.len()));
    }
    let places = Random::new(config.seed).distinct(wanted as u64, large.len() as u64);
    Ok(places.into_iter().filter_map(|place| large.get(place as usize).cloned()).collect())
}

/// The stores with only the variables of these names, if there are any.
fn reduced(stores: Vec<Chosen>, names: &[String]) -> Result<Vec<Chosen>> {
    if names.is_empty() {
        return Ok(stores);
    }
    let known: Vec<String> =
        stores.iter().flat_map(|it| it.variables.iter().map(move |name| format!("{}.{name}", it.store))).collect();
    if let Some(missing) = names.iter().find(|name| !known.contains(name)) {
        return Err(Error::no_such("variable", missing, known.iter().map(String::as_str)));
    }
    let named: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let own = |mut it: Chosen| {
        it.variables.retain(|name| named.contains(format!("{}.{name}", it.store).as_str()));
        (!it.variables.is_empty()).then_some(it)
    };
    Ok(stores.into_iter().filter_map(own).collect())
}

/// The stores and variables that all events have. Names those that only one has.
fn common(events: &[(Store, Event)], warnings: &mut Vec<String>) -> Vec<Chosen> {
    let names = |event: &Event, store: &str| -> BTreeSet<String> {
        let variables = event.stores().container(store).map(tupelo_xaod::Container::variables).unwrap_or_default();
        variables.iter().map(|variable| variable.name().to_owned()).collect()
    };
    let Some(((_, first), others)) = events.split_first() else { return Vec::new() };
    let (mut found, mut differing) = (Vec::new(), 0);
    for container in first.stores().containers() {
        let all = names(first, container.name());
        let mut variables = all.clone();
        for (_, other) in others {
            let own = names(other, container.name());
            differing += own.symmetric_difference(&all).count();
            variables = variables.intersection(&own).cloned().collect();
        }
        if !variables.is_empty() {
            found.push(Chosen { store: container.name().to_owned(), variables: variables.into_iter().collect() });
        }
    }
    if differing > 0 {
        warnings.push(format!("{differing} variables are left out, which only one of the files has"));
    }
    found
}

/// A percentage of the variables of each store, at least one.
pub(crate) fn variables(config: &Config, stores: &[Chosen], percentage: f64) -> Vec<Chosen> {
    let mut random = Random::new(config.seed);
    let part = |it: &Chosen| {
        let all = it.variables.len();
        let wanted = ((all as f64 * percentage / 100.0).round() as u64).max(1);
        Chosen { store: it.store.clone(), variables: chosen(&mut random, &it.variables, wanted) }
    };
    stores.iter().map(part).collect()
}

/// Some of the names, in their order.
fn chosen(random: &mut Random, names: &[String], count: u64) -> Vec<String> {
    let places = random.distinct(count, names.len() as u64);
    places.into_iter().filter_map(|place| names.get(place as usize).cloned()).collect()
}

/// The entries of the warm-up and the measured ones, of so many.
pub(crate) fn entries(config: &Config, all: u64, warnings: &mut Vec<String>) -> Entries {
    let wanted = config.n_entries.unwrap_or(all);
    if config.verbose && wanted > all {
        warnings.push(format!("there are {all} entries, nEntries asks for {wanted}: all are measured"));
    }
    let mut random = Random::new(config.seed);
    let measured: Vec<u64> = match (config.legacy, config.select_entries_randomly) {
        (true, _) => (0..wanted.min(all)).filter(|_| random.up_to(1) == 1).collect(),
        (false, true) => random.distinct(wanted, all),
        (false, false) => (0..wanted.min(all)).collect(),
    };
    let count = if config.warmup { usize::try_from(config.n_warmup_entries).unwrap_or(usize::MAX) } else { 0 };
    if config.warmup_is_same {
        return Entries { warmup: measured.iter().copied().take(count).collect(), measured };
    }
    let mut taken = measured.iter().copied().peekable();
    // Both ascend.
    let is_other = |entry: &u64| {
        while taken.next_if(|other| other < entry).is_some() {}
        taken.peek() != Some(entry)
    };
    let mut warmup: Vec<u64> = (0..all).filter(is_other).take(count).collect();
    let missing = count.min(usize::try_from(all).unwrap_or(usize::MAX)) - warmup.len();
    if missing > 0 {
        warnings.push(format!("{missing} entries of the warm-up are measured, too: there are not enough others"));
        warmup.extend((0..all).take(missing));
    }
    Entries { warmup, measured }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_warm_up_are_others_as_far_as_there_are_any() {
        let mut warnings = Vec::new();
        let mut config = Config { n_entries: Some(4), n_warmup_entries: 3, ..Config::default() };
        let found = entries(&config, 20, &mut warnings);
        assert_eq!((found.warmup, found.measured), (vec![4, 5, 6], vec![0, 1, 2, 3]));
        config.select_entries_randomly = true;
        let found = entries(&config, 20, &mut warnings);
        assert!(found.warmup.iter().all(|entry| !found.measured.contains(entry)) && found.warmup.len() == 3);
        assert_eq!(found.measured, Random::new(15).distinct(4, 20));
        assert!(warnings.is_empty());
        let found = entries(&config, 5, &mut warnings);
        assert_eq!((found.measured.len(), found.warmup.len()), (4, 3));
        assert!(warnings.pop().unwrap().starts_with("2 entries"));
        config.warmup_is_same = true;
        let found = entries(&config, 20, &mut warnings);
        assert_eq!(found.warmup, found.measured[..3]);
        config = Config { warmup: false, n_entries: Some(30), verbose: true, ..Config::default() };
        let found = entries(&config, 20, &mut warnings);
        assert_eq!((found.warmup.len(), found.measured.len(), warnings.len()), (0, 20, 1));
    }

    #[test]
    fn percentages_choose_variables_of_each_store() {
        let names = |count: usize| (0..count).map(|number| format!("v{number:02}")).collect::<Vec<_>>();
        let stores =
            [("a", 40), ("b", 3)].map(|(store, count)| Chosen { store: store.to_owned(), variables: names(count) });
        let lengths = |percentage| {
            let chosen = variables(&Config::default(), &stores, percentage);
            chosen.iter().map(|it| it.variables.len()).collect::<Vec<_>>()
        };
        assert_eq!((lengths(100.0), lengths(25.0), lengths(1.0)), (vec![40, 3], vec![10, 1], vec![1, 1]));
        assert_eq!(variables(&Config::default(), &stores, 25.0), variables(&Config::default(), &stores, 25.0));
    }
}
