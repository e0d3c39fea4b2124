//! Instruction sets. The set is chosen at run time, never at build time, and is always passed as an argument.
//!
//! Every kernel is written once, generic over `Vector` (sixteen f32 lanes), and compiled for each instruction
//! set; `Portable` is the safe scalar reference implementation, with which the tests compare the others. All
//! `unsafe` code of the project is in this folder.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) mod backward;
pub(crate) mod forward;
pub(crate) mod lists;
mod vector;

pub(crate) use vector::{Part, Portable, Row, Vector};

use std::fmt;
use std::str::FromStr;

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 (F, BW, DQ, VL, and VBMI2 where the CPU has it): sixteen lanes in one register. Zen 4,
    /// Skylake-X and later.
    Avx512,
    /// AVX2 and FMA: sixteen lanes in two registers.
    Avx2,
    /// Portable code for any CPU; also the reference implementation, with which the tests compare the others.
    Portable,
}

impl Isa {
    /// The sets that this CPU supports, fastest first. [`Isa::Portable`] is always the last.
    pub fn available() -> Vec<Isa> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx512() {
                sets.push(Isa::Avx512);
            }
            if x86::has_avx2() {
                sets.push(Isa::Avx2);
            }
        }
        sets.push(Isa::Portable);
        sets
    }

    /// The fastest set that this CPU supports.
    pub fn best() -> Isa {
        Self::available()[0]
    }

    /// Whether this CPU supports the set.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::has_avx2(),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx2 => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        })
    }
}

/// The error that a name is none of `avx512`, `avx2` and `portable`, or
/// that this CPU does not support the set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instruction set '{name}' is not one of this CPU's: {available}")]
pub struct UnknownIsa {
    name: String,
    available: String,
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Isa, UnknownIsa> {
        let available = Isa::available();
        available.iter().copied().find(|isa| isa.to_string() == name).ok_or_else(|| UnknownIsa {
            name: name.to_owned(),
            available: available.iter().map(Isa::to_string).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Plain safe code that the compiler should vectorise for an instruction set.
///
/// Implement it on a struct of borrowed arguments and mark `run` `#[inline(always)]`:
/// the body is then compiled once per instruction set. It must not use `mul_add`, so
/// that its result is the same in all of them.
pub trait Work {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs `work`, compiled for `isa`.
///
/// # Panics
/// If this CPU does not support `isa`.
pub fn vectorise<W: Work>(isa: Isa, work: W) -> W::Output {
    assert!(isa.is_available(), "this CPU does not support {isa}");
    match isa {
        Isa::Portable => work.run(),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has the features, by the assertion above.
        Isa::Avx512 => unsafe { x86::run_avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has the features, by the assertion above.
        Isa::Avx2 => unsafe { x86::run_avx2(work) },
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx512 | Isa::Avx2 => unreachable!("asserted above"),
    }
}

/// A kernel: written once, compiled for each instruction set. `run` must be `#[inline(always)]`.
pub(crate) trait Kernel {
    /// The result of the kernel.
    type Output;

    /// Runs with the vectors of one instruction set.
    fn run<V: Vector>(self) -> Self::Output;
}

struct With<V, K>(K, std::marker::PhantomData<V>);

impl<V: Vector, K: Kernel> Work for With<V, K> {
    type Output = K::Output;

    #[inline(always)]
    fn run(self) -> K::Output {
        self.0.run::<V>()
    }
}

/// Runs `kernel`, compiled for `isa`.
///
/// # Panics
/// If this CPU does not support `isa`.
pub(crate) fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        Isa::Portable => vectorise(isa, With::<Portable, K>(kernel, std::marker::PhantomData)),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if x86::has_avx512_vbmi2() => {
            let work = With::<x86::Avx512<true>, K>(kernel, std::marker::PhantomData);
            // SAFETY: the CPU has the features, by the condition.
            unsafe { x86::run_avx512_vbmi2(work) }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => vectorise(isa, With::<x86::Avx512<false>, K>(kernel, std::marker::PhantomData)),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => vectorise(isa, With::<x86::Avx2, K>(kernel, std::marker::PhantomData)),
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx512 | Isa::Avx2 => panic!("this CPU does not support {isa}"),
    }
}

/// Adds rows of 256 bytes from random places of a 32 KB table, `repeats` times over a fixed list.
/// Returns the number of additions and a sum that depends on all of them. The caller measures the time,
/// which gives the machine's load ceiling.
pub fn add_random_rows(isa: Isa, repeats: usize) -> (u64, f32) {
    let rows: Vec<Row> = (0..512).map(|i| Row([i as f32 * 1e-6; 16])).collect();
    let stream = crate::philox::Stream::new(0, crate::philox::Purpose::Benchmark, 0, 0);
    let list: Vec<u16> = (0..4096).map(|i| stream.below_at(i, 128) as u16 * lists::ROW as u16).collect();
    let sum = dispatch(isa, forward::Ceiling { rows: &rows, list: &list, repeats });
    ((repeats * list.len() * 64) as u64, sum)
}
