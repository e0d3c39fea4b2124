//! Rows of a table as types: a column is a field, so a misspelt column does not compile, and a file with
//! other columns is refused with a message that lists them. Text and cells exist only where a file is read or
//! written.

use crate::checkpoint::Header;
use crate::folder::RunFolder;
use crate::table::{self, Cell, Origin, Table, TableError};
use std::io::ErrorKind;
use std::path::Path;

/// A value that a cell can contain.
pub trait Field: Sized {
    /// What a cell must contain, for error messages.
    const EXPECTED: &'static str;

    /// The value as a cell.
    fn to_cell(&self) -> Cell;

    /// The value of a cell, if it is one of this type.
    fn from_cell(cell: &Cell) -> Option<Self>;
}

/// A row of one kind of table.
pub trait Row: Sized {
    /// Name of the table: the file's name without its extension.
    const TABLE: &'static str;
    /// `(name, unit, description)` of every column.
    const COLUMNS: &'static [(&'static str, &'static str, &'static str)];
    /// Columns that tables of earlier versions do not have: their cells are then empty.
    const ADDED: &'static [&'static str] = &[];

    /// The row's cells, in the order of the columns.
    fn cells(&self) -> Vec<Cell>;

    /// The row with these cells; the error names the column and states what is expected there.
    fn from_cells(cells: &[Cell]) -> Result<Self, String>;
}

/// A table whose rows are typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<R> {
    /// Heading for a reader.
    pub title: String,
    /// What was measured, how, and over how many samples.
    pub definition: String,
    /// What a reader must know about individual values.
    pub notes: Vec<String>,
    /// What it was measured with, if it is a table of a run and this is known.
    pub origin: Option<Origin>,
    /// The rows.
    pub rows: Vec<R>,
}

impl<R: Row> Rows<R> {
    /// An empty table.
    pub fn new(title: impl Into<String>, definition: impl Into<String>) -> Self {
        let (title, definition) = (title.into(), definition.into());
        Rows { title, definition, notes: Vec::new(), origin: None, rows: Vec::new() }
    }

    /// Adds a note, unless the table already has it.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The table in the form for files and pages.
    ///
    /// # Panics
    /// If a number is not finite: a measurement must decide how to treat a missing value.
    pub fn table(&self) -> Table {
        self.table_named(R::TABLE)
    }

    /// Like [`Rows::table`], under another name: for several tables of one kind.
    ///
    /// # Panics
    /// As [`Rows::table`].
    pub fn table_named(&self, name: &str) -> Table {
        let mut table = Table::new(name, &self.title, &self.definition, R::COLUMNS);
        table.notes.clone_from(&self.notes);
        table.origin.clone_from(&self.origin);
        self.rows.iter().for_each(|row| table.push(row.cells()));
        table
    }

    /// The typed rows of a table; the error states which column or row is not as expected.
    pub fn from_table(table: &Table) -> Result<Self, String> {
        let found: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let expected: Vec<&str> = R::COLUMNS.iter().map(|column| column.0).collect();
        let is_added = |column: &&str| R::ADDED.contains(column);
        let earlier = found.iter().eq(expected.iter().filter(|column| !is_added(column)));
        if found != expected && !earlier {
            return Err(format!(
                "its columns are {}, where {} are expected; run the analysis again",
                found.join(", "),
                expected.join(", ")
            ));
        }
        let row = |cells: &[Cell]| {
            if found == expected {
                return R::from_cells(cells);
            }
            let mut cells = cells.iter().cloned();
            let completed = expected.iter().map(|column| match is_added(column) {
                true => Cell::Empty,
                false => cells.next().unwrap_or(Cell::Empty),
            });
            R::from_cells(&completed.collect::<Vec<_>>())
        };
        let rows = table.rows.iter().enumerate();
        let rows = rows.map(|(i, cells)| row(cells).map_err(|reason| format!("row {i}: {reason}")));
        Ok(Rows {
            title: table.title.clone(),
            definition: table.definition.clone(),
            notes: table.notes.clone(),
            origin: table.origin.clone(),
            rows: rows.collect::<Result<_, _>>()?,
        })
    }

