//! The results of a batch that several processes share are bit-identical to those of a single process.

use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::{
    Architecture, Gradient, Input, Isa, Leak, Masks, Network, Packed, Place, Scratch, SharedBatch, Tau,
    Trace, encode, train_batch,
};

const STEPS: usize = 12;
/// Nineteen groups, the last of which has three samples; this is more than are summed together.
const SAMPLES: usize = 75;

struct Case {
    packed: Packed,
    real: bool,
}

impl Case {
    fn new(notation: &str, real: bool) -> Self {
        let architecture = Architecture::parse(notation).unwrap();
        let leak = Leak::uniform(Tau::new(20.0).unwrap());
        let network = Network::initialised(architecture, leak, 0.5, 5).unwrap();
        Case { packed: Packed::new(&network, Isa::best()).unwrap(), real }
    }

    fn prepare(&self, i: usize, input: &mut Input, masks: &mut Masks) -> usize {
        let shape = self.packed.architecture().input();
        let stream = Stream::new(3, Purpose::Benchmark, 0, i as u32);
        if self.real {
            let values: Vec<f32> =
                (0..STEPS * shape.neurons()).map(|p| 2.0 * stream.uniform_at(p) - 1.0).collect();
            *input = Input::Real { shape, steps: STEPS, values };
        } else {
            let image: Vec<f32> = (0..shape.neurons()).map(|p| 2.0 * stream.uniform_at(p) - 1.0).collect();
            encode::encode(&image, shape, &encode::Encoding::clean(STEPS), 3, 1, i as u32, input);
        }
        masks.draw(0.2, 3, 1, i as u32, self.packed.architecture());
        i % 5
    }

    /// Gradient and predictions of a single process.
    fn alone(&self) -> (Vec<u32>, Vec<Vec<f32>>) {
        let mut gradients = vec![0.0; self.packed.architecture().parameter_count()];
        let predictions = train_batch(
            &self.packed,
            STEPS,
            SAMPLES,
            Gradient::Exact,
            &Scratch::default(),
            |i, input, masks| self.prepare(i, input, masks),
            predict,
            &mut gradients,
        );
        (bits(&gradients), predictions.unwrap())
    }

    /// The same for several processes, run one after the other, with `threads` threads in total.
    fn shared(&self, ranks: usize, threads: usize) -> (Vec<u32>, Vec<Vec<f32>>) {
        let batch = |rank| SharedBatch {
            packed: &self.packed,
            steps: STEPS,
            samples: SAMPLES,
            mode: Gradient::Exact,
            place: Place { rank, ranks },
            threads,
        };
        let scratch = Scratch::default();
        let mut gradients = vec![vec![0.0; self.packed.architecture().parameter_count()]; ranks];
        let mut predictions = Vec::new();
        for round in 0..batch(0).rounds() {
            let mut messages = Vec::new();
            for rank in 0..ranks {
                let prepare = |i: usize, input: &mut Input, masks: &mut Masks| self.prepare(i, input, masks);
                let (own, sent) = batch(rank).run(round, &scratch, prepare, predict).unwrap();
                predictions.extend(own);
                messages.push(sent);
            }
            let received = |rank: usize| messages.iter().map(|sent| sent[rank].clone()).collect::<Vec<_>>();
            let sums: Vec<_> = (0..ranks).map(|rank| batch(rank).sum(round, &received(rank))).collect();
            for (rank, gradients) in gradients.iter_mut().enumerate() {
                batch(rank).add(round, &sums, gradients);
            }
        }
        let first = bits(&gradients[0]);
        assert!(gradients.iter().all(|other| bits(other) == first), "processes differ");
        (first, predictions)
    }
}

fn predict(_: usize, trace: &Trace) -> Vec<f32> {
    trace.prediction().to_vec()
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn results_do_not_depend_on_processes() {
    let networks = ["2x9x9-20C3-17C3-2P-150FC-5o", "2x9x9-40FC-5o", "1x4x4-8C3-2P-5o"];
    for (notation, real) in networks.iter().flat_map(|n| [(n, false), (n, true)]) {
        let case = Case::new(notation, real);
        let alone = case.alone();
        assert!(
            alone.0.iter().filter(|&&bits| bits != 0).count() > 50,
            "{notation}: almost all gradients are zero"
        );
        // The cases include one and two waves in a round, processes without a
        // group, and processes without a weight.
        for (ranks, threads) in [(1, 1), (2, 2), (3, 3), (3, 6), (5, 17), (16, 16), (25, 50)] {
            let shared = case.shared(ranks, threads);
            assert!(shared == alone, "{notation}, real input {real}: {ranks} processes, {threads} threads");
        }
    }
}

#[test]
fn samples_are_shared_in_whole_groups() {
    for ranks in [1, 2, 3, 7, 40] {
        let shares = (0..ranks).map(|rank| Place { rank, ranks }.samples(SAMPLES)).collect::<Vec<_>>();
        assert!(shares.iter().all(|share| share.start % 4 == 0 || share.is_empty()), "{shares:?}");
        assert_eq!(shares.into_iter().flatten().collect::<Vec<_>>(), (0..SAMPLES).collect::<Vec<_>>());
    }
}
