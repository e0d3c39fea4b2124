//! Data sets: built-in ones by name, and the user's own from arrays.

use crate::convert::{array, check_copy, is_bytes, numbers, real_array, room, slice, whole_numbers};
use crate::{arguments, fault};
use leaklab_engine::Shape;
use leaklab_lab::data::arrays::{self, Part, Values};
use leaklab_lab::data::{self, Binning, Limits, Split, npz};
use numpy::{PyArray1, PyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;

/// Images or recordings of events, and labels.
///
/// ``load_dataset`` loads one by name, and ``Dataset.from_arrays`` makes one from arrays. It can be used in
/// place of the name of a data set in the settings of ``train`` and ``study``, and as ``x`` in ``evaluate``.
#[pyclass(frozen, module = "leaklab")]
pub struct Dataset {
    pub(crate) data: data::Dataset,
    /// How recordings were divided into steps.
    pub(crate) binning: Option<Binning>,
}

impl Dataset {
    fn images<'py>(&self, py: Python<'py>, split: &Split) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        if self.data.has_events() {
            return Err(fault(format!(
                "data set {} has recordings, not images; recordings() returns their spikes",
                self.data.name
            )));
        }
        let Shape { channels, height, width } = self.data.shape;
        Ok(array(py, &[split.len(), channels, height, width], split.pixels().to_vec()))
    }
}

/// Shape and values of an array: bytes without change, other numbers as float64.
fn values(name: &str, given: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Values)> {
    let (py, given) = (given.py(), &real_array(name, given)?);
    if is_bytes(given)? {
        check_copy(name, given, 1)?;
        let bytes = numbers::<u8>(name, given)?;
        let values = slice(&bytes);
        return Ok((bytes.shape().to_vec(), Values::Bytes(py.detach(|| values.to_vec()))));
    }
    check_copy(name, given, 8)?;
    let numbers = numbers::<f64>(name, given)?;
    let values = slice(&numbers);
    Ok((numbers.shape().to_vec(), Values::Numbers(py.detach(|| values.to_vec()))))
}

fn part(which: &str, images: &Bound<'_, PyAny>, labels: &Bound<'_, PyAny>) -> PyResult<Part> {
    let (dimensions, values) = values(&format!("{which}_images"), images)?;
    let labels = whole_numbers(&format!("{which}_labels"), labels)?;
    Ok(Part { dimensions, values, labels, samples: None })
}