    /// Reads the table of this kind in a folder; `None` if it does not exist.
    pub fn read(folder: &Path) -> Result<Option<Self>, TableError> {
        Self::read_named(folder, R::TABLE)
    }

    /// Like [`Rows::read`], under another name.
    pub fn read_named(folder: &Path, name: &str) -> Result<Option<Self>, TableError> {
        let path = table::file(folder, name);
        let table = match Table::read(&path) {
            Err(TableError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
            table => table?,
        };
        Self::from_table(&table).map(Some).map_err(|reason| TableError::Malformed { path, reason })
    }

    /// Reads the table of this kind in a run's `analysis` folder; `None` if it does not exist. If the run has
    /// a checkpoint, a table that was measured with other weights is refused.
    pub fn of_run(run: &RunFolder, checkpoint: Option<&Header>) -> Result<Option<Self>, TableError> {
        let folder = run.analysis();
        let found = Self::read(&folder)?;
        let origin = found.as_ref().and_then(|rows| rows.origin.as_ref());
        if let (Some(origin), Some(header)) = (origin, checkpoint)
            && origin.checkpoint != header.checksum
        {
            let path = table::file(&folder, R::TABLE);
            let (measured, trained) = (origin.epoch, header.position.epoch);
            return Err(TableError::Outdated { path, measured, trained });
        }
        Ok(found)
    }

    /// Writes the table into a folder, as JSON and CSV, atomically.
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        self.table().write(folder)
    }
}

/// Declares the row of a table: `struct Name in "file" { /// Description. field: Type ["unit"], .. }`.
///
/// The doc comment of a field is also the description of its column. `Name::field` is the column's name, for
/// figures. Columns that tables of earlier versions lack are listed after the file's name:
/// `in "file" added [field]`.
#[macro_export]
macro_rules! row {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident in $table:literal $(added [$($added:ident),* $(,)?])? {
            $($(#[doc = $doc:literal])+ $field:ident: $type:ty [$unit:literal]),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        // Column names are for figures, which use only some of them.
        #[allow(non_upper_case_globals, dead_code)]
        impl $name {
            $(
                #[doc = concat!("Name of the column `", stringify!($field), "`.")]
                pub const $field: &'static str = stringify!($field);
            )*
        }

        impl $crate::Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($field), $unit, concat!($($doc),+))),*];
            $(const ADDED: &'static [&'static str] = &[$($name::$added),*];)?

            fn cells(&self) -> Vec<$crate::Cell> {
                vec![$($crate::Field::to_cell(&self.$field)),*]
            }

            fn from_cells(cells: &[$crate::Cell]) -> Result<Self, String> {
                let mut cells = cells.iter();
                $(
                    let $field = {
                        let cell = cells.next().ok_or("a cell is missing")?;
                        <$type as $crate::Field>::from_cell(cell).ok_or_else(|| {
                            let expected = <$type as $crate::Field>::EXPECTED;
                            format!("column {}: {expected} is expected", stringify!($field))
                        })?
                    };
                )*
                Ok($name { $($field),* })
            }
        }
    };
}

/// Implements [`Field`] for types whose cell is the text of their `Display`, read by their `FromStr`.
#[macro_export]
macro_rules! text_field {
    ($($type:ty: $expected:literal),* $(,)?) => {
        $(impl $crate::Field for $type {
            const EXPECTED: &'static str = $expected;

            fn to_cell(&self) -> $crate::Cell {
                $crate::Cell::Text(self.to_string())
            }

            fn from_cell(cell: &$crate::Cell) -> Option<Self> {
                cell.text()?.parse().ok()
            }
        })*
    };
}

impl Field for f64 {
    const EXPECTED: &'static str = "a number";

    fn to_cell(&self) -> Cell {
        Cell::Number(*self)
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        // Nothing that is measured is this large, and sums of squares of what is read stay finite.
        cell.number().filter(|x| x.abs() <= 1e100)
    }
}

impl Field for u64 {
    const EXPECTED: &'static str = "a whole number of 0 or more";

