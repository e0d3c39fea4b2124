//! Vectors for AVX-512 and AVX2.

use super::vector::whole_part;
use super::{Part, Vector, Work};
use std::arch::x86_64::*;

/// Whether the CPU has the features that `Avx512<false>` uses.
pub(super) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Whether the CPU has the features that `Avx512<true>` uses.
pub(super) fn has_avx512_vbmi2() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512vbmi2")
}

/// Whether the CPU has the features that [`Avx2`] uses.
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run_avx512_vbmi2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Sixteen lanes in one register. `VBMI2` states whether the CPU has AVX-512 VBMI2, whose compression of
/// bytes [`Vector::select`] uses.
#[derive(Clone, Copy)]
pub(crate) struct Avx512<const VBMI2: bool>(__m512);

whole_part!(Avx512<VBMI2>, VBMI2);

// SAFETY (every block of this impl): a value of `Avx512` is only created in code that runs under `run_avx512`
// (`run_avx512_vbmi2` if `VBMI2`) or another function with the same features, and loads and stores go through
// references to sixteen floats.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<const VBMI2: bool> Vector for Avx512<VBMI2> {
    type Part = Self;
    #[inline(always)]
    fn zero() -> Self {
        Avx512(unsafe { _mm512_setzero_ps() })
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Avx512(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn load(source: &[f32; 16]) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(source.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, target: &mut [f32; 16]) {
        unsafe { _mm512_storeu_ps(target.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_div_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn add_where(self, mask: u16, other: Self) -> Self {
        Avx512(unsafe { _mm512_mask_add_ps(self.0, mask, self.0, other.0) })
    }
    #[inline(always)]
    fn greater(self, other: Self) -> u16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn clear(self, mask: u16) -> Self {
        Avx512(unsafe { _mm512_maskz_mov_ps(!mask, self.0) })
    }
    #[inline(always)]
    fn fold(v: [Self; 4]) -> Self {
        unsafe {
            let [a, b, c, d] = v.map(|v| v.0);
            // Quarters 2 and 3 of two vectors are added to quarters 0 and 1,
            // so that eight lanes of each remain.
            let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
            let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xEE>(c, d));
            let (even, odd) = (_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xDD>(ab, cd));
            Avx512(_mm512_add_ps(even, odd))
        }
    }
    #[inline(always)]
    fn finish(f: [Self; 4]) -> Self {
        unsafe {
            let [p, q, r, s] = f.map(|f| f.0);
            let pq = _mm512_add_ps(_mm512_unpacklo_ps(p, q), _mm512_unpackhi_ps(p, q));
            let rs = _mm512_add_ps(_mm512_unpacklo_ps(r, s), _mm512_unpackhi_ps(r, s));
            let sums = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(pq, rs), _mm512_shuffle_ps::<0xEE>(pq, rs));
            // Quarter `j`, lane `i` holds the sum of vector `j` of fold `i`.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            Avx512(_mm512_permutexvar_ps(order, sums))
        }
    }
    #[inline(always)]
    fn shift(source: &[u16; 16], offset: u16, target: &mut [u16; 16]) {
        Avx2::shift(source, offset, target);
    }
    #[inline(always)]
    fn select<const SHIFT: u32>(table: &[u8; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize {
        if !VBMI2 {
            return super::Portable::select::<SHIFT>(table, bits, offset, target);
        }
        unsafe {
            let (shift, offset) = (_mm_cvtsi32_si128(SHIFT as i32), _mm512_set1_epi16(offset as i16));
            let chosen = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(table.as_ptr().cast()));
            let wide = |half| _mm512_add_epi16(_mm512_sll_epi16(_mm512_cvtepu8_epi16(half), shift), offset);
            let count = bits.count_ones() as usize;
            _mm512_storeu_si512(target.as_mut_ptr().cast(), wide(_mm512_castsi512_si256(chosen)));
            if count > 32 {
                let high = wide(_mm512_extracti64x4_epi64::<1>(chosen));
                _mm512_storeu_si512(target.as_mut_ptr().add(32).cast(), high);
            }
            count
        }
    }
    #[inline(always)]
    fn transpose(square: &mut [u64; 64]) {
        /// Swaps the high bits of `a` with the low bits (those in `low`) of `b`.
        #[inline(always)]
        unsafe fn swap<const SHIFT: u32>(v: &mut [__m512i; 8], a: usize, b: usize, low: i64) {
            unsafe {
                let difference = _mm512_xor_si512(_mm512_srli_epi64::<SHIFT>(v[a]), v[b]);
                let difference = _mm512_and_si512(difference, _mm512_set1_epi64(low));
                v[a] = _mm512_xor_si512(v[a], _mm512_slli_epi64::<SHIFT>(difference));
                v[b] = _mm512_xor_si512(v[b], difference);
            }
        }
        unsafe {
            let mut v: [__m512i; 8] =
                std::array::from_fn(|i| _mm512_loadu_si512(square.as_ptr().add(8 * i).cast()));
            for a in 0..4 {
                swap::<32>(&mut v, a, a + 4, 0x0000_0000_FFFF_FFFF);
            }
            for a in [0, 1, 4, 5] {
                swap::<16>(&mut v, a, a + 2, 0x0000_FFFF_0000_FFFF);
            }
            for a in [0, 2, 4, 6] {
                swap::<8>(&mut v, a, a + 1, 0x00FF_00FF_00FF_00FF);
            }
            // Within eight words, each word takes half of its bits from its
            // partner, rotated by `places` bits.
            let half = |places: i64, low: i64| {
                let lanes: [i64; 8] = std::array::from_fn(|k| k as i64 & places);
                let rotation = lanes.map(|high| if high == 0 { places } else { 64 - places });
                let taken = lanes.map(|high| if high == 0 { !low } else { low });
                let partner: [i64; 8] = std::array::from_fn(|k| k as i64 ^ places);
                [partner, rotation, taken].map(|lanes| _mm512_loadu_si512(lanes.as_ptr().cast()))
            };
            let halves = [
                half(4, 0x0F0F_0F0F_0F0F_0F0F),
                half(2, 0x3333_3333_3333_3333),
                half(1, 0x5555_5555_5555_5555),
            ];
            for (i, v) in v.iter_mut().enumerate() {
                for [partner, rotation, taken] in halves {
                    let other = _mm512_rolv_epi64(_mm512_permutexvar_epi64(partner, *v), rotation);
                    // taken ? other : v
                    *v = _mm512_ternarylogic_epi64::<0xCA>(taken, other, *v);
                }
                _mm512_storeu_si512(square.as_mut_ptr().add(8 * i).cast(), *v);
            }
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let (low, high) = (_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            Avx2::sum_eight(_mm256_add_ps(low, high))
        }
    }
}

/// Sixteen lanes in two registers.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256, __m256);

impl Avx2 {
    /// The last three steps of [`Vector::sum`].
    #[inline(always)]
    #[allow(clippy::undocumented_unsafe_blocks)] // as for the impl below
    fn sum_eight(lanes: __m256) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    /// Folds two vectors to four lanes each, as [`Vector::fold`] does.
    #[inline(always)]
    #[allow(clippy::undocumented_unsafe_blocks)] // as for the impl below
    fn halves(a: Self, b: Self) -> __m256 {
        unsafe {
            let (a, b) = (_mm256_add_ps(a.0, a.1), _mm256_add_ps(b.0, b.1));
            let (low, high) = (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            _mm256_add_ps(low, high)
        }
    }

    /// Adds the four lanes `(x0 x1 x2 x3)` of each of four vectors in pairs: `x0 + x2`, `x1 + x3`.
    #[inline(always)]
    #[allow(clippy::undocumented_unsafe_blocks)] // as for the impl below
    fn pairs(a: Self) -> __m256 {
        unsafe {
            let (low, high) = (_mm256_shuffle_ps::<0x44>(a.0, a.1), _mm256_shuffle_ps::<0xEE>(a.0, a.1));
            _mm256_add_ps(low, high)
        }
    }

    /// The sums of eight vectors, given two folds, as [`Vector::finish`] computes them.
    #[inline(always)]
    #[allow(clippy::undocumented_unsafe_blocks)] // as for the impl below
    fn quarters(a: Self, b: Self) -> __m256 {
        unsafe {
            let (a, b) = (Self::pairs(a), Self::pairs(b));
            let (even, odd) = (_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b));
            // The low half now contains vectors 0, 2, 4 and 6, and the high half vectors 1, 3, 5 and 7.
            let sums = _mm256_add_ps(even, odd);
            _mm256_permutevar8x32_ps(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
        }
    }
}

/// Sets all bits of lane `i` if bit `i` of `mask` is set.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks)] // as for the impl below
fn lane_mask(mask: u16) -> __m256 {
    unsafe {
        let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let spread = _mm256_and_si256(_mm256_set1_epi32(i32::from(mask)), bit);
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(spread, bit))
    }
}

// SAFETY (every block of this impl): as for `Avx512`, with `run_avx2`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Avx2 {
    type Part = Eight;
    #[inline(always)]
    fn zero() -> Self {
        unsafe { Avx2(_mm256_setzero_ps(), _mm256_setzero_ps()) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        unsafe { Avx2(_mm256_set1_ps(x), _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    fn load(source: &[f32; 16]) -> Self {
        unsafe { Avx2(_mm256_loadu_ps(source.as_ptr()), _mm256_loadu_ps(source.as_ptr().add(8))) }
    }
    #[inline(always)]
    fn store(self, target: &mut [f32; 16]) {
        unsafe {
            _mm256_storeu_ps(target.as_mut_ptr(), self.0);
            _mm256_storeu_ps(target.as_mut_ptr().add(8), self.1);
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_add_ps(self.0, other.0), _mm256_add_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_sub_ps(self.0, other.0), _mm256_sub_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_mul_ps(self.0, other.0), _mm256_mul_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe { Avx2(_mm256_fmadd_ps(self.0, a.0, b.0), _mm256_fmadd_ps(self.1, a.1, b.1)) }
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_div_ps(self.0, other.0), _mm256_div_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn add_where(self, mask: u16, other: Self) -> Self {
        unsafe {
            // Adding +0 in the other lanes can only change the sign of a zero.
            let (low, high) =
                (_mm256_and_ps(lane_mask(mask), other.0), _mm256_and_ps(lane_mask(mask >> 8), other.1));
            self.add(Avx2(low, high))
        }
    }
    #[inline(always)]
    fn greater(self, other: Self) -> u16 {
        unsafe {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, other.0));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.1, other.1));
            low as u16 | (high as u16) << 8
        }
    }
    #[inline(always)]
    fn clear(self, mask: u16) -> Self {
        unsafe {
            Avx2(_mm256_andnot_ps(lane_mask(mask), self.0), _mm256_andnot_ps(lane_mask(mask >> 8), self.1))
        }
    }
    #[inline(always)]
    fn fold([a, b, c, d]: [Self; 4]) -> Self {
        Avx2(Self::halves(a, b), Self::halves(c, d))
    }
    #[inline(always)]
    fn finish([p, q, r, s]: [Self; 4]) -> Self {
        Avx2(Self::quarters(p, q), Self::quarters(r, s))
    }
    #[inline(always)]
    fn shift(source: &[u16; 16], offset: u16, target: &mut [u16; 16]) {
        unsafe {
            let entries = _mm256_loadu_si256(source.as_ptr().cast());
            let shifted = _mm256_add_epi16(entries, _mm256_set1_epi16(offset as i16));
            _mm256_storeu_si256(target.as_mut_ptr().cast(), shifted);
        }
    }
    #[inline(always)]
    fn select<const SHIFT: u32>(table: &[u8; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize {
        super::Portable::select::<SHIFT>(table, bits, offset, target)
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        Self::sum_eight(unsafe { _mm256_add_ps(self.0, self.1) })
    }
}

/// One of the two registers of [`Avx2`].
#[derive(Clone, Copy)]
pub(crate) struct Eight(__m256);

// SAFETY (every block of this impl): as for `Avx2`; eight floats from `at` on are within the sixteen, by the
// bounds check of the slice.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Part for Eight {
    const LANES: usize = 8;
    #[inline(always)]
    fn zero() -> Self {
        unsafe { Eight(_mm256_setzero_ps()) }
    }
    #[inline(always)]
    fn load(source: &[f32; 16], at: usize) -> Self {
        unsafe { Eight(_mm256_loadu_ps(source[at..at + 8].as_ptr())) }
    }
    #[inline(always)]
    fn store(self, target: &mut [f32; 16], at: usize) {
        unsafe { _mm256_storeu_ps(target[at..at + 8].as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe { Eight(_mm256_add_ps(self.0, other.0)) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe { Eight(_mm256_fmadd_ps(self.0, a.0, b.0)) }
    }
}
