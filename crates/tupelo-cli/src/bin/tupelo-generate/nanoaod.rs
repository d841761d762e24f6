//! Events in the style of CMS NanoAOD: numbers of the event, and muons, electrons, jets and taus as parallel lists.
//!
//! Dimuon masses show the Z and the J/ψ. Energies are in GeV, lengths in cm.

use std::f64::consts::PI;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Int32Array, LargeListArray, RecordBatch, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, SchemaRef};

use crate::kinematics::{Draws, FourVector, two_body};
use crate::{Columns, in_batches, record_batch};

/// Masses and widths in GeV, rounded from the Particle Data Group.
const Z_MASS: f64 = 91.188;
const Z_WIDTH: f64 = 2.495;
const W_MASS: f64 = 80.37;
const JPSI_MASS: f64 = 3.0969;
const MUON_MASS: f64 = 0.105_658;
const ELECTRON_MASS: f64 = 0.000_511;
const TAU_MASS: f64 = 1.7769;
/// Approximate visible mass of a tau decay.
const TAU_VISIBLE_MASS: f64 = 0.8;

/// Acceptance of the detector: maximum |η| and minimum pT.
const MAX_LEPTON_ETA: f64 = 2.4;
const MIN_MUON_PT: f64 = 3.0;
const MIN_ELECTRON_PT: f64 = 5.0;
const MIN_TAU_PT: f64 = 18.0;
const MIN_JET_PT: f64 = 15.0;
const MAX_JET_ETA: f64 = 4.7;
/// Relative widths of a measured pT.
const MUON_RESOLUTION: f64 = 0.012;
const ELECTRON_RESOLUTION: f64 = 0.02;
const TAU_RESOLUTION: f64 = 0.1;

/// Numbering of the entries.
const FIRST_RUN: u32 = 380_000;
const ENTRIES_PER_RUN: u64 = 100_000;
const ENTRIES_PER_LUMINOSITY_BLOCK: u64 = 200;

/// A lepton or a jet as it is measured.
struct Object {
    pt: f32,
    eta: f32,
    phi: f32,
    mass: f32,
    charge: i32,
    /// A tight identification for muons, a quality number for the others.
    quality: i32,
    /// Isolation for leptons, the b-tag for jets.
    score: f32,
    dxy: f32,
    dz: f32,
}

/// The lists of one kind of objects: where each entry's list ends, and all objects.
struct Jagged {
    offsets: Vec<i64>,
    objects: Vec<Object>,
}

impl Default for Jagged {
    fn default() -> Self {
        Self { offsets: vec![0], objects: Vec::new() }
    }
}

impl Jagged {
    /// Ends the list of an entry, sorted by descending pT.
    fn end_entry(&mut self) {
        let start = self.offsets.last().map_or(0, |&start| start as usize);
        self.objects[start..].sort_by(|a, b| b.pt.total_cmp(&a.pt));
        self.offsets.push(self.objects.len() as i64);
    }

    /// The objects of the last entry.
    fn last(&self) -> &[Object] {
        match self.offsets[..] {
            [.., start, end] => &self.objects[start as usize..end as usize],
            _ => &[],
        }
    }

    fn list(&self, values: ArrayRef) -> ArrayRef {
        let item = Arc::new(Field::new("item", values.data_type().clone(), false));
        let offsets = OffsetBuffer::new(self.offsets.clone().into());
        Arc::new(LargeListArray::new(item, offsets, values, None))
    }

    fn floats(&self, of: impl Fn(&Object) -> f32) -> ArrayRef {
        self.list(Arc::new(Float32Array::from_iter_values(self.objects.iter().map(of))))
    }

    fn integers(&self, of: impl Fn(&Object) -> i32) -> ArrayRef {
        self.list(Arc::new(Int32Array::from_iter_values(self.objects.iter().map(of))))
    }

    fn flags(&self, of: impl Fn(&Object) -> bool) -> ArrayRef {
        self.list(Arc::new(BooleanArray::from(self.objects.iter().map(of).collect::<Vec<bool>>())))
    }
}

#[derive(Default)]
struct Table {
    entries: Range<u64>,
    npvs: Vec<i32>,
    pv_z: Vec<f32>,
    rho: Vec<f32>,
    met: [Vec<f32>; 3],
    triggers: [Vec<bool>; 3],
    muons: Jagged,
    electrons: Jagged,
    jets: Jagged,
    taus: Jagged,
}

