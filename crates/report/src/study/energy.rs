//! Energy of one inference by hardware model: operations times a published energy per operation.

use super::chart;
use super::number;
use super::records::Study;
use crate::html::Html;
use leaklab_record::tables::EnergyRow;

/// One hardware model.
struct Model<'a> {
    row: &'a EnergyRow,
    /// Sum and number of runs, by condition.
    sums: Vec<(f64, usize)>,
}

/// Energy per image, mean over seeds.
pub fn table(study: &Study) -> Html {
    let conditions = study.learned();
    let mut models: Vec<Model> = Vec::new();
    for run in &study.runs {
        let Some(column) = conditions.iter().position(|c| c.name == run.condition) else { continue };
        for row in run.tables.energy.iter().flat_map(|rows| &rows.rows) {
            let same = |m: &Model| m.row.model == row.model && m.row.operation == row.operation;
            let place = models.iter().position(same).unwrap_or_else(|| {
                models.push(Model { row, sums: vec![(0.0, 0); conditions.len()] });
                models.len() - 1
            });
            let sum = &mut models[place].sums[column];
            *sum = (sum.0 + row.spiking, sum.1 + 1);
        }
    }
    if models.is_empty() {
        return Html::new();
    }
    let mut body = Html::new();
    for Model { row, sums } in &models {
        let cells = Html::join(sums.iter().zip(&conditions).map(|(&(sum, count), condition)| {
            let text = if count == 0 { "–".to_owned() } else { joule(sum / count as f64) };
            Html::fill("<td class=\"number\" data-label=\"{}\">{}</td>", &[&condition.label(), &text])
        }));
        body.add(
            "<tr><th scope=\"row\">{}<span class=\"range\"><br>{}, {} pJ</span></th>{}<td class=\"number\" \
             data-label=\"Dense network, one pass\">{}</td></tr>\n",
            &[
                &row.model,
                &row.operation,
                &number::short(row.energy_per_operation),
                &cells,
                &row.dense.map_or_else(|| "–".to_owned(), joule),
            ],
        );
    }
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>Model</th>{}<th \
         class=\"number\">Dense network, one pass</th></tr></thead><tbody>\n{}</tbody></table></div>\n<p \
         class=\"muted small prose\">Each value is the number of operations times a published energy per \
         operation. Memory and static power are not included. Compare values only within a row.</p>\n",
        &[
            &chart::table_heading("Energy of one inference, by hardware model"),
            &chart::head(&conditions),
            &body,
        ],
    )
}

fn joule(x: f64) -> String {
    let (scale, unit) = match x {
        x if x >= 1e-3 => (1e3, "mJ"),
        x if x >= 1e-6 => (1e6, "µJ"),
        _ => (1e9, "nJ"),
    };
    format!("{}\u{a0}{unit}", number::plain(x * scale))
}
