//! Sixteen f32 lanes, independent of the registers that hold them.
//!
//! The lanes are the output channels of a layer; a sum over events never mixes lanes, so spikes and
//! predictions are bit-identical in all instruction sets.

/// Sixteen floats in one cache line; an unaligned row would need two loads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [f32; 16]);

impl Row {
    /// All zero.
    pub const ZERO: Row = Row([0.0; 16]);
}

impl std::ops::Deref for Row {
    type Target = [f32; 16];

    #[inline(always)]
    fn deref(&self) -> &[f32; 16] {
        &self.0
    }
}

impl std::ops::DerefMut for Row {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32; 16] {
        &mut self.0
    }
}

/// Sixteen f32 lanes and the few operations that the kernels need.
///
/// Implementations other than [`Portable`] may only be used if the CPU has their features. The `dispatch`
/// function, through which kernels are called, ensures this.
pub(crate) trait Vector: Copy {
    /// The lanes that one register holds.
    type Part: Part;
    /// All lanes zero.
    fn zero() -> Self;
    /// All lanes `x`.
    fn splat(x: f32) -> Self;
    /// Loads the lanes.
    fn load(source: &[f32; 16]) -> Self;
    /// Writes the lanes.
    fn store(self, target: &mut [f32; 16]);
    /// Lane-wise sum.
    fn add(self, other: Self) -> Self;
    /// Lane-wise difference.
    fn sub(self, other: Self) -> Self;
    /// Lane-wise product.
    fn mul(self, other: Self) -> Self;
    /// Lane-wise quotient.
    fn div(self, other: Self) -> Self;
    /// Lane-wise `self * a + b`; fused where the instruction set has it.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Adds `other` in the lanes of `mask`.
    fn add_where(self, mask: u16, other: Self) -> Self;
    /// Bit `i` set where lane `i` is greater than lane `i` of `other`.
    fn greater(self, other: Self) -> u16;
    /// Sets the lanes of `mask` to zero.
    fn clear(self, mask: u16) -> Self;
    /// Sum of the lanes, in a fixed order: first pairs (i, i+8), then (i, i+4), (i, i+2) and (i, i+1).
    fn sum(self) -> f32;
    /// Folds the lanes of each of four vectors to four lanes, in order. Lane `l` of the fold of `v` is
    /// `(v[l] + v[l + 8]) + (v[l + 4] + v[l + 12])`, the first half of [`Vector::sum`].
    fn fold(vectors: [Self; 4]) -> Self;
    /// The sums of sixteen vectors, in order, given four folds of four vectors each.
    fn finish(folds: [Self; 4]) -> Self;
    /// Writes the sixteen entries of `source`, each plus `offset`, to `target`.
    fn shift(source: &[u16; 16], offset: u16, target: &mut [u16; 16]);
    /// Writes the entries of `table` whose bit is set, in order, each times `2^SHIFT` plus `offset`, to the
    /// front of `target`. All of `target` may be overwritten. Returns the number of these entries.
    fn select<const SHIFT: u32>(table: &[u8; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize;
    /// Transposes a square of bits in place: bit `j` of word `i` becomes bit `i` of word `j`.
    #[inline(always)]
    fn transpose(square: &mut [u64; 64]) {
        transpose(square);
    }
}

/// As many lanes as one register holds, for kernels that would need too many registers with sixteen lanes.
pub(crate) trait Part: Copy {
    /// Number of lanes: 8 or 16.
    const LANES: usize;
    /// All lanes zero.
    fn zero() -> Self;
    /// Loads the lanes from `at` on, a multiple of [`Part::LANES`].
    fn load(source: &[f32; 16], at: usize) -> Self;
    /// Writes the lanes from `at` on.
    fn store(self, target: &mut [f32; 16], at: usize);
    /// Lane-wise sum.
    fn add(self, other: Self) -> Self;
    /// Lane-wise `self * a + b`; fused where the instruction set has it.
    fn mul_add(self, a: Self, b: Self) -> Self;
}

/// Implements [`Part`] for a vector that is one register.
macro_rules! whole_part {
    ($vector:ty $(, $constant:ident)?) => {
        impl$(<const $constant: bool>)? $crate::simd::Part for $vector {
            const LANES: usize = 16;
            #[inline(always)]
            fn zero() -> Self {
                Vector::zero()
            }
            #[inline(always)]
            fn load(source: &[f32; 16], _: usize) -> Self {
                Vector::load(source)
            }
            #[inline(always)]
            fn store(self, target: &mut [f32; 16], _: usize) {
                Vector::store(self, target);
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Vector::add(self, other)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Vector::mul_add(self, a, b)
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use whole_part;

/// The safe scalar reference implementation.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; 16]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for i in 0..16 {
            out[i] = f(self.0[i], other.0[i]);
        }
        Portable(out)
    }
}

whole_part!(Portable);

impl Vector for Portable {
    type Part = Self;
    #[inline(always)]
    fn zero() -> Self {
        Portable([0.0; 16])
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Portable([x; 16])
    }
    #[inline(always)]
    fn load(source: &[f32; 16]) -> Self {
        Portable(*source)
    }
    #[inline(always)]
    fn store(self, target: &mut [f32; 16]) {
        *target = self.0;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Vector::add(Vector::mul(self, a), b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn add_where(self, mask: u16, other: Self) -> Self {
        let mut out = self.0;
        for i in 0..16 {
            out[i] = if mask >> i & 1 == 1 { out[i] + other.0[i] } else { out[i] };
        }
        Portable(out)
    }
    #[inline(always)]
    fn greater(self, other: Self) -> u16 {
        (0..16).fold(0, |mask, i| mask | u16::from(self.0[i] > other.0[i]) << i)
    }
    #[inline(always)]
    fn clear(self, mask: u16) -> Self {
        let mut out = self.0;
        for i in 0..16 {
            out[i] = if mask >> i & 1 == 1 { 0.0 } else { out[i] };
        }
        Portable(out)
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = self.0;
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }
    #[inline(always)]
    fn fold(vectors: [Self; 4]) -> Self {
        let mut out = [0.0; 16];
        for (i, Portable(v)) in vectors.iter().enumerate() {
            for l in 0..4 {
                out[4 * i + l] = (v[l] + v[l + 8]) + (v[l + 4] + v[l + 12]);
            }
        }
        Portable(out)
    }
    #[inline(always)]
    fn finish(folds: [Self; 4]) -> Self {
        let mut out = [0.0; 16];
        for (i, sum) in out.iter_mut().enumerate() {
            let v = &folds[i / 4].0[4 * (i % 4)..];
            *sum = (v[0] + v[2]) + (v[1] + v[3]);
        }
        Portable(out)
    }
    #[inline(always)]
    fn shift(source: &[u16; 16], offset: u16, target: &mut [u16; 16]) {
        *target = source.map(|entry| entry.wrapping_add(offset));
    }
    #[inline(always)]
    fn select<const SHIFT: u32>(table: &[u8; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize {
        let (mut rest, mut next) = (bits, 0);
        while rest != 0 {
            let entry = u16::from(table[rest.trailing_zeros() as usize]) << SHIFT;
            target[next & 63] = entry.wrapping_add(offset);
            next += 1;
            rest &= rest - 1;
        }
        next
    }
}

/// [`Vector::transpose`] for any instruction set.
#[inline(always)]
fn transpose(square: &mut [u64; 64]) {
    swap_far::<32>(square, 0x0000_0000_FFFF_FFFF);
    swap_far::<16>(square, 0x0000_FFFF_0000_FFFF);
    swap_far::<8>(square, 0x00FF_00FF_00FF_00FF);
    for eight in square.as_chunks_mut::<8>().0 {
        swap_near::<4>(eight, 0x0F0F_0F0F_0F0F_0F0F);
        swap_near::<2>(eight, 0x3333_3333_3333_3333);
        swap_near::<1>(eight, 0x5555_5555_5555_5555);
    }
}

/// Swaps the high bits (those not in `low`) of each word whose index does not contain the bit `HALF` with the
/// low bits of the word `HALF` places later.
#[inline(always)]
fn swap_far<const HALF: usize>(square: &mut [u64; 64], low: u64) {
    for pair in square.chunks_exact_mut(2 * HALF) {
        let (first, second) = pair.split_at_mut(HALF);
        for (a, b) in first.iter_mut().zip(second) {
            let swapped = (*a >> HALF ^ *b) & low;
            *a ^= swapped << HALF;
            *b ^= swapped;
        }
    }
}

/// The same within eight words, written so that it compiles to a few operations on all of them.
#[inline(always)]
fn swap_near<const HALF: usize>(eight: &mut [u64; 8], low: u64) {
    let other: [u64; 8] = std::array::from_fn(|k| eight[k ^ HALF]);
    for k in 0..8 {
        let (high, low) = if k & HALF == 0 {
            (other[k] << HALF & !low, eight[k] & low)
        } else {
            (eight[k] & !low, other[k] >> HALF & low)
        };
        eight[k] = high | low;
    }
}
