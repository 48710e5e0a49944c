//! The few SQL statements that the stand-in understands. No I/O.

use std::collections::BTreeMap;

/// What a session can ask about.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) environment_id: String,
    pub(crate) generation: u64,
    pub(crate) user: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One row of one column.
    Row {
        column: String,
        value: Value,
    },
    /// No rows, only a command tag.
    Done(&'static str),
    /// A transaction begins or ends.
    Begin,
    End(&'static str),
    /// SQLSTATE and message.
    Error(&'static str, String),
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Int(i32),
    Text(String),
}

/// Splits a query string at the semicolons that stand outside of quotes, and leaves out what is empty.
pub(crate) fn split(query: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, character) in query.char_indices() {
        match (quote, character) {
            (None, ';') => {
                statements.push(&query[start..at]);
                start = at + 1;
            }
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    statements.push(&query[start..]);
    statements
        .into_iter()
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// Answers one statement.
pub(crate) fn answer(statement: &str, facts: &Facts) -> Answer {
    let statement = statement.trim().trim_end_matches(';').trim();
    let words: Vec<String> = statement.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = |column: &str, value: &str| Answer::Row {
        column: column.to_owned(),
        value: Value::Text(value.to_owned()),
    };
    match words.as_slice() {
        ["select", "mz_version()"] => text("mz_version", &format!("{} (standin)", facts.version)),
        ["select", "version()"] => text("version", &format!("PostgreSQL 9.5 on {} (standin)", facts.version)),
        ["select", "mz_environment_id()"] => text("mz_environment_id", &facts.environment_id),
        ["select", "current_user" | "current_user()"] => text("current_user", &facts.user),
        ["select", "standin_generation()"] => text("standin_generation", &facts.generation.to_string()),
        ["select", number] if number.parse::<i32>().is_ok() => Answer::Row {
            column: "?column?".to_owned(),
            value: Value::Int(number.parse().unwrap_or_default()),
        },
        ["show", name] => match facts.parameters.get(*name) {
            Some(value) => text(name, value),
            None => Answer::Error("42704", format!("unrecognized configuration parameter {name:?}")),
        },
        ["set", ..] => Answer::Done("SET"),
        ["begin" | "start", ..] => Answer::Begin,
        ["commit" | "end", ..] => Answer::End("COMMIT"),
        ["rollback" | "abort", ..] => Answer::End("ROLLBACK"),
        ["deallocate" | "discard", ..] => Answer::Done("DISCARD ALL"),
        _ => Answer::Error("0A000", format!("a stand-in does not understand: {statement}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            version: "v26.43.0".to_owned(),
            environment_id: "local-kind-x-0".to_owned(),
            generation: 3,
            user: "materialize".to_owned(),
            parameters: BTreeMap::from([("max_tables".to_owned(), "25".to_owned())]),
        }
    }

    fn text(column: &str, value: &str) -> Answer {
        Answer::Row {
            column: column.to_owned(),
            value: Value::Text(value.to_owned()),
        }
    }

    #[test]
    fn what_is_understood() {
        for (statement, expected) in [
            (
                "SELECT 1",
                Answer::Row {
                    column: "?column?".to_owned(),
                    value: Value::Int(1),
                },
            ),
            (" select  mz_version() ; ", text("mz_version", "v26.43.0 (standin)")),
            ("SELECT standin_generation()", text("standin_generation", "3")),
            ("SHOW max_tables", text("max_tables", "25")),
            ("SET a = 1", Answer::Done("SET")),
            ("BEGIN", Answer::Begin),
            ("COMMIT", Answer::End("COMMIT")),
        ] {
            assert_eq!(answer(statement, &facts()), expected, "{statement}");
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(matches!(answer("SELECT * FROM t", &facts()), Answer::Error("0A000", _)));
        assert!(matches!(answer("SHOW nothing", &facts()), Answer::Error("42704", _)));
    }

    #[test]
    fn statements_are_split_outside_of_quotes() {
        assert_eq!(split("select 1; ;select ';' ;"), ["select 1", "select ';'"]);
        assert_eq!(split(""), Vec::<&str>::new());
    }
}
