//! The tables of a study's comparison and of a run's analyses, as typed rows. A table that is missing or has
//! no row is nothing; a file whose columns are others is an error that names it.

use leaklab_record::tables::{
    ActivityRow, AdviceRow, AnswerRow, CellRow, ClaimRow, ColourRow, ConditionRow, ContrastRow,
    CriticalByConditionRow, CriticalRow, CriticalSummaryRow, EnergyRow, EqualTrainSseRow, FurtherRow,
    GeneralisationByConditionRow, HiddenSpectrumRow, ImageRow, InputAmplitudeRow, InputSpectrumRow,
    LayerLeakRow, MembraneRow, NormByConditionRow, PriceRow, RasterRow, ResponseRow,
    RobustnessByConditionRow, RunRow, SplitRow, Table1Row, TimeRow, TradeoffRow, WHY_CLAIMS, WhyRow,
};
use leaklab_record::{Quantity, Row, Rows, TableError};
use std::path::Path;

/// Tables of the comparison.
#[derive(Debug, Clone, Default)]
pub struct Compare {
    /// The opening sentence.
    pub answer: Option<Rows<AnswerRow>>,
    /// The claims, judged.
    pub claims: Option<Rows<ClaimRow>>,
    /// The conditions.
    pub conditions: Option<Rows<ConditionRow>>,
    /// Which runs learned.
    pub runs: Option<Rows<RunRow>>,
    /// The paper's Table 1.
    pub table1: Option<Rows<Table1Row>>,
    /// Accuracy under noise.
    pub robustness: Option<Rows<RobustnessByConditionRow>>,
    /// Paired comparisons.
    pub contrasts: Option<Rows<ContrastRow>>,
    /// Errors epoch by epoch.
    pub generalisation: Option<Rows<GeneralisationByConditionRow>>,
    /// Test error at equal training error.
    pub equal_train_sse: Option<Rows<EqualTrainSseRow>>,
    /// Weighted-input norms.
    pub norm: Option<Rows<NormByConditionRow>>,
    /// Critical frequencies.
    pub critical: Option<Rows<CriticalByConditionRow>>,
    /// Robustness against work.
    pub tradeoff: Option<Rows<TradeoffRow>>,
    /// Questions beside leak.
    pub further: Option<Rows<FurtherRow>>,
    /// Where robustness comes from.
    pub why: Why,
}

/// Tables of the question where robustness comes from.
#[derive(Debug, Clone, Default)]
pub struct Why {
    /// Sentences made by rule.
    pub sentences: Option<Rows<WhyRow>>,
    /// Statements W1 to W4, judged.
    pub claims: Option<Rows<ClaimRow>>,
    /// The gain, split by where leak acts.
    pub split: Option<Rows<SplitRow>>,
    /// Leak in single hidden layers.
    pub layers: Option<Rows<LayerLeakRow>>,
    /// Accuracy as time goes on.
    pub time: Option<Rows<TimeRow>>,
    /// The gain against the colour of the noise.
    pub colours: Option<Rows<ColourRow>>,
    /// The price, split by where leak acts.
    pub price: Option<Rows<PriceRow>>,
    /// Weights trained with one leak and run with another.
    pub cells: Option<Rows<CellRow>>,
    /// How layers follow a modulated input.
    pub response: Option<Rows<ResponseRow>>,
    /// The most robust ways to run the networks.
    pub advice: Option<Rows<AdviceRow>>,
}

impl Why {
    fn read(folder: &Path) -> Result<Self, TableError> {
        Ok(Why {
            sentences: read(folder)?,
            claims: Rows::read_named(folder, WHY_CLAIMS)?.filter(|rows: &Rows<_>| !rows.rows.is_empty()),
            split: read(folder)?,
            layers: read(folder)?,
            time: read(folder)?,
            colours: read(folder)?,
            price: read(folder)?,
            cells: read(folder)?,
            response: read(folder)?,
            advice: read(folder)?,
        })
    }
}

impl Compare {
    /// Reads the folder's tables.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        Ok(Compare {
            answer: read(folder)?,
            claims: read(folder)?,
            conditions: read(folder)?,
            runs: read(folder)?,
            table1: read(folder)?,
            robustness: read(folder)?,
            contrasts: read(folder)?,
            generalisation: read(folder)?,
            equal_train_sse: read(folder)?,
            norm: read(folder)?,
            critical: read(folder)?,
            tradeoff: read(folder)?,
            further: read(folder)?,
            why: Why::read(folder)?,
        })
    }

    /// The comparison of two conditions by a quantity, if it was made.
    pub fn contrast(&self, quantity: &Quantity, a: &str, b: &str) -> Option<&ContrastRow> {
        let rows = &self.contrasts.as_ref()?.rows;
        rows.iter().find(|row| row.quantity == *quantity && row.a == a && row.b == b)
    }
}

/// Tables of a run's analyses.
#[derive(Debug, Clone, Default)]
pub struct RunTables {
    /// Activity by layer.
    pub activity: Option<Rows<ActivityRow>>,
    /// Energy by hardware model.
    pub energy: Option<Rows<EnergyRow>>,
    /// Spectrum of the input spikes.
    pub input_spectrum: Option<Rows<InputSpectrumRow>>,
    /// Histogram of the input's amplitudes.
    pub input_amplitude: Option<Rows<InputAmplitudeRow>>,
    /// Histogram of critical frequencies.
    pub critical: Option<Rows<CriticalRow>>,
    /// Mean critical frequencies by reading.
    pub critical_summary: Option<Rows<CriticalSummaryRow>>,
    /// Spectra of the hidden layers' spikes.
    pub hidden_spectrum: Option<Rows<HiddenSpectrumRow>>,
    /// Spikes of the example image.
    pub raster: Option<Rows<RasterRow>>,
    /// Potentials of the example image.
    pub membrane: Option<Rows<MembraneRow>>,
    /// The example image.
    pub image: Option<Rows<ImageRow>>,
}

impl RunTables {
    /// Reads the folder's tables.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        Ok(RunTables {
            activity: read(folder)?,
            energy: read(folder)?,
            input_spectrum: read(folder)?,
            input_amplitude: read(folder)?,
            critical: read(folder)?,
            critical_summary: read(folder)?,
            hidden_spectrum: read(folder)?,
            raster: read(folder)?,
            membrane: read(folder)?,
            image: read(folder)?,
        })
    }
}

/// The table of this kind, if it has rows.
pub fn read<R: Row>(folder: &Path) -> Result<Option<Rows<R>>, TableError> {
    Ok(Rows::read(folder)?.filter(|rows| !rows.rows.is_empty()))
}
