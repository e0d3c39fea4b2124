//! SGD and Adam on one flat parameter array.

/// How weights are updated from their gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// `v = momentum v + g + weight_decay w; w -= lr v` (without momentum, `v` is not stored).
    Sgd {
        /// Factor of the previous velocity; 0 for no momentum.
        momentum: f32,
        /// This number times the weight is added to the gradient.
        weight_decay: f32,
    },
    /// Adam with bias correction; the weight decay is added to the gradient.
    Adam {
        /// Decay of the running mean of the gradient.
        beta1: f32,
        /// Decay of the running mean of the squared gradient.
        beta2: f32,
        /// Number that is added to the root of the mean square.
        epsilon: f32,
        /// This number times the weight is added to the gradient.
        weight_decay: f32,
    },
}

/// The state of an optimiser between steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Number of steps taken.
    pub steps: u64,
    /// One array per stored quantity (none, the velocity, or both moments), each as long as the weights.
    pub moments: Vec<Vec<f32>>,
}

impl Optimiser {
    /// Plain SGD.
    pub const SGD: Optimiser = Optimiser::Sgd { momentum: 0.0, weight_decay: 0.0 };

    /// The state before the first step.
    pub fn start(&self, weights: usize) -> State {
        State { steps: 0, moments: vec![vec![0.0; weights]; self.moments()] }
    }

    /// Number of arrays of the state, each as long as the weights: none, the velocity, or both moments.
    pub fn moments(&self) -> usize {
        match self {
            Optimiser::Sgd { momentum: 0.0, .. } => 0,
            Optimiser::Sgd { .. } => 1,
            Optimiser::Adam { .. } => 2,
        }
    }

    /// Takes one step.
    ///
    /// # Panics
    /// If `state` was not created by [`Optimiser::start`] of this optimiser for the same number of weights.
    pub fn step(&self, weights: &mut [f32], gradients: &[f32], state: &mut State, learning_rate: f32) {
        assert_eq!(weights.len(), gradients.len(), "one gradient per weight");
        assert!(
            state.moments.iter().all(|m| m.len() == weights.len()),
            "the state belongs to another network"
        );
        state.steps += 1;
        const OTHER: &str = "the state belongs to another optimiser";
        match *self {
            Optimiser::Sgd { momentum, weight_decay } => match state.moments.as_mut_slice() {
                [] if momentum == 0.0 => {
                    for (w, g) in weights.iter_mut().zip(gradients) {
                        *w -= learning_rate * (g + weight_decay * *w);
                    }
                }
                [velocity] if momentum != 0.0 => {
                    for ((w, g), v) in weights.iter_mut().zip(gradients).zip(velocity) {
                        *v = momentum * *v + (g + weight_decay * *w);
                        *w -= learning_rate * *v;
                    }
                }
                _ => panic!("{OTHER}"),
            },
            Optimiser::Adam { beta1, beta2, epsilon, weight_decay } => {
                let [mean, square] = state.moments.as_mut_slice() else { panic!("{OTHER}") };
                let correction = |beta: f32| (1.0 - f64::from(beta).powf(state.steps as f64)) as f32;
                let (c1, c2) = (correction(beta1), correction(beta2));
                for (((w, g), m), v) in weights.iter_mut().zip(gradients).zip(mean).zip(square) {
                    let g = g + weight_decay * *w;
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w -= learning_rate * (*m / c1) / ((*v / c2).sqrt() + epsilon);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sgd_by_hand() {
        let optimiser = Optimiser::Sgd { momentum: 0.5, weight_decay: 0.25 };
        let (mut w, mut state) = ([1.0f32, -2.0], optimiser.start(2));
        optimiser.step(&mut w, &[1.0, 0.0], &mut state, 0.5);
        assert_eq!(w, [1.0 - 0.5 * 1.25, -2.0 + 0.5 * 0.5]);
        optimiser.step(&mut w, &[0.0, 0.0], &mut state, 0.5);
        assert_eq!(w[0], 0.375 - 0.5 * (0.625 + 0.25 * 0.375));
    }

    #[test]
    fn adam_first_step_has_the_size_of_the_learning_rate() {
        let optimiser = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
        let (mut w, mut state) = ([0.0f32; 2], optimiser.start(2));
        optimiser.step(&mut w, &[3.0, -0.01], &mut state, 0.1);
        assert!((w[0] + 0.1).abs() < 1e-6 && (w[1] - 0.1).abs() < 1e-6, "{w:?}");
    }

    #[test]
    #[should_panic(expected = "another optimiser")]
    fn refuses_a_foreign_state() {
        Optimiser::SGD.step(&mut [0.0], &[0.0], &mut State { steps: 0, moments: vec![vec![0.0]] }, 1.0);
    }
}
