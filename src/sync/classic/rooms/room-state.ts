import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';
import type { Timeline } from './timeline.ts';

/** Entries of a room's state: `stateMapKey(type, stateKey)` to the nid of the event. */
export type StateNids = Map<string, number>;

/**
 * Returns the whole state of a room at a stream position; without a promise when the state has not changed after this
 * position.
 * @param isWanted selects the entries to return by their keys; by default all
 */
export function stateAt(
  engine: RoomReader,
  head: RoomHead,
  position: number,
  isWanted: (key: string) => boolean = () => true,
): StateNids | Promise<StateNids> {
  if (head.changedAt > position) return earlierStateAt(engine, head, position, isWanted);
  const state: StateNids = new Map();
  head.state.forEach(({ nid }, key) => {
    if (isWanted(key)) state.set(key, nid);
  });
  return state;
}

async function earlierStateAt(
  engine: RoomReader,
  head: RoomHead,
  position: number,
  isWanted: (key: string) => boolean,
): Promise<StateNids> {
  const state: StateNids = new Map();
  for (const [key, { nid, stream }] of head.state) {
    if (!isWanted(key)) continue;
    const earlierNid = stream <= position ? nid : await nidAt(engine, head, key, position);
    if (earlierNid !== undefined) state.set(key, earlierNid);
  }
  return state;
}

/** Returns the whole state of a state group; empty when the group is unknown (`undefined`). */
export async function stateOfGroup(engine: RoomReader, group: number | undefined): Promise<StateNids> {
  if (group === undefined) return new Map();
  const state = await engine.groups.load(group);
  const names = await engine.stateKeys.names([...state.keys()]);
  return new Map([...state.values()].map((nid, index) => [names[index] ?? '', nid]));
}

/** Returns the nid of one state entry at a stream position. */
export async function nidAt(
  engine: RoomReader,
  head: RoomHead,
  key: string,
  position: number,
): Promise<number | undefined> {
  const entry = head.state.get(key);
  if (entry === undefined || entry.stream <= position) return entry?.nid;
  const history = await engine.stateHistory(head.roomNid, key);
  return history.findLast(({ stream }) => stream <= position)?.event?.nid;
}

/** Returns the entries of a room's state that changed in `(after, upTo]`, as they are at `upTo`. */
export async function stateChanges(
  engine: RoomReader,
  head: RoomHead,
  after: number,
  upTo: number,
): Promise<StateNids> {
  return (await changesWithin(engine, head, after, upTo)).changes;
}

/**
 * Returns `stateChanges`, and as `unknownNids` the nids of all events that entered the state in that range: a client
 * that has synced up to `after` does not know them.
 */
export async function changesWithin(
  engine: RoomReader,
  head: RoomHead,
  after: number,
  upTo: number,
): Promise<{ readonly changes: StateNids; readonly unknownNids: ReadonlySet<number> }> {
  const deltas = await engine.stateDeltas(head.roomNid, after, upTo);
  const keys = await engine.stateKeys.names(deltas.map(({ keyNid }) => keyNid));
  const changes: StateNids = new Map();
  const unknownNids = new Set<number>();
  for (const [index, { eventNid, allEventNids }] of deltas.entries()) {
    if (eventNid !== undefined) changes.set(keys[index] ?? '', eventNid);
    for (const nid of allEventNids) unknownNids.add(nid);
  }
  return { changes, unknownNids };
}

/**
 * Turns the state at the end of a timeline into the state that a client needs at its start. An entry that the timeline
 * sets is replaced by its value before the timeline. Entries whose last change is not in the timeline stay as they are
 * at the end, so that the client arrives at the right state even if the timeline leaves events out.
 * @param unknownNids nids that the client cannot know; by default it knows no event
 */
export function rewind(state: StateNids, { events }: Timeline, unknownNids?: ReadonlySet<number>): void {
  const first = new Map<string, StoredEvent>();
  const shown = new Set<number>();
  for (const { stored } of events) {
    const { type, stateKey } = stored.event;
    if (stateKey === undefined) continue;
    const key = stateMapKey(type, stateKey);
    if (!first.has(key)) first.set(key, stored);
    shown.add(stored.nid);
  }
  for (const [key, { replaces }] of first) {
    if (!shown.has(state.get(key) ?? 0)) continue;
    if (replaces !== undefined && (!unknownNids || unknownNids.has(replaces))) state.set(key, replaces);
    else state.delete(key);
  }
}
