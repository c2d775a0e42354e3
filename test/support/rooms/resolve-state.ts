import type { RoomVersion, StateMap, StateResolutionSource } from '../../../src/protocol/index.ts';
import { resolveStateInSteps } from '../../../src/protocol/state-resolution/resolve.ts';

/** Runs state resolution to its end in one go. States are event ids by `stateMapKey`. */
export function resolveState(
  version: RoomVersion,
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
): StateMap<string> {
  const steps = resolveStateInSteps(version, stateSets, source);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
