//! Rules one by one, and random commands against the invariants.

use proptest::prelude::*;

use super::*;

const OWNER: OwnerId = OwnerId(1);

fn grow(sections: u32, policy: Policy) -> Command {
    Command::Grow { owner: OWNER, sections, policy }
}

/// Two nodes of four and six sections, and an owner of eight.
fn two_nodes() -> Placement {
    let mut placement = Placement::new();
    for command in [
        Command::AddNode { node: NodeId(1), sections: 4 },
        Command::AddNode { node: NodeId(2), sections: 6 },
        Command::AddOwner { owner: OWNER, quota: 8 },
    ] {
        placement.apply(&command).unwrap();
    }
    placement
}

fn nodes(placement: &Placement) -> Vec<u16> {
    let count = placement.sections_of(OWNER).unwrap();
    (0..count).map(|index| placement.locate(OWNER, index).unwrap().node.0).collect()
}

#[test]
fn spreading_takes_the_node_with_most_room_and_packing_the_lowest() {
    let mut placement = two_nodes();
    placement.apply(&grow(6, Policy::Spread)).unwrap();
    // Free: 4 and 6, 4 and 5, 4 and 4 (the lower one), 3 and 4, 3 and 3 (the lower one), 2 and 3.
    assert_eq!(nodes(&placement), [2, 2, 1, 2, 1, 2]);
    let mut placement = two_nodes();
    placement.apply(&grow(5, Policy::Pack)).unwrap();
    assert_eq!(nodes(&placement), [1, 1, 1, 1, 2]);
    placement.check();
}

#[test]
fn a_command_that_is_refused_changes_nothing() {
    let mut placement = two_nodes();
    placement.apply(&grow(7, Policy::Pack)).unwrap();
    let before = placement.clone();
    let refused = |command: Command, text: &str| {
        let mut placement = before.clone();
        assert_eq!(placement.apply(&command).unwrap_err().to_string(), text);
        assert_eq!(placement, before);
    };
    refused(grow(2, Policy::Spread), "owner 1: 9 sections: must be at most 8");
    refused(Command::Shrink { owner: OWNER, sections: 8 }, "owner 1: 8 sections: has 7");
    refused(
        Command::SetQuota { owner: OWNER, quota: 6 },
        "owner 1: quota 6: must be at least 7, which it has",
    );
    refused(Command::AddNode { node: NodeId(2), sections: 1 }, "node 2 is there already");
    refused(
        Command::CommitMove { owner: OWNER, index: 0 },
        "section 0 of owner 1 is not being moved",
    );
    refused(Command::BeginMove { owner: OWNER, index: 0, to: NodeId(9) }, "node 9 is not there");
    refused(
        Command::BeginMove { owner: OWNER, index: 7, to: NodeId(2) },
        "owner 1: 7 sections: has 7",
    );
    let mut full = before.clone();
    full.apply(&Command::SetQuota { owner: OWNER, quota: 99 }).unwrap();
    let error = full.apply(&grow(4, Policy::Spread)).unwrap_err();
    assert_eq!(error, PlacementError::NoRoom { wanted: 4, free: 3 });
}

#[test]
fn a_section_moves_in_two_steps_and_is_where_it_was_until_the_second() {
    let mut placement = two_nodes();
    placement.apply(&grow(1, Policy::Pack)).unwrap();
    let old = placement.locate(OWNER, 0);
    let begin = Command::BeginMove { owner: OWNER, index: 0, to: NodeId(2) };
    assert_eq!(placement.apply(&begin), Ok(vec![]));
    assert_eq!(placement.locate(OWNER, 0), old);
    assert_eq!(placement.free_sections(NodeId(2)), Some(5));
    assert_eq!(placement.apply(&begin), Err(PlacementError::Moving { owner: 1, index: 0 }));
    let to = Some(Section { node: NodeId(2), index: 0 });
    let commit = Command::CommitMove { owner: OWNER, index: 0 };
    assert_eq!(
        placement.apply(&commit),
        Ok(vec![Change { owner: OWNER, index: 0, from: old, to }])
    );
    assert_eq!((placement.locate(OWNER, 0), placement.free_sections(NodeId(1))), (to, Some(4)));
    placement.check();
}

#[test]
fn a_node_that_drains_gets_nothing_and_one_that_leaves_takes_its_sections_along() {
    let mut placement = two_nodes();
    placement.apply(&Command::Drain { node: NodeId(2) }).unwrap();
    placement.apply(&grow(4, Policy::Spread)).unwrap();
    assert_eq!(nodes(&placement), [1; 4]);
    assert!(matches!(placement.apply(&grow(1, Policy::Pack)), Err(PlacementError::NoRoom { .. })));
    let move_there = Command::BeginMove { owner: OWNER, index: 0, to: NodeId(2) };
    assert_eq!(placement.apply(&move_there), Err(PlacementError::Draining(2)));
    let lost = placement.apply(&Command::RemoveNode { node: NodeId(1) }).unwrap();
    assert!(lost.len() == 4 && lost.iter().all(|change| change.to.is_none()));
    assert_eq!((placement.sections_of(OWNER), placement.locate(OWNER, 0)), (Some(4), None));
    assert_eq!(placement.apply(&move_there), Err(PlacementError::Lost { owner: 1, index: 0 }));
    placement.check();
}