    fn to_cell(&self) -> Cell {
        Cell::Integer(*self as i64)
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        if let Cell::Integer(n) = cell { u64::try_from(*n).ok() } else { None }
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "0 or 1";

    fn to_cell(&self) -> Cell {
        Cell::Integer(i64::from(*self))
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        match cell {
            Cell::Integer(0) => Some(false),
            Cell::Integer(1) => Some(true),
            Cell::Empty | Cell::Integer(_) | Cell::Number(_) | Cell::Text(_) => None,
        }
    }
}

impl Field for String {
    const EXPECTED: &'static str = "a text";

    fn to_cell(&self) -> Cell {
        Cell::Text(self.clone())
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        cell.text().map(str::to_owned)
    }
}

impl<F: Field> Field for Option<F> {
    const EXPECTED: &'static str = F::EXPECTED;

    fn to_cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Empty, F::to_cell)
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        match cell {
            Cell::Empty => Some(None),
            Cell::Integer(_) | Cell::Number(_) | Cell::Text(_) => F::from_cell(cell).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::row! {
        /// A row for the test.
        pub struct Sample in "sample" {
            /// Who.
            name: String [""],
            /// How long,
            /// if it is known.
            time: Option<f64> ["steps"],
            /// Whether.
            done: bool [""],
        }
    }

    fn sample() -> Rows<Sample> {
        let mut rows = Rows::new("Samples", "Synthetic.");
        rows.note("once");
        rows.note("once");
        rows.rows.push(Sample { name: "a".into(), time: Some(2.5), done: true });
        rows.rows.push(Sample { name: "b".into(), time: None, done: false });
        rows
    }

    #[test]
    fn survives_disk() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Rows::<Sample>::read(folder.path()).unwrap(), None);
        sample().write(folder.path()).unwrap();
        assert_eq!(Rows::read(folder.path()).unwrap(), Some(sample()));
        let table = sample().table();
        assert_eq!(table.columns[1].description, "How long, if it is known.");
        assert_eq!((Sample::time, table.notes.len()), ("time", 1));
    }

    crate::row! {
        /// A row of a later version of [`Sample`].
        pub struct Later in "sample" added [kind, size] {
            /// Who.
            name: String [""],
            /// Added.
            kind: Option<String> [""],
            /// How long.
            time: Option<f64> ["steps"],
            /// Added.
            size: Option<u64> [""],
            /// Whether.
            done: bool [""],
        }
    }

    #[test]
    fn tables_of_earlier_versions_lack_only_what_was_added() {
        let earlier = Rows::<Later>::from_table(&sample().table()).unwrap();
        let row = Later { name: "a".into(), kind: None, time: Some(2.5), size: None, done: true };
        assert_eq!(earlier.rows[0], row);
        // Written again, it has all columns.
        assert_eq!(Rows::<Later>::from_table(&earlier.table()).unwrap(), earlier);
        for missing in ["time", "kind"] {
            let mut table = earlier.table();
            let at = table.column(missing).unwrap();
            table.columns.remove(at);
            table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            let refused = Rows::<Later>::from_table(&table).unwrap_err();
            assert!(refused.contains("run the analysis again"), "without {missing}: {refused}");
        }
    }

    /// Only a file that does not exist is no table.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.json");
        std::fs::create_dir(&path).unwrap();
        let message = Rows::<Sample>::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("sample.json") && message.contains("it is a folder"), "{message}");
        std::fs::remove_dir(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let message = Rows::<Sample>::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("sample.json") && message.contains("not a regular file"), "{message}");
    }

    #[test]
    fn other_columns_and_cells_are_named() {
        let mut table = sample().table();
        table.rows[1][2] = Cell::Text("yes".into());
        let reason = Rows::<Sample>::from_table(&table).unwrap_err();
        assert_eq!(reason, "row 1: column done: 0 or 1 is expected");
        table.rows[1][2] = Cell::Integer(1);
        table.rows[1][1] = Cell::Number(1e300);
        let reason = Rows::<Sample>::from_table(&table).unwrap_err();
        assert_eq!(reason, "row 1: column time: a number is expected", "its square is not finite");
        table.columns[1].name = "tiem".into();
        let reason = Rows::<Sample>::from_table(&table).unwrap_err();
        assert!(reason.contains("name, tiem, done") && reason.contains("name, time, done"), "{reason}");
    }
}
