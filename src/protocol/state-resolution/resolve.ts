import type { StateMap } from '../event.ts';
import type { RoomVersion } from '../room-versions.ts';
import { resolveV1 } from './resolve-v1.ts';
import { resolveV2 } from './resolve-v2.ts';
import type { StateResolutionSource } from './source.ts';

type Algorithm = (
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
) => Generator<void, StateMap<string>>;

const algorithms: Readonly<Record<RoomVersion['stateResolution'], Algorithm>> = {
  v1: resolveV1,
  v2: (stateSets, source) => resolveV2(stateSets, source, { startsEmpty: false, withSubgraph: false }),
  'v2.1': (stateSets, source) => resolveV2(stateSets, source, { startsEmpty: true, withSubgraph: true }),
};

/**
 * Resolves states (key to event id) to the one state that every server computes from them, whatever their
 * order. One state, or several equal ones, resolve to themselves. Does not recurse. The time is O(n log n), and the
 * memory O(n), in the number of entries of the states and of events that the source returns. Yields after every few
 * dozen events; the arguments must not change until it is done.
 * Source: "State resolution" of the room version.
 */
export function* resolveStateInSteps(
  version: RoomVersion,
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
): Generator<void, StateMap<string>> {
  const [first] = stateSets;
  if (first === undefined) return new Map();
  if (stateSets.length === 1) return first;
  return yield* algorithms[version.stateResolution](stateSets, source);
}
