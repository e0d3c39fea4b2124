//! The Shapley value of three factors. They can be switched on one after the other in six orders; the part of
//! each is the mean, over these orders, of the change that its switch causes. It is the only additive split
//! that is symmetric, gives nothing to a factor without effect, and sums to the whole.

/// Training, hidden layers, readout.
pub const FACTORS: usize = 3;

/// A value for each combination of factors; factor `i` is switched on where bit `i` of the index is set.
pub type Combinations<T> = [T; 1 << FACTORS];

/// Six times the part of each factor. Whole numbers stay whole, so the parts sum to exactly six times the
/// gain.
pub fn sixfold<T>(value: &Combinations<T>) -> [T; FACTORS]
where
    T: Copy + std::ops::Add<Output = T> + std::ops::Sub<Output = T>,
{
    std::array::from_fn(|i| {
        let (own, a, b) = (1 << i, 1 << ((i + 1) % FACTORS), 1 << ((i + 2) % FACTORS));
        let adds = |others: usize| value[others | own] - value[others];
        // The factor is first in two of the six orders, last in two, and second after each of the others in
        // one.
        adds(0) + adds(0) + adds(a) + adds(b) + adds(a | b) + adds(a | b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::philox::{Purpose, Stream};

    /// The definition, order by order.
    fn by_orders(value: &Combinations<i64>) -> [i64; FACTORS] {
        let mut sums = [0; FACTORS];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut on = 0;
            for factor in order {
                sums[factor] += value[on | 1 << factor] - value[on];
                on |= 1 << factor;
            }
        }
        sums
    }

    #[test]
    fn parts_sum_to_the_gain_exactly() {
        let stream = Stream::new(1, Purpose::Analyse, 0, 0);
        for case in 0..500 {
            let value: Combinations<i64> =
                std::array::from_fn(|i| stream.below_at(8 * case + i, 10_001) as i64 - 5_000);
            let parts = sixfold(&value);
            assert_eq!(parts, by_orders(&value));
            assert_eq!(parts.iter().sum::<i64>(), 6 * (value[7] - value[0]));
        }
    }

    #[test]
    fn a_factor_alone_gets_everything() {
        for factor in 0..FACTORS {
            let value: Combinations<i64> = std::array::from_fn(|i| (i >> factor & 1) as i64);
            let mut expected = [0; FACTORS];
            expected[factor] = 6;
            assert_eq!(sixfold(&value), expected);
        }
        // Two factors that only act together share the effect.
        let value: Combinations<i64> = std::array::from_fn(|i| i64::from(i & 3 == 3));
        assert_eq!(sixfold(&value), [3, 3, 0]);
    }
}
