//! Charged B mesons that decay to three hadrons, as in LHCb's open data: the 26 columns of its ntuples.
//!
//! The signal B± → K± K± K∓ has a background of unrelated tracks. The cuts of the LHCb exercise (no muon,
//! `ProbK` > 0.5 and `ProbPi` < 0.5 for all three) select it. Momenta are in MeV, lengths in mm.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Float64Array, Int32Array, RecordBatch};
use arrow_schema::SchemaRef;

use crate::kinematics::{Draws, FourVector, three_body, two_body};
use crate::{Columns, in_batches, record_batch};

/// Masses in MeV, rounded from the Particle Data Group.
const B_MASS: f64 = 5279.3;
const JPSI_MASS: f64 = 3096.9;
const KAON_MASS: f64 = 493.677;
const PION_MASS: f64 = 139.570;
const MUON_MASS: f64 = 105.658;

/// Relative width of a measured momentum; it gives the peak a width of some 17 MeV.
const MOMENTUM_RESOLUTION: f64 = 0.005;
/// The lifetime of a B± times the speed of light, in mm.
const B_DECAY_LENGTH: f64 = 0.491;

/// The columns of one hadron, in order, each after the prefix `H1_`, `H2_` or `H3_`.
const TRACK_COLUMNS: [&str; 8] = ["PX", "PY", "PZ", "ProbK", "ProbPi", "Charge", "IPChi2", "isMuon"];

