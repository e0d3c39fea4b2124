//! A table of results that explains itself: every column has a unit and a description, and the table has a
//! definition of what was measured. The JSON form is for programs, the CSV form for spreadsheets and pandas.
//!
//! A missing number is an explicit empty cell and never NaN: a table refuses non-finite numbers when it is
//! built.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the table format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// One value of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value; the table's notes explain why.
    Empty,
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Cell {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Cell::Integer(n) => Some(n as f64),
            Cell::Number(x) => Some(x),
            Cell::Empty | Cell::Text(_) => None,
        }
    }

    /// The value as text, if it is text.
    pub fn text(&self) -> Option<&str> {
        if let Cell::Text(s) = self { Some(s) } else { None }
    }
}

impl From<f64> for Cell {
    fn from(x: f64) -> Self {
        Cell::Number(x)
    }
}
impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Cell::Integer(n as i64)
    }
}
impl From<usize> for Cell {
    fn from(n: usize) -> Self {
        Cell::Integer(n as i64)
    }
}
impl From<&str> for Cell {
    fn from(s: &str) -> Self {
        Cell::Text(s.to_owned())
    }
}
impl From<String> for Cell {
    fn from(s: String) -> Self {
        Cell::Text(s)
    }
}
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// The file of a table in a folder, for programs.
pub fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Within a folder of tables: those measured with the weights that had the highest test accuracy.
pub fn of_best(folder: &Path) -> PathBuf {
    folder.join("best")
}

/// Name, unit and description of one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name in files, flags and on axes, such as `spike_rate`.
    pub name: String,
    /// Unit; empty for text and dimensionless numbers.
    pub unit: String,
    /// One sentence for a reader.
    pub description: String,
}

/// What a table of a run was measured with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Number of epochs for which the weights were trained.
    pub epoch: u64,
    /// Checksum of the checkpoint that contains them.
    pub checkpoint: String,
    /// Number of test images.
    pub images: u64,
}

/// Results with their definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// File name without its extension, such as `robustness`.
    pub name: String,
    /// Heading for a reader.
    pub title: String,
    /// What was measured, how, and over how many samples.
    pub definition: String,
    /// What a reader must know about individual values: why a cell is empty, what was omitted.
    pub notes: Vec<String>,
    /// What it was measured with, if it is a table of a run. Earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// Why a table could not be built, read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a table.
    #[error("{}: not a LeakLab table: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where in the file.
        reason: String,
    },
    /// The table was written by a later version.
    #[error(
        "{}: table format {found}, this program reads up to {FORMAT}; update leaklab or run the analysis \
         again",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The run has been trained since the table was measured.
    #[error(
        "{}: measured with the weights after epoch {measured}, and not with those of the run's checkpoint \
         (epoch {trained}); analyse the run again",
        path.display()
    )]
    Outdated {
        /// The file.
        path: PathBuf,
        /// Epoch of the weights that were measured.
        measured: u64,
        /// Epoch of the checkpoint.
        trained: u64,
    },
}

impl Table {
    /// An empty table; `columns` are `(name, unit, description)`.
    pub fn new(name: &str, title: &str, definition: &str, columns: &[(&str, &str, &str)]) -> Self {
        let columns = columns
            .iter()
            .map(|&(name, unit, description)| Column {
                name: name.to_owned(),
                unit: unit.to_owned(),
                description: description.trim().to_owned(),
            })
            .collect();
        Table {
            format: FORMAT,
            name: name.to_owned(),
            title: title.to_owned(),
            definition: definition.to_owned(),
            notes: Vec::new(),
            origin: None,
            columns,
            rows: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the row has the wrong length or a number is not finite: a measurement must decide how to treat a
    /// missing value, and leave the cell empty with a note.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "table {}: wrong number of cells", self.name);
        for (cell, column) in row.iter().zip(&self.columns) {
            if let Cell::Number(x) = cell {
                assert!(x.is_finite(), "table {}: {x} in column {}", self.name, column.name);
            }
        }
        self.rows.push(row);
    }

    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The cell of `row` in the named column; empty if there is no such column.
    pub fn cell<'a>(&self, row: &'a [Cell], column: &str) -> &'a Cell {
        self.column(column).map_or(&Cell::Empty, |i| &row[i])
    }

    /// The table as comma-separated values with a header line (RFC 4180, lines end in `\n`).
    pub fn to_csv(&self) -> String {
        fn field(out: &mut String, text: &str) {
            if text.contains([',', '"', '\n', '\r']) {
                out.push('"');
                out.push_str(&text.replace('"', "\"\""));
                out.push('"');
            } else {
                out.push_str(text);
            }
        }
        let mut out = String::new();
        for (i, column) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            field(&mut out, &crate::text::for_csv(&column.name));
        }
        out.push('\n');
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                match cell {
                    Cell::Empty => {}
                    Cell::Integer(n) => out.push_str(&n.to_string()),
                    Cell::Number(x) => out.push_str(&x.to_string()),
                    Cell::Text(s) => field(&mut out, &crate::text::for_csv(s)),
                }
            }
            out.push('\n');
        }
        out
    }

    /// The table as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a table of finite numbers has a JSON form")
    }

    /// Writes `NAME.json` and `NAME.csv` into `folder`, atomically.
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        let json = file(folder, &self.name);
        let csv = folder.join(format!("{}.csv", self.name));
        for (path, text) in [(csv, self.to_csv()), (json, self.to_json())] {
            crate::atomic::write(&path, text.as_bytes()).map_err(|source| TableError::Io { path, source })?;
        }
        Ok(())
    }

    /// Reads a table from its JSON file.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let text = crate::file::read_to_string(path)
            .map_err(|source| TableError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a JSON file; `path` is for the message.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TableError> {
        /// The one field that every version has.
        #[derive(Deserialize)]
        struct Format {
            #[serde(default)]
            format: u64,
        }
        let malformed = |reason: String| TableError::Malformed { path: path.to_owned(), reason };
        let Format { format: found } = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        if found > u64::from(FORMAT) {
            return Err(TableError::Format { path: path.to_owned(), found });
        }
        let table: Table = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        match table.rows.iter().position(|row| row.len() != table.columns.len()) {
            Some(row) => Err(malformed(format!("row {row} does not have {} cells", table.columns.len()))),
            None => Ok(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = Table::new(
            "t",
            "T",
            "counts",
            &[("name", "", "who"), ("x", "steps", "how long"), ("n", "", "n")],
        );
        table.push(vec!["a,\"b\"".into(), 0.1.into(), 3usize.into()]);
        table.push(vec!["c".into(), Cell::Empty, 4u64.into()]);
        table
    }

    #[test]
    fn survives_disk() {
        let folder = tempfile::tempdir().unwrap();
        example().write(folder.path()).unwrap();
        assert_eq!(Table::read(&folder.path().join("t.json")).unwrap(), example());
        let csv = std::fs::read_to_string(folder.path().join("t.csv")).unwrap();
        assert_eq!(csv, "name,x,n\n\"a,\"\"b\"\"\",0.1,3\nc,,4\n");
    }

    #[test]
    #[should_panic(expected = "column x")]
    fn refuses_nan() {
        example().push(vec!["a".into(), f64::NAN.into(), 1usize.into()]);
    }

    #[test]
    fn names_the_file_and_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, example().to_json().replace("\"format\":1", "\"format\":9")).unwrap();
        let message = Table::read(&path).unwrap_err().to_string();
        assert!(
            message.contains("t.json") && message.contains("format 9") && message.contains("update"),
            "{message}"
        );
    }
}
