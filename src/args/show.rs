//! How records are shown.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use strum::VariantArray as _;

use crate::domain::select::top_n::Order;
use crate::render::columns::Column;

/// How records are shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShowArgs {
    /// How to show the records
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,

    /// Columns of a table, csv or tsv, in this order, by the headings of csv
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = columns())]
    pub(crate) columns: Vec<Column>,

    /// Leave the heading out
    #[arg(long)]
    pub(crate) no_header: bool,

    /// Write csv and tsv cells that begin with = + - @ without a ' in front
    #[arg(long)]
    pub(crate) raw_csv: bool,

    /// Scan the whole keyspace first, then show the oldest, the soonest to expire, the largest, or the first by key
    #[arg(long, value_name = "BY", value_enum)]
    pub(crate) sort: Option<Sort>,

    /// The other end of --sort first
    #[arg(long, requires = "sort")]
    pub(crate) reverse: bool,
}

/// `--output` of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people: as many columns as fit; a line a record where stdout is no terminal.
    #[default]
    Table,
    /// For people: every column, however long the lines.
    Wide,
    /// Comma-separated values, for a spreadsheet: times in milliseconds, sizes in bytes.
    Csv,
    /// The same, separated by tabs.
    Tsv,
    /// The names of the records, `SCHEMA/KEY`, one per line, for `purge -`.
    Name,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Sort {
    /// Oldest first.
    Age,
    /// Soonest to expire first.
    Ttl,
    /// Largest first.
    Size,
    /// By idempotency key.
    Key,
}

impl From<Sort> for Order {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Age => Self::Age,
            Sort::Ttl => Self::Ttl,
            Sort::Size => Self::Size,
            Sort::Key => Self::Key,
        }
    }
}

/// Columns by the headings of csv, or by the shorter names that tables show.
fn columns() -> impl TypedValueParser<Value = Column> {
    let name = |column: &Column| {
        PossibleValue::new(column.as_str()).aliases(column.aliases().iter().copied())
    };
    let named =
        |name: &str, column: &&Column| column.as_str() == name || column.aliases().contains(&name);
    PossibleValuesParser::new(Column::VARIANTS.iter().map(name)).try_map(move |given| {
        let column = Column::VARIANTS.iter().find(|column| named(&given, column)).copied();
        column.ok_or("there is no such column")
    })
}