/// The schema of the batches: 42 columns.
pub(crate) fn schema() -> SchemaRef {
    record_batch(Table::default().into_columns()).schema()
}

/// `events` entries, always the same ones for a seed.
pub(crate) fn batches(events: u64, seed: u64, batch_entries: usize) -> impl Iterator<Item = RecordBatch> {
    let mut draws = Draws::new(seed);
    in_batches(events, batch_entries, move |entries: Range<u64>| {
        let mut table = Table { entries: entries.clone(), ..Table::default() };
        entries.for_each(|_| table.event(&mut draws));
        table.into_columns()
    })
}

impl Table {
    fn event(&mut self, draws: &mut Draws) {
        let npvs = (35.0 + 10.0 * draws.normal()).round().max(1.0);
        self.npvs.push(npvs as i32);
        self.pv_z.push((3.5 * draws.normal()) as f32);
        self.rho.push((0.6 * npvs + 2.0 * draws.normal()).max(0.0) as f32);

        let invisible = self.hard_process(draws);
        self.soft_leptons(draws);
        self.jets(draws);
        for list in [&mut self.muons, &mut self.electrons, &mut self.jets, &mut self.taus] {
            list.end_entry();
        }
        let muons = self.muons.last();
        let single = muons.iter().any(|muon| muon.pt > 24.0 && muon.quality == 1 && muon.score < 0.15);
        let double = muons.len() > 1 && muons[0].pt > 17.0 && muons[1].pt > 8.0;
        let electron = self.electrons.last().iter().any(|electron| electron.pt > 32.0 && electron.quality == 4);
        let fired = [single && draws.chance(0.92), double && draws.chance(0.95), electron && draws.chance(0.9)];
        self.triggers.iter_mut().zip(fired).for_each(|(column, fired)| column.push(fired));

        // Missing energy: neutrinos, and errors of the calorimeters.
        let (x, y) = (invisible.x + 12.0 * draws.normal(), invisible.y + 12.0 * draws.normal());
        let visible: f32 = self.jets.last().iter().map(|jet| jet.pt).sum();
        let sum = f64::from(visible) + 15.0 * npvs * draws.between(0.8, 1.2);
        let met = [(x * x + y * y).sqrt(), y.atan2(x), sum];
        self.met.iter_mut().zip(met).for_each(|(column, value)| column.push(value as f32));
    }

    /// The hard process; returns the momentum of the neutrinos.
    fn hard_process(&mut self, draws: &mut Draws) -> FourVector {
        let process = draws.flat();
        if process < 0.20 {
            let pair = z_decay(draws, MUON_MASS);
            self.muon_pair(draws, pair);
        } else if process < 0.30 {
            let pair = decay(draws, JPSI_MASS, 12.0, [MUON_MASS; 2]);
            self.muon_pair(draws, pair);
        } else if process < 0.42 {
            let charge = draws.sign();
            let [first, second] = z_decay(draws, ELECTRON_MASS);
            self.electron(draws, first, charge, true);
            self.electron(draws, second, -charge, true);
        } else if process < 0.48 {
            let charge = draws.sign();
            let mut invisible = FourVector::default();
            for (tau, charge) in z_decay(draws, TAU_MASS).into_iter().zip([charge, -charge]) {
                // The neutrino takes part of the momentum.
                let share = draws.between(0.1, 0.6);
                invisible = invisible + tau.scaled(share, 0.0);
                self.tau(draws, tau.scaled(1.0 - share, TAU_VISIBLE_MASS), charge, true);
            }
            return invisible;
        } else if process < 0.62 {
            let charge = draws.sign();
            let [muon, neutrino] = decay(draws, W_MASS, 12.0, [MUON_MASS, 0.0]);
            self.muon(draws, muon, charge, true);
            return neutrino;
        }
        FourVector::default()
    }

    fn muon_pair(&mut self, draws: &mut Draws, [first, second]: [FourVector; 2]) {
        let charge = draws.sign();
        self.muon(draws, first, charge, true);
        self.muon(draws, second, -charge, true);
    }