#[pymethods]
impl Dataset {
    /// Makes a data set from arrays.
    ///
    /// Images are ``[N, C, H, W]`` or ``[N, H, W]``; features are ``[N, F]`` and become an image of one row,
    /// so a network for 13 features begins with ``1x1x13``. uint8 arrays are used as pixels without change.
    /// Other numbers are scaled to 0 to 255, from the smallest to the largest training value; for ``[N, F]``,
    /// each feature has its own range. Test values beyond the range are clipped. Without test arrays, every
    /// fifth image of a class is used for testing. The same arrays in an .npz file (``numpy.savez``, with the
    /// names of the arguments here) are the data set ``"npz"`` of the program, with bit-identical content.
    #[staticmethod]
    #[pyo3(signature = (train_images, train_labels, test_images=None, test_labels=None, *,
        class_names=None, name="data"))]
    fn from_arrays(
        py: Python<'_>,
        train_images: &Bound<'_, PyAny>,
        train_labels: &Bound<'_, PyAny>,
        test_images: Option<&Bound<'_, PyAny>>,
        test_labels: Option<&Bound<'_, PyAny>>,
        class_names: Option<Vec<String>>,
        name: &str,
    ) -> PyResult<Self> {
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            return Err(fault(format!("name is '{name}'; letters, digits, hyphens and dots are expected")));
        }
        let train = part("train", train_images, train_labels)?;
        let test = match (test_images, test_labels) {
            (Some(images), Some(labels)) => Some(part("test", images, labels)?),
            (None, None) => None,
            _ => return Err(fault("test_images and test_labels belong together")),
        };
        let name = if name == "data" { "npz".to_owned() } else { format!("npz:{name}") };
        let data = py.detach(|| arrays::dataset(&name, train, test, class_names)).map_err(fault)?;
        Ok(Dataset { data, binning: None })
    }

    /// Writes the data set as an .npz file, which the program reads as the data set ``npz``.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| npz::save(&self.data, &path)).map_err(fault)
    }

    /// Name of the data set.
    #[getter]
    fn name(&self) -> &str {
        &self.data.name
    }

    /// Names of the classes.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.data.class_names.clone()
    }

    /// Size of an image, [C, H, W]; the channels of recordings are polarities.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        let Shape { channels, height, width } = self.data.shape;
        vec![channels, height, width]
    }

    /// SHA-256 of the whole content of the data set.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.data.digest())
    }

    /// Training images, uint8 [N, C, H, W].
    #[getter]
    fn train_images<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        self.images(py, &self.data.train)
    }

    /// Labels of the training images, uint8 [N].
    #[getter]
    fn train_labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, &self.data.train.labels)
    }

    /// Sample numbers of the training images, on which their random numbers depend, uint32 [N].
    #[getter]
    fn train_samples<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.data.train.samples)
    }

    /// Test images, uint8 [N, C, H, W].
    #[getter]
    fn test_images<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        self.images(py, &self.data.test)
    }

    /// Labels of the test images, uint8 [N].
    #[getter]
    fn test_labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, &self.data.test.labels)
    }

    /// Sample numbers of the test images, on which their random numbers depend, uint32 [N].
    #[getter]
    fn test_samples<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.data.test.samples)
    }

    /// Spikes of the test recordings, or of the training recordings with ``train=True``: uint8
    /// ``[T, N, C, H, W]``, as ``Network.forward`` expects them. ``indices`` selects recordings; all if not
    /// given.
    #[pyo3(signature = (indices=None, *, train=false))]
    fn recordings<'py>(
        &self,
        py: Python<'py>,
        indices: Option<Bound<'py, PyAny>>,
        train: bool,
    ) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        let split = if train { &self.data.train } else { &self.data.test };
        let recordings = split
            .recordings()
            .ok_or_else(|| fault(format!("data set {} has images, not recordings", self.data.name)))?;
        let indices: Vec<usize> = match indices {
            None => (0..split.len()).collect(),
            Some(indices) => whole_numbers("indices", &indices)?
                .into_iter()
                .map(|index| {
                    let place = usize::try_from(index).ok().filter(|&place| place < split.len());
                    place.ok_or_else(|| {
                        fault(format!(
                            "there is no recording {index}; there are {}, counted from 0",
                            split.len()
                        ))
                    })
                })
                .collect::<PyResult<_>>()?,
        };
        let (steps, size) = (recordings.steps(), self.data.shape.neurons());
        let Shape { channels, height, width } = self.data.shape;
        let shape = [steps, indices.len(), channels, height, width];
        let mut values: Vec<u8> = room("the spikes of the recordings", &shape)?;
        py.detach(|| {
            values.resize(shape.iter().product(), 0);
            for (i, &index) in indices.iter().enumerate() {
                for (step, neuron) in recordings.recording(index) {
                    values[(step * indices.len() + i) * size + neuron] = 1;
                }
            }
        });
        Ok(array(py, &shape, values))
    }

    /// Images can be pickled; recordings cannot, but can be loaded by name.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        if this.data.has_events() {
            return Err(fault(format!(
                "recordings cannot be pickled; pickle the name of data set {} and load it again",
                this.data.name
            )));
        }
        let restore = slf.get_type().getattr("_restore")?;
        let train = (this.train_images(py)?, this.train_labels(py), this.train_samples(py));
        let test = (this.test_images(py)?, this.test_labels(py), this.test_samples(py));
        (restore, (this.name(), this.class_names(), train, test)).into_pyobject(py)
    }

    /// Restores a pickled data set.
    #[staticmethod]
    fn _restore(
        name: &str,
        class_names: Vec<String>,
        train: [Bound<'_, PyAny>; 3],
        test: [Bound<'_, PyAny>; 3],
    ) -> PyResult<Self> {
        let part = |which: &str, [images, labels, samples]: &[Bound<'_, PyAny>; 3]| {
            let samples: Vec<u32> = samples.call_method0("tolist")?.extract()?;
            Ok::<_, PyErr>(Part { samples: Some(samples), ..part(which, images, labels)? })
        };
        let (train, test) = (part("train", &train)?, part("test", &test)?);
        let data = arrays::dataset(name, train, Some(test), Some(class_names)).map_err(fault)?;
        Ok(Dataset { data, binning: None })
    }

    fn __repr__(&self) -> String {
        let (train, test) = (self.data.train.len(), self.data.test.len());
        format!("Dataset('{}', {}, {train} train, {test} test)", self.data.name, self.data.shape)
    }
}

/// Loads a data set by name; ``digits`` and ``digits-events`` need no files. ``train_limit`` and
/// ``test_limit`` limit the number of images, which are class-balanced and chosen by ``seed``. Recordings of
/// events are divided into ``time_steps`` steps (100 if not given) of ``step_us`` microseconds, or into equal
/// steps if that is not given; squares with a side of ``downsample`` pixels are merged into one pixel. These
/// three arguments are for recordings only, since images are encoded later.
#[pyfunction]
#[pyo3(signature = (name, *, data_dir=None, train_limit=None, test_limit=None, seed=0, time_steps=None,
    step_us=None, downsample=None))]
#[allow(clippy::too_many_arguments)]
pub fn load_dataset(
    py: Python<'_>,
    name: &str,
    data_dir: Option<PathBuf>,
    #[pyo3(from_py_with = arguments::train_limit)] train_limit: Option<usize>,
    #[pyo3(from_py_with = arguments::test_limit)] test_limit: Option<usize>,
    #[pyo3(from_py_with = arguments::seed)] seed: u64,
    #[pyo3(from_py_with = arguments::optional_time_steps)] time_steps: Option<usize>,
    #[pyo3(from_py_with = arguments::step_us)] step_us: Option<u64>,
    #[pyo3(from_py_with = arguments::downsample)] downsample: Option<usize>,
) -> PyResult<Dataset> {
    let limits = Limits { train: train_limit, test: test_limit, seed, ..Limits::NONE };
    let binning =
        Binning { time_steps: time_steps.unwrap_or(100), step_us, downsample: downsample.unwrap_or(1) };
    let mut data = py.detach(|| data::load_complete(name, data_dir.as_deref(), &binning)).map_err(fault)?;
    let binning = Some(binning).filter(|_| data.has_events());
    if binning.is_none() {
        let given = [
            ("time_steps", time_steps.is_some()),
            ("step_us", step_us.is_some()),
            ("downsample", downsample.is_some()),
        ];
        if let Some((argument, _)) = given.iter().find(|(_, given)| *given) {
            return Err(fault(format!("{argument} is for recordings, and data set {name} has images")));
        }
    }
    limits.apply(&mut data).map_err(fault)?;
    Ok(Dataset { data, binning })
}
