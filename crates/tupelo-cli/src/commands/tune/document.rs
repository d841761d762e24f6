//! A recommendation as JSON.

use serde_json::{Value, json};
use tupelo::ops::cost::Container;
use tupelo::ops::tune::{Candidate, Link, Measured, PageSettings, Phase, Trial};

use super::report::entry_bytes;
use super::{Found, Goal, Kind, Speed};

pub(super) fn document(found: &Found<'_>, goal: &Goal<'_>) -> Value {
    let Goal { args, store, price, usage } = goal;
    let entries = found.table.entries();
    let one = |candidate: &Candidate| to_json(candidate, entries, goal);
    json!({
        "file": found.table.file_name(),
        "name": found.table.path(),
        "entries": entries,
        "store": store,
        "prices": { "source": price.source, "date": found.date },
        "reads": usage.reads,
        "writes": usage.writes,
        "takes": args.takes,
        "months": args.months,
        "core_hour_dollars": args.core_hour,
        "by": format!("{:?}", args.by).to_lowercase(),
        "cores": found.cores,
        "speed": speed(found.speed),
        "sample": { "entries": found.measured.sample_entries(), "trials": trials(found.measured) },
        "recommendation": one(found.chosen),
        "new_pages": found.new.map(one),
        "command": found.command,
        "left_out": found.measured.left_out(found.chosen.cost.container),
        "not_compared": found.measured.not_compared().iter().map(not_compared).collect::<Value>(),
        "present": found.present.iter().map(one).collect::<Value>(),
        "candidates": found.candidates.iter().map(one).collect::<Value>(),
    })
}

fn not_compared((what, error): &(&str, tupelo::Error)) -> Value {
    json!({ "what": what, "error": error.to_string() })
}

fn phase(phase: &Phase) -> Value {
    json!({
        "seconds": phase.seconds(),
        "limit": phase.limit(),
        "core_seconds": phase.core_seconds,
        "cpu_seconds": phase.cpu_seconds,
        "transfer_seconds": phase.transfer_seconds,
        "wait_seconds": phase.wait_seconds,
        "round_trip_seconds": phase.round_trip_seconds,
    })
}

fn speed(speed: &Speed) -> Value {
    let link =
        |link: Link| json!({ "latency_seconds": link.latency_seconds, "bytes_per_second": link.bytes_per_second });
    json!({
        "origin": speed.origin,
        "source": speed.source,
        "read": link(speed.store.get),
        "write": link(speed.store.put),
        "concurrent_requests": speed.store.hints.concurrency,
        "max_request_bytes": speed.store.hints.max_request_bytes,
        "gap_bytes": speed.store.hints.gap_bytes,
    })
}

fn trials(measured: &Measured) -> Value {
    let one = |trial: &Trial| {
        let auto_flush = trial.auto_flush();
        let size = |is_of_tree: bool| (auto_flush.is_some() == is_of_tree).then_some(trial.page_bytes());
        json!({
            "compression": trial.compression().to_string(),
            "page_bytes": size(false),
            "basket_bytes": size(true),
            "auto_flush": auto_flush,
            "unpacked_bytes": trial.unpacked_bytes(),
            "stored_bytes": trial.stored_bytes(),
            "write_cpu_seconds": trial.write_seconds(),
            "read_cpu_seconds": trial.read_seconds(),
        })
    };
    measured.trials().iter().map(one).collect()
}

fn to_json(candidate: &Candidate, entries: u64, goal: &Goal<'_>) -> Value {
    let money = goal.args.pricing.money(goal.price, &candidate.cost, goal.usage, goal.args.months);
    let [take_dollars, cpu_dollars, sum_dollars] = goal.dollars(candidate);
    let cost = &candidate.cost;
    let is_tree = cost.container == Container::Tree;
    let of = |is_of_tree: bool, value: fn(PageSettings) -> u64| {
        candidate.layout.filter(|_| is_of_tree == is_tree).map(value)
    };
    let [unpacked_entry_bytes, entry_bytes, entry_bytes_with_metadata] = entry_bytes(candidate, entries);
    json!({
        "container": Kind::of(cost.container).name(),
        "compression": candidate.layout.map(|layout| layout.compression.to_string()),
        "page_bytes": of(false, |layout| layout.page_bytes),
        "cluster_bytes": of(false, |layout| layout.cluster_bytes),
        "mapping": cost.container.mapping().map(|mapping| mapping.to_string()),
        "basket_bytes": of(true, |layout| layout.page_bytes),
        "auto_flush": of(true, |layout| layout.cluster_entries),
        "clusters": candidate.clusters,
        "cluster_memory_bytes": candidate.cluster_memory_bytes,
        "unpacked_entry_bytes": unpacked_entry_bytes,
        "entry_bytes": entry_bytes,
        "entry_bytes_with_metadata": entry_bytes_with_metadata,
        "objects": cost.objects,
        "bytes": cost.bytes,
        "write_requests": cost.write_requests,
        "read_requests": cost.read_requests,
        "read_bytes": cost.read_bytes,
        "write": phase(&candidate.write),
        "read": phase(&candidate.read),
        "take_requests": candidate.take.requests,
        "take_bytes": candidate.take.bytes,
        "take": candidate.take.phase.as_ref().map(phase),
        "sum_core_seconds": candidate.core_seconds(goal.usage),
        "sum_seconds": candidate.seconds(goal.usage),
        "write_dollars": money.write,
        "reads_dollars": money.reads,
        "month_dollars": money.month,
        "take_dollars": take_dollars,
        "cpu_dollars": cpu_dollars,
        "sum_dollars": sum_dollars,
    })
}
