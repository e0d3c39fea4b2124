//! AVX-512 and AVX2.

use super::{Vector, Work};
use std::arch::x86_64::*;

/// Whether the CPU has what [`Avx512`] uses.
pub(super) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
}

/// Whether the CPU has what [`Avx2`] uses.
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Sixteen lanes in one register.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

// SAFETY (every block of this impl): a value of `Avx512` is only made in code that runs under `run_avx512` or
// another function with the same features, and loads and stores go through references to sixteen floats.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Avx512 {
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
    fn mul(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, a.0, b.0) })
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
    fn select(table: &[u16; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize {
        unsafe {
            let shift = _mm512_set1_epi16(offset as i16);
            let low = bits as u32;
            let half = low.count_ones() as usize;
            let first = _mm512_maskz_compress_epi16(low, _mm512_loadu_si512(table.as_ptr().cast()));
            _mm512_storeu_si512(target.as_mut_ptr().cast(), _mm512_add_epi16(first, shift));
            let high = (bits >> 32) as u32;
            let second = _mm512_maskz_compress_epi16(high, _mm512_loadu_si512(table.as_ptr().add(32).cast()));
            // `half` is at most 32, so the store ends within the sixty-four entries.
            _mm512_storeu_si512(target.as_mut_ptr().add(half).cast(), _mm512_add_epi16(second, shift));
            half + high.count_ones() as usize
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = [0.0; 16];
        self.store(&mut lanes);
        super::Portable::load(&lanes).sum()
    }
}

/// Sixteen lanes in two registers.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256, __m256);

impl Avx2 {
    #[inline(always)]
    fn lanes(self) -> [f32; 16] {
        let mut lanes = [0.0; 16];
        self.store(&mut lanes);
        lanes
    }
}

/// All bits of lane `i` set where bit `i` of `mask` is.
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
    fn mul(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_mul_ps(self.0, other.0), _mm256_mul_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe { Avx2(_mm256_fmadd_ps(self.0, a.0, b.0), _mm256_fmadd_ps(self.1, a.1, b.1)) }
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
    fn select(table: &[u16; 64], bits: u64, offset: u16, target: &mut [u16; 64]) -> usize {
        super::Portable::select(table, bits, offset, target)
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        super::Portable::load(&self.lanes()).sum()
    }
}