    /// Leptons from decays in jets, and jets that look like leptons.
    fn soft_leptons(&mut self, draws: &mut Draws) {
        for _ in 0..draws.poisson(0.25) {
            let (track, charge) = track(draws, MUON_MASS, MIN_MUON_PT, 5.0);
            self.muon(draws, track, charge, false);
        }
        for _ in 0..draws.poisson(0.2) {
            let (track, charge) = track(draws, ELECTRON_MASS, MIN_ELECTRON_PT, 6.0);
            self.electron(draws, track, charge, false);
        }
        for _ in 0..draws.poisson(0.15) {
            let (track, charge) = track(draws, TAU_VISIBLE_MASS, MIN_TAU_PT, 12.0);
            self.tau(draws, track, charge, false);
        }
    }

    fn jets(&mut self, draws: &mut Draws) {
        for _ in 0..draws.poisson(3.5) {
            // A steeply falling power of pT.
            let pt = MIN_JET_PT / draws.between(1e-6, 1.0).sqrt().sqrt();
            let eta = 2.0 * draws.normal();
            if eta.abs() > MAX_JET_ETA {
                continue;
            }
            let is_b = draws.chance(0.1);
            let u = draws.flat();
            let tag = if is_b { 1.0 - u * u * u } else { u * u * u * u };
            let mass = pt * (0.08 + 0.06 * draws.flat());
            let (cosine, sine) = draws.circle();
            self.jets.objects.push(Object {
                pt: pt as f32,
                eta: eta as f32,
                phi: sine.atan2(cosine) as f32,
                mass: mass as f32,
                charge: 0,
                quality: if draws.chance(0.97) { 6 } else { 2 },
                score: tag as f32,
                dxy: 0.0,
                dz: 0.0,
            });
        }
    }

    fn muon(&mut self, draws: &mut Draws, truth: FourVector, charge: i32, prompt: bool) {
        let quality = i32::from(draws.chance(if prompt { 0.96 } else { 0.35 }));
        let mut muon = measure(draws, truth, MUON_MASS, MUON_RESOLUTION, charge, prompt);
        muon.quality = quality;
        keep(&mut self.muons, muon, MIN_MUON_PT);
    }

    fn electron(&mut self, draws: &mut Draws, truth: FourVector, charge: i32, prompt: bool) {
        // The cut-based identification: 0 fails, 4 is tight.
        let quality = if prompt == draws.chance(0.85) { 4 } else { (draws.flat() * 4.0) as i32 };
        let mut electron = measure(draws, truth, ELECTRON_MASS, ELECTRON_RESOLUTION, charge, prompt);
        electron.quality = quality;
        keep(&mut self.electrons, electron, MIN_ELECTRON_PT);
    }

    fn tau(&mut self, draws: &mut Draws, truth: FourVector, charge: i32, prompt: bool) {
        let modes = [0, 1, 1, 10];
        let quality = modes[(draws.flat() * 4.0) as usize];
        let mass = if quality == 0 { 0.1396 } else { draws.between(0.4, 1.4) };
        let mut tau = measure(draws, truth, mass, TAU_RESOLUTION, charge, prompt);
        tau.quality = quality;
        keep(&mut self.taus, tau, MIN_TAU_PT);
    }