/// The kinds of events with their fractions.
const KINDS: [(f64, Kind); 7] = [
    (0.05, Kind::Signal),
    (0.07, Kind::KaonPionPion),
    (0.03, Kind::JpsiKaon),
    (0.05, Kind::PartlyReconstructed),
    (0.35, Kind::Combinatorial { kaons: 0.5, muons: 0.02 }),
    (0.40, Kind::Combinatorial { kaons: 0.1, muons: 0.02 }),
    (0.05, Kind::Combinatorial { kaons: 0.3, muons: 0.5 }),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// B± → K± K± K∓.
    Signal,
    /// B± → K± π± π∓: too heavy when the pions are taken for kaons.
    KaonPionPion,
    /// B± → J/ψ K±, J/ψ → μ+ μ−: near the peak, were it not for the muons.
    JpsiKaon,
    /// B → K K K and a pion that is not detected: a shelf below the peak.
    PartlyReconstructed,
    /// Three unrelated tracks, with these fractions of kaons and muons.
    Combinatorial { kaons: f64, muons: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Species {
    Kaon,
    Pion,
    Muon,
}

impl Species {
    fn mass(self) -> f64 {
        match self {
            Self::Kaon => KAON_MASS,
            Self::Pion => PION_MASS,
            Self::Muon => MUON_MASS,
        }
    }
}

/// The true particles of an event.
struct Decay {
    parent: FourVector,
    /// The odd charge comes last.
    tracks: [(FourVector, Species); 3],
    from_b: bool,
}

/// The schema of the batches: 26 columns.
pub(crate) fn schema() -> SchemaRef {
    record_batch(Table::default().into_columns()).schema()
}

/// `events` entries, always the same ones for a seed.
pub(crate) fn batches(events: u64, seed: u64, batch_entries: usize) -> impl Iterator<Item = RecordBatch> {
    let mut draws = Draws::new(seed);
    in_batches(events, batch_entries, move |range: Range<u64>| {
        let mut table = Table::with_capacity((range.end - range.start) as usize);
        range.for_each(|_| event(&mut draws, &mut table));
        table.into_columns()
    })
}

fn event(draws: &mut Draws, table: &mut Table) {
    let decay = decay(draws);
    let flight = if decay.from_b {
        // Requires a minimum decay distance, as selections of B mesons do.
        2.0 + draws.exponential() * B_DECAY_LENGTH * decay.parent.momentum() / B_MASS
    } else {
        2.0 + 3.0 * draws.exponential()
    };
    let spread = if decay.from_b { 1.0 } else { 1.8 };
    let chi2: f64 = (0..3).map(|_| draws.normal() * spread).map(|pull| pull * pull).sum();
    table.flight_distance.push(flight);
    table.vertex_chi2.push(chi2);

    let charge = draws.sign();
    let mut order = [(0, charge), (1, charge), (2, -charge)];
    order.swap(0, (draws.flat() * 3.0) as usize);
    order.swap(1, 1 + (draws.flat() * 2.0) as usize);
    for (column, (track, charge)) in table.tracks.iter_mut().zip(order) {
        let (truth, species) = decay.tracks[track];
        let measured = truth.scaled(1.0 + MOMENTUM_RESOLUTION * draws.normal(), species.mass());
        let (prob_k, prob_pi, is_muon) = identify(draws, species);
        let displacement = if decay.from_b { 4.0 + 6.0 * draws.exponential() } else { 3.0 + 3.0 * draws.exponential() };
        let pull = displacement + draws.normal();
        let doubles = [measured.x, measured.y, measured.z, prob_k, prob_pi, pull * pull];
        column.doubles.iter_mut().zip(doubles).for_each(|(values, value)| values.push(value));
        column.charge.push(charge);
        column.is_muon.push(i32::from(is_muon));
    }
}

fn decay(draws: &mut Draws) -> Decay {
    let mut left = draws.flat();
    let kind = KINDS.iter().find(|(share, _)| {
        left -= share;
        left < 0.0
    });
    match kind.map_or(Kind::Signal, |(_, kind)| *kind) {
        Kind::Signal => b_decay(draws, B_MASS, [Species::Kaon; 3]),
        Kind::KaonPionPion => b_decay(draws, B_MASS, [Species::Kaon, Species::Pion, Species::Pion]),
        Kind::PartlyReconstructed => {
            let visible = B_MASS - PION_MASS - 80.0 * draws.exponential() % 500.0;
            b_decay(draws, visible, [Species::Kaon; 3])
        }
        Kind::JpsiKaon => {
            let parent = flying(draws, B_MASS, 1.0);
            let [jpsi, kaon] = two_body(draws, &parent, B_MASS, [JPSI_MASS, KAON_MASS]);
            let [up, down] = two_body(draws, &jpsi, JPSI_MASS, [MUON_MASS; 2]);
            let tracks = [(kaon, Species::Kaon), (up, Species::Muon), (down, Species::Muon)];
            Decay { parent, tracks, from_b: true }
        }
        Kind::Combinatorial { kaons, muons } => {
            // The mass that three kaons of these momenta would have: an exponential, cut off where a selection does.
            let mass = 5000.0 + 700.0 * draws.exponential() % 1400.0;
            let parent = flying(draws, mass, 0.6);
            let tracks = three_body(draws, &parent, mass, [KAON_MASS; 3]);
            let tracks = tracks.map(|track| (track, species(draws, kaons, muons)));
            Decay { parent, tracks, from_b: false }
        }
    }
}

/// A B meson of this (visible) mass in flight decays to three particles.
fn b_decay(draws: &mut Draws, mass: f64, species: [Species; 3]) -> Decay {
    let parent = flying(draws, mass, 1.0);
    let [a, b, c] = three_body(draws, &parent, mass, species.map(Species::mass));
    Decay { parent, tracks: [(a, species[0]), (b, species[1]), (c, species[2])], from_b: true }
}

/// A particle on its way into LHCb: some GeV across the beam and some 50 to 150 GeV along it, times `hardness`.
fn flying(draws: &mut Draws, mass: f64, hardness: f64) -> FourVector {
    let (cosine, sine) = draws.circle();
    let pt = hardness * (1500.0 + 2000.0 * (draws.exponential() + draws.exponential()));
    let pz = hardness * (40_000.0 + 35_000.0 * (draws.exponential() + draws.exponential()));
    FourVector::of_mass(mass, [pt * cosine, pt * sine, pz])
}

fn species(draws: &mut Draws, kaons: f64, muons: f64) -> Species {
    match draws.flat() {
        at if at < kaons => Species::Kaon,
        at if at < kaons + muons => Species::Muon,
        _ => Species::Pion,
    }
}

/// Results of particle identification: `ProbK`, `ProbPi`, `isMuon`.
fn identify(draws: &mut Draws, species: Species) -> (f64, f64, bool) {
    let (u, v, w) = (draws.flat(), draws.flat(), draws.flat());
    match species {
        Species::Kaon => (1.0 - power(u, 8), power(v, 12), w < 0.01),
        Species::Pion => (power(u, 10), 1.0 - power(v, 8), w < 0.015),
        Species::Muon => (power(u, 6), power(v, 2), w < 0.97),
    }
}

/// `x` to the `n`, by multiplication only.
fn power(x: f64, n: u32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

/// The columns of one hadron.
#[derive(Default)]
struct TrackTable {
    /// PX, PY, PZ, ProbK, ProbPi, IPChi2.
    doubles: [Vec<f64>; 6],
    charge: Vec<i32>,
    is_muon: Vec<i32>,
}

#[derive(Default)]
struct Table {
    flight_distance: Vec<f64>,
    vertex_chi2: Vec<f64>,
    tracks: [TrackTable; 3],
}

impl Table {
    fn with_capacity(entries: usize) -> Self {
        let track = || TrackTable {
            doubles: std::array::from_fn(|_| Vec::with_capacity(entries)),
            charge: Vec::with_capacity(entries),
            is_muon: Vec::with_capacity(entries),
        };
        Self {
            flight_distance: Vec::with_capacity(entries),
            vertex_chi2: Vec::with_capacity(entries),
            tracks: std::array::from_fn(|_| track()),
        }
    }

    fn into_columns(self) -> Columns {
        let mut columns: Columns = vec![
            ("B_FlightDistance".to_owned(), Arc::new(Float64Array::from(self.flight_distance))),
            ("B_VertexChi2".to_owned(), Arc::new(Float64Array::from(self.vertex_chi2))),
        ];
        for (track, number) in self.tracks.into_iter().zip(1..) {
            let [px, py, pz, prob_k, prob_pi, ip_chi2] = track.doubles.map(Float64Array::from).map(Arc::new);
            let charge = Arc::new(Int32Array::from(track.charge));
            let is_muon = Arc::new(Int32Array::from(track.is_muon));
            let names = TRACK_COLUMNS.map(|name| format!("H{number}_{name}"));
            let arrays: [arrow_array::ArrayRef; 8] = [px, py, pz, prob_k, prob_pi, charge, ip_chi2, is_muon];
            columns.extend(names.into_iter().zip(arrays));
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type};
    use arrow_schema::DataType;
    use arrow_select::concat::concat_batches;

    use super::*;

    fn doubles(batch: &RecordBatch, name: &str) -> Vec<f64> {
        batch[name].as_primitive::<Float64Type>().values().to_vec()
    }

    fn integers(batch: &RecordBatch, name: &str) -> Vec<i32> {
        batch[name].as_primitive::<Int32Type>().values().to_vec()
    }

    #[test]
    fn the_schema_is_that_of_the_open_data() {
        let schema = schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let expected = "B_FlightDistance B_VertexChi2 \
            H1_PX H1_PY H1_PZ H1_ProbK H1_ProbPi H1_Charge H1_IPChi2 H1_isMuon \
            H2_PX H2_PY H2_PZ H2_ProbK H2_ProbPi H2_Charge H2_IPChi2 H2_isMuon \
            H3_PX H3_PY H3_PZ H3_ProbK H3_ProbPi H3_Charge H3_IPChi2 H3_isMuon";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
        for field in schema.fields() {
            let integer = field.name().ends_with("Charge") || field.name().ends_with("isMuon");
            assert_eq!(*field.data_type(), if integer { DataType::Int32 } else { DataType::Float64 });
            assert!(!field.is_nullable());
        }
    }

    #[test]
    fn a_seed_gives_the_same_events_in_batches_of_any_size() {
        let whole: Vec<RecordBatch> = batches(1000, 7, 1000).collect();
        let parts: Vec<RecordBatch> = batches(1000, 7, 300).collect();
        assert_eq!(parts.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [300, 300, 300, 100]);
        assert_eq!(whole, [concat_batches(&schema(), &parts).unwrap()]);
        assert_ne!(whole, batches(1000, 8, 1000).collect::<Vec<_>>());
        assert_eq!(batches(0, 7, 10).count(), 0);
    }

    #[test]
    fn the_events_of_a_seed_never_change() {
        let batch = batches(1000, 42, 1000).next().unwrap();
        let last = |name| doubles(&batch, name)[999];
        assert_eq!(
            [last("B_FlightDistance"), last("H1_PX"), last("H3_ProbK")],
            [3.568998589712189, 121.31953936720697, 0.9720716744933331]
        );
    }

    #[test]
    fn shares_of_kinds_add_up() {
        assert!((KINDS.iter().map(|(share, _)| share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_true_mass_of_the_signal_is_that_of_the_b() {
        let mut draws = Draws::new(3);
        for _ in 0..1000 {
            let [a, b, c] = b_decay(&mut draws, B_MASS, [Species::Kaon; 3]).tracks.map(|(track, _)| track);
            assert!(((a + b + c).mass() - B_MASS).abs() < 1e-3);
        }
    }

    #[test]
    fn the_charges_of_an_event_add_up_to_one() {
        let batch = batches(10_000, 1, 10_000).next().unwrap();
        let [first, second, third] = [1, 2, 3].map(|n| integers(&batch, &format!("H{n}_Charge")));
        let mut odd = [0; 3];
        for event in first.into_iter().zip(second).zip(third).map(|((a, b), c)| [a, b, c]) {
            let sum: i32 = event.iter().sum();
            assert!(sum.abs() == 1 && event.iter().all(|charge| charge.abs() == 1));
            odd[event.iter().position(|&charge| charge == -sum).unwrap()] += 1;
        }
        assert!(odd.iter().all(|&n| n > 3000), "the odd one is anywhere: {odd:?}");
    }

    /// The mass of three kaons for each entry, and whether it passes the selection.
    fn masses(batch: &RecordBatch) -> Vec<(f64, bool)> {
        let column = |n, name| doubles(batch, &format!("H{n}_{name}"));
        let tracks = [1, 2, 3].map(|n| ["PX", "PY", "PZ", "ProbK", "ProbPi"].map(|name| column(n, name)));
        let muons = [1, 2, 3].map(|n| integers(batch, &format!("H{n}_isMuon")));
        let one = |i: usize| {
            let kaon = |t: &[Vec<f64>; 5]| FourVector::of_mass(KAON_MASS, [t[0][i], t[1][i], t[2][i]]);
            let sum = tracks.iter().map(kaon).fold(FourVector::default(), |sum, kaon| sum + kaon);
            let identified = tracks.iter().all(|t| t[3][i] > 0.5 && t[4][i] < 0.5);
            (sum.mass(), identified && muons.iter().all(|muon| muon[i] == 0))
        };
        (0..batch.num_rows()).map(one).collect()
    }

    #[test]
    fn the_selection_brings_out_the_peak() {
        let batch = batches(200_000, 1, 200_000).next().unwrap();
        let masses = masses(&batch);
        let count = |low: f64, high: f64, selected: bool| {
            masses.iter().filter(|(mass, passes)| (low..high).contains(mass) && (*passes || !selected)).count() as f64
        };
        // Per 100 MeV: the peak's window over the mean of the windows beside it.
        let ratio = |selected| {
            let beside = count(5380.0, 5480.0, selected) + count(5130.0, 5230.0, selected);
            count(5230.0, 5330.0, selected) / (beside / 2.0)
        };
        let (before, after) = (ratio(false), ratio(true));
        assert!(after > 5.0 && before < 2.5, "peak over background: {before} before the cuts, {after} after");

        let peak: Vec<f64> = masses.iter().filter(|m| m.1 && (m.0 - B_MASS).abs() < 60.0).map(|m| m.0).collect();
        let mean = peak.iter().sum::<f64>() / peak.len() as f64;
        let width = (peak.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / peak.len() as f64).sqrt();
        assert!((mean - B_MASS).abs() < 3.0 && (14.0..26.0).contains(&width), "mean {mean}, width {width}");
        let window = count(5050.0, 6300.0, false) / 200_000.0;
        assert!(window > 0.85, "most events lie in the window that is drawn: {window}");
    }
}
