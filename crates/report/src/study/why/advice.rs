//! Advice: the most robust of the measured ways to run the study's networks.

use crate::html::Html;
use crate::study::chart;
use crate::study::number;
use crate::study::records::Study;
use leaklab_record::tables::AdviceRow;
use leaklab_record::{Readout, Stimulus, Tau};

fn tau(tau: Tau) -> String {
    if tau.leaks() { format!("τ = {tau}") } else { "no leak".to_owned() }
}

fn readout(readout: Readout) -> String {
    match readout {
        Readout::Leaky(of) => tau(of),
        Readout::Reversed(_) | Readout::Window { .. } => readout.words(),
    }
}

/// An interval in brackets; empty if there is none.
fn interval(low: Option<f64>, high: Option<f64>, show: impl Fn(f64) -> String) -> String {
    low.zip(high).map_or_else(String::new, |(low, high)| format!("[{}, {}]", show(low), show(high)))
}

fn row(row: &AdviceRow) -> Html {
    let percent = |x: f64| format!("{:.1}", 100.0 * x);
    let points = |x: f64| number::signed(100.0 * x, 1);
    Html::fill(
        "<tr><th scope=\"row\">{}</th><td data-label=\"Trained with\">{}</td>\
         <td data-label=\"Hidden layers run with\">{}</td><td data-label=\"Read with\">{}</td>\
         <td class=\"number\" data-label=\"Accuracy\">\
         <span>{}&nbsp;% <span class=\"range\">{}</span></span></td>\
         <td class=\"number\" data-label=\"Gain, points\">\
         <span>{} <span class=\"range\">{}</span>{}</span></td>\
         <td class=\"number\" data-label=\"Synaptic operations\">× {}</td></tr>\n",
        &[
            &chart::capital(&row.stimulus.words()),
            &tau(row.trained),
            &tau(row.hidden),
            &readout(row.readout),
            &percent(row.accuracy),
            &interval(row.low, row.high, percent),
            &points(row.gain),
            &interval(row.gain_low, row.gain_high, points),
            &over_readout(row),
            &format!("{:.2}", row.synops_ratio),
        ],
    )
}

/// The gain over the baseline with the readout that is best for it, if there is another one than the gain.
fn over_readout(row: &AdviceRow) -> Html {
    let Some((own, gain)) = row.over_readout() else { return Html::new() };
    let points = |x: f64| number::signed(100.0 * x, 1);
    let interval = interval(row.gain_over_readout_low, row.gain_over_readout_high, points);
    Html::fill("<span class=\"paper\">{} {} over {}</span>", &[&points(gain), &interval, &readout(own)])
}

/// The options of an example command: a noise and a severity that the study tests, and a budget that it can
/// meet, since networks without leak need no more.
fn example(study: &Study, rows: &[AdviceRow]) -> Vec<String> {
    let noisy = rows.iter().find_map(|row| match row.stimulus {
        Stimulus::Noisy(noise, severity) => {
            Some((noise.to_string(), severity, Some(row.synops / row.synops_ratio)))
        }
        Stimulus::Clean => None,
    });
    let any = if study.recorded { "background/channel" } else { "gaussian/pixel" };
    let (noise, severity, cost) = noisy.unwrap_or((any.to_owned(), 5, None));
    let mut options = vec![format!("--noise {noise}"), format!("--severity {severity}")];
    let budget = cost.filter(|cost| cost.is_finite() && *cost > 0.0).map(rounded_up);
    options.extend(budget.map(|budget| format!("--synops-budget {budget}")));
    options
}

/// The next whole number with at most two digits other than 0.
fn rounded_up(x: f64) -> f64 {
    let unit = 10f64.powi((x.log10().floor() as i32 - 1).max(0));
    (x / unit).ceil() * unit
}

/// The table of advice; empty if the study did not measure where robustness comes from.
pub fn table(study: &Study) -> Html {
    let Some(table) = &study.compare.why.advice else { return Html::new() };
    let body = Html::join(table.rows.iter().map(row));
    let small = match table.rows.iter().any(|row| row.over_readout().is_some()) {
        true => Html::markup(
            "<p>Small print in a cell is the gain over networks without leak that are read with the readout \
             that is best for them.</p>",
        ),
        false => Html::new(),
    };
    let options = example(study, &table.rows);
    let options =
        Html::join(options.iter().map(|option| Html::fill(" <span class=\"option\">{}</span>", &[option])));
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"stack tall\"><thead><tr><th>Under</th><th>Trained with</th>\
         <th>Hidden layers run with</th><th>Read with</th><th class=\"number\">Accuracy</th>\
         <th class=\"number\">Gain, points</th><th class=\"number\">Synaptic operations</th></tr></thead>\
         <tbody>\n{}</tbody></table></div>\n<div class=\"muted small prose\">{}{}<p>For a limited number \
         of operations, and for any noise and severity: <code><span class=\"option\">leaklab advise \
         STUDY</span>{}</code>.</p></div>\n",
        &[
            &chart::table_heading("The most robust way to run these networks"),
            &body,
            &small,
            &chart::small_print(table),
            &options,
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn budgets_are_rounded_up_to_two_digits() {
        let rounded = [0.2, 7.0, 99.5, 123_456.0, 854_100.0, 2e9].map(rounded_up);
        assert_eq!(rounded, [1.0, 7.0, 100.0, 130_000.0, 860_000.0, 2e9]);
    }
}
