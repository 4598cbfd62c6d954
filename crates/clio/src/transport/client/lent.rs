//! Writes whose data stay in their caller's memory: it lends them for its own calls, and they are
//! copied before it waits for others.

use ethermem_units::Ns;
use ethermem_wire::clio::ProcessId;

use super::super::operation::{Operation, OperationError, OperationId};
use super::Client;

/// All data of a write of [`Client::submit_write_lent`], lent for a call.
#[derive(Clone, Copy, Debug)]
pub struct Loan<'d> {
    /// The write.
    pub operation: OperationId,
    /// Its data.
    pub data: &'d [u8],
}

impl<'d> Loan<'d> {
    pub(super) fn of(loan: Option<Loan<'d>>, operation: OperationId) -> Option<&'d [u8]> {
        loan.filter(|loan| loan.operation == operation).map(|loan| loan.data)
    }
}

impl Client {
    /// Submits a write whose caller lends the data to each [`Client::poll_transmit_parts`] of its
    /// own, after [`Client::lend`]. Calls of others pass its parts over, unless they were copied by
    /// [`Client::copy_lent`].
    pub fn submit_write_lent(
        &mut self,
        process: ProcessId,
        address: u64,
        bytes: u64,
    ) -> OperationId {
        let id = self.begin(Operation::write_lent(process, address, bytes));
        if bytes == 0 || bytes > u64::from(u32::MAX) {
            self.fail(id, OperationError::Length(bytes));
        }
        id
    }

    /// Prepares for calls that lend the data of this write. Returns true if calls of others have
    /// passed over parts of it: then there may be something to send, whatever
    /// [`Client::next_wake`] says.
    pub fn lend(&mut self, write: OperationId) -> bool {
        let Some(operation) = self.operations.get_mut(write) else { return false };
        let is_overdue = core::mem::take(&mut operation.is_overdue);
        let was_passed = !operation.waits && operation.is_unsent() && operation.error.is_none();
        if is_overdue {
            self.flights.looked(Ns::ZERO);
        }
        if was_passed {
            // It has its place again: those behind it began later.
            operation.waits = true;
            self.waiting.push_front(write);
        }
        is_overdue || was_passed
    }

    /// Copies the data of a lent write that may be sent again or were not sent, up to byte `to`.
    /// Once all are copied, calls of others send its parts too.
    pub fn copy_lent(&mut self, loan: Loan<'_>, to: u64) {
        let lacks = |operation: &Operation| operation.lacks_data();
        if !self.operations.get(loan.operation).is_some_and(lacks) {
            return;
        }
        let open = self.first_open(loan.operation);
        if let Some(operation) = self.operations.get_mut(loan.operation) {
            operation.copy(loan.data, open, to, &mut self.spare);
        }
    }

    /// Offset of the first part of an operation that is in flight.
    fn first_open(&self, id: OperationId) -> Option<u64> {
        let flights = self.flights.numbers().filter_map(|request| self.flights.get(request));
        flights.filter(|flight| flight.operation == id).map(|flight| flight.part.from).min()
    }
}