    fn into_columns(self) -> Columns {
        let entries = || self.entries.clone();
        let run = |entry| FIRST_RUN + (entry / ENTRIES_PER_RUN) as u32;
        let block = |entry| 1 + (entry % ENTRIES_PER_RUN / ENTRIES_PER_LUMINOSITY_BLOCK) as u32;
        let [met_pt, met_phi, met_sum] = self.met.map(float_column);
        let [iso_mu, double_mu, ele] = self.triggers.map(|values| Arc::new(BooleanArray::from(values)) as ArrayRef);
        let mut columns: Vec<(String, ArrayRef)> = Vec::with_capacity(42);
        let mut add = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array));
        add("run", Arc::new(UInt32Array::from_iter_values(entries().map(run))));
        add("luminosityBlock", Arc::new(UInt32Array::from_iter_values(entries().map(block))));
        add("event", Arc::new(UInt64Array::from_iter_values(entries().map(|entry| entry + 1))));
        add("PV_npvs", Arc::new(Int32Array::from(self.npvs)));
        add("PV_z", float_column(self.pv_z));
        add("Rho_fixedGridRhoFastjetAll", float_column(self.rho));
        add("MET_pt", met_pt);
        add("MET_phi", met_phi);
        add("MET_sumEt", met_sum);
        add("HLT_IsoMu24", iso_mu);
        add("HLT_Mu17_Mu8", double_mu);
        add("HLT_Ele32_WPTight_Gsf", ele);
        for (prefix, list) in
            [("Muon", &self.muons), ("Electron", &self.electrons), ("Jet", &self.jets), ("Tau", &self.taus)]
        {
            let mut add = |name: &str, array: ArrayRef| add(&format!("{prefix}_{name}"), array);
            add("pt", list.floats(|object| object.pt));
            add("eta", list.floats(|object| object.eta));
            add("phi", list.floats(|object| object.phi));
            add("mass", list.floats(|object| object.mass));
            match prefix {
                "Jet" => {
                    add("btagDeepFlavB", list.floats(|jet| jet.score));
                    add("jetId", list.integers(|jet| jet.quality));
                    continue;
                }
                "Muon" => add("tightId", list.flags(|muon| muon.quality == 1)),
                "Electron" => add("cutBased", list.integers(|electron| electron.quality)),
                _ => add("decayMode", list.integers(|tau| tau.quality)),
            }
            add("charge", list.integers(|lepton| lepton.charge));
            if prefix != "Tau" {
                add("pfRelIso03_all", list.floats(|lepton| lepton.score));
                add("dxy", list.floats(|lepton| lepton.dxy));
            }
            if prefix != "Electron" {
                add("dz", list.floats(|lepton| lepton.dz));
            }
        }
        columns
    }
}

fn float_column(values: Vec<f32>) -> ArrayRef {
    Arc::new(Float32Array::from(values))
}

/// A resonance somewhere in the detector decays.
fn decay(draws: &mut Draws, mass: f64, mean_pt: f64, daughters: [f64; 2]) -> [FourVector; 2] {
    let (cosine, sine) = draws.circle();
    let pt = mean_pt * 0.5 * (draws.exponential() + draws.exponential());
    let pz = (mass * mass + pt * pt).sqrt() * draws.between(-2.2, 2.2).sinh();
    let parent = FourVector::of_mass(mass, [pt * cosine, pt * sine, pz]);
    two_body(draws, &parent, mass, daughters)
}

/// A Z decays to a lepton and its antiparticle.
fn z_decay(draws: &mut Draws, lepton_mass: f64) -> [FourVector; 2] {
    let mass = draws.resonance(Z_MASS, Z_WIDTH, 40.0);
    decay(draws, mass, 14.0, [lepton_mass; 2])
}

/// A charged particle somewhere in the detector, its pT exponential above the least one.
fn track(draws: &mut Draws, mass: f64, min_pt: f64, mean_excess: f64) -> (FourVector, i32) {
    let (cosine, sine) = draws.circle();
    let pt = min_pt + mean_excess * draws.exponential();
    let pz = pt * draws.between(-MAX_LEPTON_ETA, MAX_LEPTON_ETA).sinh();
    (FourVector::of_mass(mass, [pt * cosine, pt * sine, pz]), draws.sign())
}

/// The measurement of a particle; prompt ones are isolated and come from the vertex.
fn measure(draws: &mut Draws, truth: FourVector, mass: f64, width: f64, charge: i32, prompt: bool) -> Object {
    let pt = truth.pt() * (1.0 + width * draws.normal());
    let (isolation, distance) = if prompt { (0.04, 0.002) } else { (0.6, 0.02) };
    Object {
        pt: pt as f32,
        eta: (truth.z / truth.pt()).asinh() as f32,
        phi: truth.y.atan2(truth.x).clamp(-PI, PI) as f32,
        mass: mass as f32,
        charge,
        quality: 0,
        score: (isolation * draws.exponential()) as f32,
        dxy: (distance * draws.normal()) as f32,
        dz: (2.0 * distance * draws.normal()) as f32,
    }
}

