//! Questions other than leak that a study's conditions answer, one after the other.

use super::records::Study;
use super::{chart, typeset};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::Question;

/// The section; `None` if no two conditions differ only in one such respect.
pub fn section(study: &Study) -> Option<Section> {
    let table = study.compare.further.as_ref()?;
    let mut section = Section::new(
        "further",
        "Further questions",
        "What else makes a difference",
        Html::fill("{}", &[&chart::small_print(table)]),
    );
    for question in Question::ALL {
        let rows = table.rows.iter().filter(|row| row.question == question);
        let items = Html::join(rows.map(|row| Html::fill("<li>{}</li>\n", &[&typeset::html(&row.sentence)])));
        if !items.as_str().is_empty() {
            let heading = chart::table_heading(question.words());
            section.after.add("{}<ul class=\"prose\">\n{}</ul>\n", &[&heading, &items]);
        }
    }
    Some(section)
}
