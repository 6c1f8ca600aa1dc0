//! An SQLite table as a store for a guard.

use rusqlite::{Connection, OptionalExtension, Result};
use umbel_text::guard::{Change, Lookup};

/// A table of words, each with a value.
pub struct Words {
    connection: Connection,
    /// The number of changes made through this store.
    own: u64,
}

impl Words {
    /// Opens a database, and creates the table if it does not exist.
    pub fn open(path: &std::path::Path) -> Result<Words> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "off")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, known BLOB) WITHOUT ROWID",
        )?;
        let own = connection.total_changes();
        Ok(Words { connection, own })
    }

    /// Returns the connection, for transactions and for changes that bypass the guard.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Makes a change that does not count as a change by others.
    fn change<T>(&mut self, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let before = self.connection.total_changes();
        let done = change(&self.connection);
        self.own += self.connection.total_changes() - before;
        done
    }
}

impl Lookup for Words {
    type Key = str;
    type Value = Vec<u8>;
    type Error = rusqlite::Error;
    /// The changes by other connections, as counted by SQLite, and the changes by this connection
    /// that bypassed the guard.
    type Version = (i64, u64);

    fn get(&mut self, word: &str) -> Result<Option<Vec<u8>>> {
        let mut statement = self.connection.prepare_cached("SELECT known FROM words WHERE word = ?1")?;
        statement.query_row([word], |row| row.get(0)).optional()
    }

    fn version(&mut self) -> Result<Option<(i64, u64)>> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        let others = statement.query_row([], |row| row.get(0))?;
        Ok(Some((others, self.connection.total_changes() - self.own)))
    }

    fn keys(&mut self, each: &mut dyn FnMut(&str)) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT word FROM words")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?);
        }
        Ok(true)
    }
}

impl Change for Words {
    fn insert(&mut self, word: &str, known: Vec<u8>) -> Result<()> {
        self.change(|connection| {
            let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO words VALUES (?1, ?2)")?;
            statement.execute((word, known)).map(drop)
        })
    }

    fn remove(&mut self, word: &str) -> Result<bool> {
        self.change(|connection| {
            let mut statement = connection.prepare_cached("DELETE FROM words WHERE word = ?1")?;
            statement.execute([word]).map(|rows| rows > 0)
        })
    }
}
