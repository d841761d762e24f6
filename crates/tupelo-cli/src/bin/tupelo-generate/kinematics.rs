//! Random numbers and relativistic decays.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};

/// The random number generator. Directions are drawn by rejection in a disc, without functions whose rounding depends
/// on the machine.
pub(super) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Flat in [0, 1).
    pub(super) fn flat(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.flat()
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.flat() < probability
    }

    /// +1 or −1.
    pub(super) fn sign(&mut self) -> i32 {
        if self.0.next_u64() >> 63 == 0 { 1 } else { -1 }
    }

    /// Normal, with mean 0 and width 1.
    pub(super) fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    /// Exponential, with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.0)
    }

    /// Poisson, for small means.
    pub(super) fn poisson(&mut self, mean: f64) -> usize {
        let (mut count, mut left) = (0, mean);
        loop {
            left -= self.exponential();
            if left < 0.0 {
                return count;
            }
            count += 1;
        }
    }

    /// A point in the unit disc, and its squared distance from the middle (never 0).
    fn disc(&mut self) -> (f64, f64, f64) {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let s = x * x + y * y;
            if s < 1.0 && s > 0.0 {
                return (x, y, s);
            }
        }
    }

    /// Cosine and sine of a flat angle.
    pub(super) fn circle(&mut self) -> (f64, f64) {
        let (x, y, s) = self.disc();
        ((x * x - y * y) / s, 2.0 * x * y / s)
    }

    /// A direction flat on the sphere.
    fn direction(&mut self) -> [f64; 3] {
        let (x, y, s) = self.disc();
        let root = 2.0 * (1.0 - s).sqrt();
        [x * root, y * root, 1.0 - 2.0 * s]
    }

    /// The mass of a resonance (Breit and Wigner), at most `reach` away from its pole.
    pub(super) fn resonance(&mut self, pole: f64, width: f64, reach: f64) -> f64 {
        loop {
            let (x, y, _) = self.disc();
            let away = 0.5 * width * x / y;
            if away.abs() < reach {
                return pole + away;
            }
        }
    }
}

/// An energy and a momentum, in one unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FourVector {
    pub(super) e: f64,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) z: f64,
}

impl FourVector {
    /// A particle of this mass and momentum.
    pub(super) fn of_mass(mass: f64, [x, y, z]: [f64; 3]) -> Self {
        Self { e: (mass * mass + x * x + y * y + z * z).sqrt(), x, y, z }
    }

    pub(super) fn momentum(&self) -> f64 {
        (self.x * self.x + self.y * self.y + self.z * self.z).sqrt()
    }

    /// The transverse momentum.
    pub(super) fn pt(&self) -> f64 {
        (self.x * self.x + self.y * self.y).sqrt()
    }

    #[cfg(test)]
    pub(super) fn mass(&self) -> f64 {
        let momentum = self.momentum();
        ((self.e - momentum) * (self.e + momentum)).max(0.0).sqrt()
    }

    /// The same particle with its momentum scaled.
    pub(super) fn scaled(&self, factor: f64, mass: f64) -> Self {
        Self::of_mass(mass, [self.x * factor, self.y * factor, self.z * factor])
    }

    /// Boosts from the rest frame of `frame` to the laboratory.
    fn boosted(&self, frame: &Self, frame_mass: f64) -> Self {
        let e = (self.e * frame.e + self.x * frame.x + self.y * frame.y + self.z * frame.z) / frame_mass;
        let along = (self.e + e) / (frame.e + frame_mass);
        Self { e, x: self.x + frame.x * along, y: self.y + frame.y * along, z: self.z + frame.z * along }
    }
}

impl std::ops::Add for FourVector {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { e: self.e + other.e, x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

/// The momentum of both daughters in the rest frame of a decay; 0 if the masses forbid the decay.
fn break_up(mass: f64, first: f64, second: f64) -> f64 {
    let (sum, difference) = (first + second, first - second);
    let square = (mass - sum) * (mass + sum) * (mass - difference) * (mass + difference);
    square.max(0.0).sqrt() / (2.0 * mass)
}

/// A decay to two particles, flat in direction.
pub(super) fn two_body(draws: &mut Draws, parent: &FourVector, mass: f64, daughters: [f64; 2]) -> [FourVector; 2] {
    let [first, second] = daughters;
    let momentum = break_up(mass, first, second);
    let [x, y, z] = draws.direction().map(|direction| direction * momentum);
    let there = FourVector { e: (first * first + momentum * momentum).sqrt(), x, y, z };
    let back = FourVector { e: (second * second + momentum * momentum).sqrt(), x: -x, y: -y, z: -z };
    [there.boosted(parent, mass), back.boosted(parent, mass)]
}

/// A decay to three particles, flat in the Dalitz plane: two decays to two, with the mass in between drawn by the
/// product of their break-up momenta.
pub(super) fn three_body(draws: &mut Draws, parent: &FourVector, mass: f64, daughters: [f64; 3]) -> [FourVector; 3] {
    let [first, second, third] = daughters;
    let (low, high) = (first + second, mass - third);
    let highest = break_up(mass, low, third) * break_up(high, first, second);
    let pair_mass = loop {
        let pair_mass = draws.between(low, high);
        if draws.flat() * highest < break_up(mass, pair_mass, third) * break_up(pair_mass, first, second) {
            break pair_mass;
        }
    };
    let [pair, c] = two_body(draws, parent, mass, [pair_mass, third]);
    let [a, b] = two_body(draws, &pair, pair_mass, [first, second]);
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decays_keep_masses_and_momentum() {
        let mut draws = Draws::new(1);
        for _ in 0..1000 {
            let parent = FourVector::of_mass(5279.3, [1000.0, -2000.0, 90_000.0]);
            let daughters = three_body(&mut draws, &parent, 5279.3, [493.677, 139.57, 139.57]);
            let [a, b, c] = daughters;
            assert!(((a + b + c).mass() - 5279.3).abs() < 1e-3);
            assert!((a.x + b.x + c.x - 1000.0).abs() < 1e-6 && (a.z + b.z + c.z - 90_000.0).abs() < 1e-6);
            for (daughter, mass) in daughters.iter().zip([493.677, 139.57, 139.57]) {
                assert!((daughter.mass() - mass).abs() < 0.1, "{}", daughter.mass());
            }
        }
    }

    #[test]
    fn three_bodies_are_flat_in_the_dalitz_plane() {
        // With massless daughters the plane is the triangle s12 + s13 + s23 = M², and each side's mean is M²/3.
        let mut draws = Draws::new(2);
        let parent = FourVector::of_mass(1.0, [0.0; 3]);
        let (mut sides, mut inner) = ([0.0; 3], 0);
        let n = 40_000;
        for _ in 0..n {
            let [a, b, c] = three_body(&mut draws, &parent, 1.0, [0.0; 3]);
            let s = [a + b, b + c, c + a].map(|pair| pair.mass() * pair.mass());
            sides.iter_mut().zip(s).for_each(|(sum, s)| *sum += s);
            // The triangle between the middles of the sides is a quarter of the plane.
            inner += i32::from(s.iter().all(|&s| s < 0.5));
        }
        for side in sides {
            assert!((side / f64::from(n) - 1.0 / 3.0).abs() < 0.005);
        }
        assert!((f64::from(inner) / f64::from(n) - 0.25).abs() < 0.01);
    }

    #[test]
    fn the_stream_of_random_numbers_never_changes() {
        let mut draws = Draws::new(42);
        assert_eq!(
            [draws.flat(), draws.normal(), draws.exponential()],
            [0.8143051451229099, -0.514962928147295, 1.4997507741445462]
        );
    }
}