#[test]
fn a_released_index_is_the_next_to_be_used_and_does_not_count() {
    let mut placement = two_nodes();
    placement.apply(&grow(8, Policy::Prefer(NodeId(1)))).unwrap();
    // Node 1 has four; the rest go where most room is, which is node 2.
    assert_eq!(nodes(&placement), [1, 1, 1, 1, 2, 2, 2, 2]);
    let release = |index| Command::Release { owner: OWNER, index };
    let from = Some(Section { node: NodeId(1), index: 2 });
    let gone = Change { owner: OWNER, index: 2, from, to: None };
    assert_eq!(placement.apply(&release(2)), Ok(vec![gone]));
    let released = Err(PlacementError::Released { owner: 1, index: 2 });
    assert_eq!(placement.apply(&release(2)), released);
    let move_it = Command::BeginMove { owner: OWNER, index: 2, to: NodeId(2) };
    assert_eq!(placement.apply(&move_it), released);
    placement.check();
    let again = Change { owner: OWNER, index: 2, from: None, to: from };
    assert_eq!(placement.apply(&grow(1, Policy::Prefer(NodeId(1)))), Ok(vec![again]));
    assert!(placement.apply(&grow(1, Policy::Spread)).is_err(), "the quota is 8");
    placement.check();
}

fn command() -> impl Strategy<Value = Command> {
    let node = || (0..4_u16).prop_map(NodeId);
    let owner = || (0..3_u64).prop_map(OwnerId);
    let policy = prop_oneof![
        Just(Policy::Spread),
        Just(Policy::Pack),
        (0..4_u16).prop_map(|node| Policy::Prefer(NodeId(node))),
    ];
    prop_oneof![
        2 => (node(), 0..6_u32).prop_map(|(node, sections)| Command::AddNode { node, sections }),
        1 => node().prop_map(|node| Command::Drain { node }),
        1 => node().prop_map(|node| Command::RemoveNode { node }),
        2 => (owner(), 0..9_u32).prop_map(|(owner, quota)| Command::AddOwner { owner, quota }),
        1 => (owner(), 0..9_u32).prop_map(|(owner, quota)| Command::SetQuota { owner, quota }),
        6 => (owner(), 0..5_u32, policy)
            .prop_map(|(owner, sections, policy)| Command::Grow { owner, sections, policy }),
        2 => (owner(), 0..5_u32).prop_map(|(owner, sections)| Command::Shrink { owner, sections }),
        3 => (owner(), 0..6_u32).prop_map(|(owner, index)| Command::Release { owner, index }),
        1 => owner().prop_map(|owner| Command::RemoveOwner { owner }),
        4 => (owner(), 0..6_u32, node())
            .prop_map(|(owner, index, to)| Command::BeginMove { owner, index, to }),
        3 => (owner(), 0..6_u32).prop_map(|(owner, index)| Command::CommitMove { owner, index }),
        1 => (owner(), 0..6_u32).prop_map(|(owner, index)| Command::AbortMove { owner, index }),
    ]
}

proptest! {
    /// The changes alone lead a second map to where the first is, and the epoch counts them.
    #[test]
    fn changes_say_all_that_changed(commands in proptest::collection::vec(command(), 0..120)) {
        let (mut placement, mut followed) = (Placement::new(), BTreeMap::new());
        for command in &commands {
            let (before, epoch) = (placement.clone(), placement.epoch());
            match placement.apply(command) {
                Err(_) => prop_assert_eq!(&placement, &before),
                Ok(changes) => {
                    prop_assert_eq!(placement.epoch(), Epoch(epoch.0 + 1));
                    for change in changes {
                        let key = (change.owner, change.index);
                        let was = match change.to {
                            Some(to) => followed.insert(key, to),
                            None => followed.remove(&key),
                        };
                        prop_assert_eq!(was, change.from);
                    }
                }
            }
            placement.check();
        }
        for owner in (0..3).map(OwnerId) {
            for index in 0..9 {
                let there = followed.get(&(owner, index)).copied();
                prop_assert_eq!(placement.locate(owner, index), there);
            }
        }
        // Equal commands, equal placements.
        let mut replica = Placement::new();
        commands.iter().for_each(|command| { let _ = replica.apply(command); });
        prop_assert_eq!(replica, placement);
    }
}
