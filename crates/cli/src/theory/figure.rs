//! `leaklab theory figure`: the paper's Fig. 2, on its own axis and on a common one, and what holds on which
//! axis.

use super::FigureArguments;
use crate::output::{self, FileKind};
use crate::{Outcome, usage};
use leaklab_lab::theory_tables::{Simulation, tables};
use leaklab_record::Rows;
use leaklab_report::html::Html;
use leaklab_report::page::{Page, render};
use leaklab_report::study::coherence;

/// Computes the tables, draws them and writes the page.
pub fn write(arguments: &FigureArguments) -> Outcome {
    if arguments.segments == 1 {
        return Err(usage(
            "--segments 1: one segment has no interval; give at least 2, or 0 for no simulation",
        ));
    }
    output::file("--out", &arguments.out, FileKind::Page)?;
    if let Some(folder) = &arguments.tables {
        output::folder("--tables", folder)?;
    }
    let segments = arguments.segments as usize;
    let simulation = (segments > 0).then_some(Simulation { segments, seed: arguments.seed });
    let tables = tables(simulation);
    if let Some(folder) = &arguments.tables {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: the folder cannot be created: {error}", folder.display()))?;
        for table in &tables {
            table.write(folder)?;
        }
    }
    let mut curves = coherence::Theory::new();
    for table in &tables {
        curves.insert(table.name.clone(), Rows::from_table(table)?);
    }
    let mut section = coherence::section(&curves);
    section.heading = "Theory and simulation".to_owned();
    section.text = Html::markup(
        "<p>Coherence is 1 at a frequency where the spike train follows the input linearly and without \
         noise, and 0 where it is not linearly related to the input. All neurons of a panel have the same \
         capacitance, threshold and input current; they differ only in the leak resistance R.</p>",
    );
    let page = Page {
        title: "What leak does to the coherence of one neuron".to_owned(),
        eyebrow: "Theory of one neuron".to_owned(),
        lead: Html::markup(
            "<p>The paper states that a neuron without leak passes all frequencies and that leak removes the \
             high ones. <strong>That holds on one axis only:</strong> frequency times each neuron's own time \
             constant.</p>\
             <ul>\
             <li><strong>On each neuron's own axis</strong> (left) the statement holds: without leak the \
             time constant is so long that the whole axis is slow compared with the neuron's firing.</li>\
             <li><strong>On a common axis</strong> (middle) it does not: near its firing rate the coherence \
             of the neuron without leak falls as that of the leaky ones does, and all end in the same kind \
             of tail, 2&nbsp;×&nbsp;rate&nbsp;/&nbsp;ω. What leak lowers is the plateau at low \
             frequency.</li>\
             <li><strong>If the input is mostly noise</strong> (right), a leaky neuron can be the more \
             coherent one over most of the axis.</li></ul>",
        ),
        sections: vec![section],
        footer: Html::fill(
            "<p>Made by LeakLab {}. The paper is Chowdhury, Lee and Roy, <cite>Towards Understanding the \
             Effect of Leak in Spiking Neural Networks</cite> (2020), Fig. 2.</p>",
            &[&env!("CARGO_PKG_VERSION")],
        ),
        refresh: None,
    };
    let file = &arguments.out;
    leaklab_record::atomic::write(file, render(&page).as_bytes())
        .map_err(|error| format!("{}: the page cannot be written: {error}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
