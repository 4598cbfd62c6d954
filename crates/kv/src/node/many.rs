//! Several requests in one message: [`What::Many`].

use ethermem::OffloadError as Error;

use super::{Shard, refused};
use crate::call::{Answer, Became, MANY_BYTES_MAX, Request, What, append_part, parts};

/// True if any of the requests changes something.
pub(super) fn changes(request: &Request<'_>) -> bool {
    let is_get = |part| Request::decode(part).is_some_and(|part| part.what == What::Get);
    !parts(request.value).all(is_get)
}

impl Shard<'_, '_> {
    /// Executes requests in order, each a transaction. Returns the answers of the first ones, as
    /// parts, and their number in the operand. It ends before a request that fails or needs memory,
    /// and behind one whose value the client must fetch: a later request could free it. Only an
    /// error of the first request is returned: nothing has changed then.
    pub(super) fn many(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let (mut answers, mut count) = (Vec::new(), 0);
        for part in parts(request.value) {
            let answer = match self.one_of_many(request, part) {
                Err(error) if count == 0 => return Err(error),
                Err(_) => {
                    self.changes.forget();
                    break;
                }
                Ok(answer) => answer,
            };
            let became = Answer::decode(&answer).map(|answer| answer.became);
            let needs_region = became == Some(Became::NeedsRegion);
            if needs_region && count > 0 {
                break;
            }
            append_part(&mut answers, |to| to.extend_from_slice(&answer));
            count += 1;
            let is_fetched = became == Some(Became::Elsewhere);
            if needs_region || is_fetched || answers.len() > MANY_BYTES_MAX {
                break;
            }
        }
        Ok(Answer { bytes: &answers, ..Answer::new(Became::Done, count) }.encode())
    }

    fn one_of_many(&mut self, all: &Request<'_>, part: &[u8]) -> Result<Vec<u8>, Error> {
        let request = Request::decode(part).filter(|part| part.shard == all.shard);
        let request = request.ok_or_else(|| refused("a part is no request of the shard"))?;
        let answer = match request.what {
            What::Get => self.get(&request),
            What::Put | What::Delete => self.write(&request),
            _ => Err(refused("a part that goes alone")),
        }?;
        self.commit()?;
        Ok(answer)
    }
}
