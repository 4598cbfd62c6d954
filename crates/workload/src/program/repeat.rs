//! A program that is done several times, as training repeats its steps.

use ethermem_units::Ps;

use super::graph::{Builder, Program, ProgramError, STEPS_MAX, StepId};

impl Program {
    /// This program so many times in succession, and a computation of every node before each.
    ///
    /// A node computes when all steps of the time before in which it takes part have ended. A step
    /// begins after the computation of the node that issues it.
    ///
    /// # Errors
    /// [`ProgramError::TooLarge`].
    pub fn repeated(&self, times: u32, compute: Ps) -> Result<Program, ProgramError> {
        if times == 1 && compute == Ps::ZERO {
            return Ok(self.clone());
        }
        let once = self.steps().len() as u64 + u64::from(self.nodes());
        if once.saturating_mul(times.into()) > STEPS_MAX {
            return Err(ProgramError::TooLarge);
        }
        let before = self.dependencies();
        let mut builder = Builder::new(self.nodes());
        let nodes = usize::from(self.nodes());
        let mut ended: Vec<Vec<StepId>> = vec![Vec::new(); nodes];
        for time in 0..times {
            let computed: Vec<StepId> = (0..self.nodes())
                .map(|node| builder.compute(node, compute, time, &ended[usize::from(node)]))
                .collect::<Result<_, _>>()?;
            ended = vec![Vec::new(); nodes];
            let mut made = Vec::with_capacity(self.steps().len());
            for (step, before) in self.steps().iter().zip(&before) {
                let ends = step.work.ends().map(usize::from);
                let of_before = before.iter().map(|step| made[step.0 as usize]);
                let after: Vec<StepId> = of_before.chain([computed[ends[0]]]).collect();
                let step = builder.add(*step, &after)?;
                made.push(step);
                ended[ends[0]].push(step);
                ended[ends[1]].push(step);
            }
        }
        Ok(builder.build())
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;

    use super::super::{Work, broadcast, ring_allreduce};
    use super::*;
    use crate::program::BroadcastShape;

    #[test]
    fn times_follow_each_other_with_a_computation_before_each() {
        let cost = |work: &Work| match work {
            Work::Message { bytes, .. } => Ps(bytes.0),
            Work::Compute { duration, .. } => *duration,
        };
        let once = ring_allreduce(4, Bytes(400)).unwrap();
        let thrice = once.repeated(3, Ps(50)).unwrap();
        assert_eq!(thrice.critical_path(cost), Ps(3 * (50 + 6 * 100)));
        assert_eq!(thrice.steps().len(), 3 * (4 + once.steps().len()));
        assert_eq!(once.repeated(1, Ps(0)).unwrap(), once);
        // The root of a broadcast goes on when its own messages have ended: the second broadcast
        // follows the first one down the tree.
        let tree = broadcast(8, 0, Bytes(100), BroadcastShape::Tree).unwrap();
        assert_eq!(tree.critical_path(cost), Ps(300));
        assert_eq!(tree.repeated(2, Ps(0)).unwrap().critical_path(cost), Ps(400));
        assert_eq!(once.repeated(u32::MAX, Ps(0)), Err(ProgramError::TooLarge));
    }
}
