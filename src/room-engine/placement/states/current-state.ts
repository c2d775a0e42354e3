import { splitStateMapKey } from '../../../protocol/index.ts';
import type { GroupChain, GroupRows } from '../../state/group-chain.ts';
import type { MembershipChange, StateChange, StoredEvent } from '../../stored-event.ts';
import { membershipChanges } from '../../timeline/membership-changes.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import type { GroupState } from './before-state.ts';

type Deps = Pick<PlacementDeps, 'events' | 'states' | 'slices'>;

/** A change of the current state of a room. */
export interface CurrentStateChange {
  /** The chain of deltas that ends in the group of the new state. */
  readonly chain: GroupChain;
  readonly newGroups: readonly GroupRows[];
  /** `stateMapKey` to the nid of the new entry; 0 for removed entries. */
  readonly entries: ReadonlyMap<string, number>;
  /** The events of the new entries, by nid. */
  readonly events: ReadonlyMap<number, StoredEvent>;
  /** State key nids by `stateMapKey`. A key that is absent has its nid in the cache of state keys. */
  readonly keyNids: ReadonlyMap<string, number>;
}

/**
 * Resolves the current state from the states after the forward extremities.
 * @param groups the state groups after the forward extremities
 * @param after the state after a new extremity, or before an event that becomes no extremity; `unplacedEvent` is the
 * new extremity when it has a nid but no position yet
 * @returns `undefined` when the current state stays the same, or when the head has changed meanwhile
 * Source: room versions, "State resolution".
 */
export async function resolveCurrentState(
  deps: Deps,
  head: WritableHead,
  groups: readonly number[],
  after: { readonly state: GroupState; readonly unplacedEvent: StoredEvent | undefined } | undefined,
): Promise<CurrentStateChange | undefined> {
  const { events, slices } = deps;
  const { resolver, stateKeys, groupIds } = deps.states;
  const current = head.chain.id ?? 0;
  const distinct = [...new Set(groups)];
  if (distinct.length === 1 && distinct[0] === current) return undefined;
  const reference = {
    group: current,
    nids: () => (head.chain.id === current ? [...head.state.values()].map(({ nid }) => nid) : undefined),
  };
  const resolution = await resolver.resolve(head.version, distinct, reference, after?.unplacedEvent);
  const delta = resolution.changesFrom(current);
  if (delta.size === 0) return undefined;
  const eventsByNid = new Map(await events.getMany([...delta.values()].filter((nid) => nid !== 0)));
  if (after?.unplacedEvent) eventsByNid.set(after.unplacedEvent.nid, after.unplacedEvent);
  const keyNids = [...delta.keys()];
  const names = await stateKeys.names(keyNids);
  const entries = new Map<string, number>();
  const keyNidsByName = new Map<string, number>();
  await slices.each(keyNids.entries(), ([index, keyNid]) => {
    entries.set(names[index] ?? '', delta.get(keyNid) ?? 0);
    keyNidsByName.set(names[index] ?? '', keyNid);
  });
  const resolvedGroup = distinct.find((group) => resolution.changesFrom(group).size === 0);
  if (resolvedGroup !== undefined) {
    const chain =
      resolvedGroup === after?.state.id
        ? await after.state.chain()
        : await deps.states.groups.chain(resolvedGroup);
    return { chain, newGroups: [], entries, events: eventsByNid, keyNids: keyNidsByName };
  }
  if (head.chain.id !== current) return undefined; // The head has changed; the caller tries again.
  const chain = head.chain.fork();
  const createdGroups = [chain.advance(groupIds.next(), delta)];
  return { chain, newGroups: createdGroups, entries, events: eventsByNid, keyNids: keyNidsByName };
}

/** The applied changes of a room's state and memberships. */
export interface AppliedChange {
  readonly stateChanges: readonly StateChange[];
  readonly membershipChanges: readonly MembershipChange[];
}

/**
 * Changes the current state in memory, synchronously.
 * @param cause the newest copy of the event that made the change
 */
export function applyCurrentStateChange(
  head: WritableHead,
  { chain, entries, events, keyNids }: Omit<CurrentStateChange, 'newGroups'>,
  cause: StoredEvent,
  position: number,
): AppliedChange {
  const stateChanges: StateChange[] = [];
  const before = new Map<string, ReturnType<WritableHead['membership']>>();
  for (const [key, nid] of entries) {
    const [type, stateKey] = splitStateMapKey(key);
    if (type === 'm.room.member') before.set(stateKey, head.membership(stateKey));
    const stored = nid === cause.nid ? cause : events.get(nid);
    if (nid !== 0 && !stored) throw new Error(`state event ${nid} is not in memory`);
    stateChanges.push({ ...head.setEntry(type, stateKey, stored, position), keyNid: keyNids.get(key) });
  }
  head.chain = chain;
  return {
    stateChanges,
    membershipChanges: membershipChanges(stateChanges, cause, (userId) => before.get(userId)),
  };
}