/// Keeps the objects within the acceptance.
fn keep(list: &mut Jagged, object: Object, min_pt: f64) {
    if f64::from(object.pt) > min_pt && f64::from(object.eta.abs()) < MAX_LEPTON_ETA {
        list.objects.push(object);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Int32Type};
    use arrow_schema::DataType;
    use arrow_select::concat::concat_batches;

    use super::*;

    #[test]
    fn the_schema_has_parallel_lists() {
        let schema = schema();
        assert_eq!(schema.fields().len(), 42);
        let list = |item| DataType::LargeList(Arc::new(Field::new("item", item, false)));
        for (name, expected) in [
            ("run", DataType::UInt32),
            ("event", DataType::UInt64),
            ("PV_npvs", DataType::Int32),
            ("HLT_IsoMu24", DataType::Boolean),
            ("MET_pt", DataType::Float32),
            ("Muon_pt", list(DataType::Float32)),
            ("Muon_charge", list(DataType::Int32)),
            ("Muon_tightId", list(DataType::Boolean)),
            ("Jet_btagDeepFlavB", list(DataType::Float32)),
            ("Tau_decayMode", list(DataType::Int32)),
        ] {
            let field = schema.field_with_name(name).unwrap();
            assert_eq!((field.data_type(), field.is_nullable()), (&expected, false), "{name}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_events_in_batches_of_any_size() {
        let whole: Vec<RecordBatch> = batches(1000, 7, 1000).collect();
        let parts: Vec<RecordBatch> = batches(1000, 7, 300).collect();
        assert_eq!(whole, [concat_batches(&schema(), &parts).unwrap()]);
        assert_ne!(whole, batches(1000, 8, 1000).collect::<Vec<_>>());
    }

    fn lists<'a>(batch: &'a RecordBatch, name: &str) -> (&'a [i64], &'a [f32]) {
        let list = batch[name].as_list::<i64>();
        (list.value_offsets(), list.values().as_primitive::<Float32Type>().values())
    }

    #[test]
    fn lists_of_one_kind_are_parallel_ordered_and_within_the_detector() {
        let batch = batches(20_000, 2, 20_000).next().unwrap();
        for (prefix, min_pt) in [("Muon", 3.0), ("Electron", 5.0), ("Jet", 15.0), ("Tau", 18.0)] {
            let (offsets, pt) = lists(&batch, &format!("{prefix}_pt"));
            let (other, phi) = lists(&batch, &format!("{prefix}_phi"));
            assert_eq!(offsets, other);
            assert!(pt.len() > 3000, "{prefix}: {}", pt.len());
            assert!(pt.iter().all(|&pt| pt.is_finite() && pt >= min_pt));
            assert!(phi.iter().all(|phi| phi.abs() <= std::f32::consts::PI));
            for entry in offsets.windows(2) {
                assert!(pt[entry[0] as usize..entry[1] as usize].is_sorted_by(|a, b| a >= b));
            }
        }
        let lengths: Vec<i64> = lists(&batch, "Muon_pt").0.windows(2).map(|entry| entry[1] - entry[0]).collect();
        assert!((0..4).all(|length| lengths.contains(&length)), "empty and long lists alike");
    }

    #[test]
    fn dimuons_show_the_z_and_the_jpsi() {
        let batch = batches(50_000, 1, 50_000).next().unwrap();
        let (offsets, pt) = lists(&batch, "Muon_pt");
        let [eta, phi, mass] = ["eta", "phi", "mass"].map(|name| lists(&batch, &format!("Muon_{name}")).1);
        let charge = batch["Muon_charge"].as_list::<i64>().values().as_primitive::<Int32Type>().values();
        let muon = |i: usize| {
            let (pt, phi) = (f64::from(pt[i]), f64::from(phi[i]));
            let momentum = [pt * phi.cos(), pt * phi.sin(), pt * f64::from(eta[i]).sinh()];
            FourVector::of_mass(f64::from(mass[i]), momentum)
        };
        let pairs =
            offsets.windows(2).map(|entry| entry[0] as usize).zip(offsets.windows(2)).filter_map(|(i, entry)| {
                let opposite = entry[1] - entry[0] == 2 && charge[i] != charge[i + 1];
                opposite.then(|| (muon(i) + muon(i + 1)).mass())
            });
        let masses: Vec<f64> = pairs.collect();
        let count = |low: f64, high: f64| masses.iter().filter(|mass| (low..high).contains(mass)).count() as f64;
        assert!(count(86.0, 96.0) > 10.0 * (count(70.0, 75.0) + count(107.0, 112.0)), "Z");
        assert!(count(2.9, 3.3) > 20.0 * (count(2.4, 2.6) + count(3.6, 3.8)).max(1.0), "J/psi");
        assert!(count(86.0, 96.0) > 2000.0 && count(2.9, 3.3) > 200.0);
    }
}
