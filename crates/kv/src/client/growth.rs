//! Tables: which exist, and how they grow.

use ethermem::Permissions;

use super::{Client, node};
use crate::call::{Became, Request, What};
use crate::error::{Error, may_have_acted};
use crate::layout::{TABLES, TABLES_AT, Tables};

/// Number of buckets moved when a client finds one that has not been moved.
const MOVED_EACH: u64 = 16;
/// Number of buckets moved at once before the next growth.
const MOVED_MAX: u64 = 256;

impl Client {
    /// Reads which tables a shard has.
    pub(super) async fn refresh(&mut self, shard: usize) -> Result<Tables, Error> {
        let header = self.header(shard);
        let words = self.thread.read(header.add(TABLES_AT), 8 * TABLES as u64).await?;
        let tables = Tables::parse(&words).ok_or(Error::BadAnswer { memory: header.memory() })?;
        self.shards[shard].tables = Some(tables);
        Ok(tables)
    }

    /// Maintenance after a walking client has added a key: moves buckets, and checks that there are
    /// enough.
    pub(super) async fn after_insert(&mut self, shard: usize) -> Result<(), Error> {
        let header = self.header(shard);
        if std::mem::take(&mut self.shards[shard].is_moving) {
            let request = Request { operand: MOVED_EACH, ..Request::new(What::Move, header) };
            self.call(&request).detach();
        }
        // On a fabric the count arrives later, and is used with the next key.
        let view = &mut self.shards[shard];
        let Some(counted) = view.counting.as_mut().and_then(ethermem::Pending::poll_result) else {
            return Ok(());
        };
        view.counting = None;
        let many = match (counted, view.tables) {
            (Ok(before), Some(tables)) => before + 1 > tables.keys_max(),
            _ => false,
        };
        if many { self.grow(shard).await } else { Ok(()) }
    }

    /// Gives a shard the next table, once all buckets are in the last one.
    pub(super) async fn grow(&mut self, shard: usize) -> Result<(), Error> {
        let header = self.header(shard);
        let request = Request { operand: MOVED_MAX, ..Request::new(What::Move, header) };
        let answered = self.call(&request).await?;
        if node::answer(&answered, header)?.operand != 0 {
            return Ok(());
        }
        let tables = self.refresh(shard).await?;
        if !tables.may_grow() {
            return Ok(());
        }
        let log2 = tables.log2 + 1;
        let rw = Permissions::READ_WRITE;
        let table = match self.thread.alloc_on(header.memory(), 8 << log2, rw).await {
            Ok(table) => table,
            // Without a larger table the store works, with longer chains.
            Err(ethermem::Error::Full { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let request = Request {
            operand: table.address().offset(),
            tag: log2.into(),
            ..Request::new(What::Grow, header)
        };
        // A client that does not know the larger table learns of it from moved buckets.
        self.shards[shard].tables = None;
        match self.call(&request).await {
            Ok(answered) if node::answer(&answered, header)?.became != Became::Refused => Ok(()),
            // Another client has added it first.
            Ok(_) => {
                table.free().detach();
                Ok(())
            }
            // The memory node may use the table.
            Err(error) if may_have_acted(&error) => Err(error.into()),
            Err(error) => {
                table.free().detach();
                Err(error.into())
            }
        }
    }
}
