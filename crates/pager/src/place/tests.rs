use super::*;

/// Faults in a millisecond apart and together, from one time on.
type Phase = (Duration, f64, f64);

/// Runs a program of these phases; returns for each the part of its time spent together.
fn lived(policy: &mut Policy, phases: &[Phase]) -> Vec<f64> {
    let (mut now, mut is_together) = (Instant::now(), false);
    let mut parts = Vec::new();
    for (lasts, apart, together) in phases {
        let (until, mut bound) = (now + *lasts, Duration::ZERO);
        while now < until {
            let rate = if is_together { *together } else { *apart };
            bound += if is_together { EPOCH } else { Duration::ZERO };
            now += EPOCH;
            let faults = (rate * EPOCH.as_secs_f64() * 1e3) as u32;
            let served = Served { epochs: 1, faults, took: EPOCH };
            let served = (faults >= FAULTS_LEAST).then_some(served);
            is_together = policy.after(now, served, is_together);
        }
        parts.push(bound.as_secs_f64() / lasts.as_secs_f64());
    }
    parts
}

#[test]
fn the_place_that_serves_more_faults_is_kept() {
    let second = Duration::from_secs(1);
    for (apart, together, part) in
        [(13.0, 50.0, 0.97..1.0), (50.0, 52.0, 0.0..0.04), (50.0, 20.0, 0.0..0.04)]
    {
        let mut policy = Policy::new(Placement::Measured);
        let parts = lived(&mut policy, &[(20 * second, apart, together)]);
        assert!(part.contains(&parts[0]), "{apart} {together}: {parts:?}");
    }
}

#[test]
fn a_place_that_became_the_worse_is_left() {
    let second = Duration::from_secs(1);
    let mut policy = Policy::new(Placement::Measured);
    let better = (20 * second, 13.0, 50.0);
    let worse = (20 * second, 50.0, 13.0);
    let parts = lived(&mut policy, &[better, worse, better]);
    assert!(parts[0] > 0.95 && parts[1] < 0.25 && parts[2] > 0.75, "{parts:?}");
}

#[test]
fn pauses_do_not_cost_a_trial_each() {
    let mut policy = Policy::new(Placement::Measured);
    let (busy, pause) = (Duration::from_millis(30), Duration::from_millis(50));
    let phases: Vec<Phase> =
        (0..100).flat_map(|_| [(busy, 13.0, 50.0), (pause, 0.0, 0.0)]).collect();
    let parts = lived(&mut policy, &phases);
    let of_busy: f64 = parts.iter().step_by(2).skip(20).sum::<f64>() / 80.0;
    // The first epoch of each burst is apart, as no thread is bound in a pause.
    assert!(of_busy > 0.6, "{of_busy}");
    assert!(parts.iter().skip(1).step_by(2).all(|part| *part < 0.3), "{parts:?}");
}

#[test]
fn few_faults_free_or_refused_threads_are_never_bound() {
    let now = Instant::now();
    let many = || Some(Served { epochs: 1, faults: 500, took: EPOCH });
    let mut free = Policy::new(Placement::Free);
    assert!((0..100).all(|_| !free.after(now, many(), false)));
    let mut together = Policy::new(Placement::Together);
    assert!(!together.after(now, None, false));
    assert!(together.after(now, many(), false));
    let mut refused = Policy::new(Placement::Measured);
    assert!(refused.after(now, many(), false));
    refused.refuse(now);
    assert!((0..100).all(|_| !refused.after(now, many(), false)));
}

#[test]
fn few_threads_of_one_process_are_found_and_many_are_not() {
    let tally = |faults: &[(usize, u32, u32)]| {
        let mut tally = Tally::default();
        for (process, thread, faults) in faults {
            (0..*faults).for_each(|_| tally.count(*process, *thread));
        }
        tally
    };
    let few = |faults: &[_]| tally(faults).few().map(|(process, few)| (process, few.to_vec()));
    assert_eq!(few(&[]), None);
    assert_eq!(few(&[(1, 10, FAULTS_LEAST - 1)]), None);
    assert_eq!(few(&[(1, 10, 95), (2, 20, 5)]), Some((1, vec![10])));
    assert_eq!(few(&[(1, 10, 30), (1, 11, 65), (2, 20, 5)]), Some((1, vec![11, 10])));
    assert_eq!(few(&[(1, 10, 50), (2, 20, 50)]), None);
    let many: Vec<_> = (0..20).map(|thread| (1, thread, 10)).collect();
    assert_eq!(few(&many), None);
    let tally = tally(&[(1, 10, 70), (1, 11, 15), (2, 20, 15)]);
    assert!(tally.is_of(1, &[10, 11]));
    assert!(!tally.is_of(1, &[10]) && !tally.is_of(2, &[20]));
}
