import { stateKeyOf } from '../../protocol/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../rooms/index.ts';
import type { Timeline } from './timeline.ts';

/** Entries of a room's state: `stateKeyOf(type, stateKey)` to the nid of the event. */
export type StateNids = ReadonlyMap<string, number>;

/**
 * The whole state of a room before the first event of a timeline: the current state with the timeline's own changes
 * taken back where history is one line, and the stored state of that event otherwise.
 */
export async function stateBefore(
  engine: RoomEngine,
  head: RoomHead,
  timeline: Timeline,
): Promise<StateNids> {
  const { first, stateEvents } = timeline;
  if (!first) return currentNids(head);
  if (!leadsToPresent(head, first, stateEvents)) return storedState(engine, first);
  const state = new Map(currentNids(head));
  for (const stored of [...stateEvents].reverse()) {
    const key = stateKeyOf(stored.event.type, stored.event.stateKey ?? '');
    const previous = await previousNid(engine, stored, key);
    if (previous === undefined) state.delete(key);
    else state.set(key, previous);
  }
  return state;
}

function currentNids(head: RoomHead): Map<string, number> {
  return new Map([...head.state].map(([key, { nid }]) => [key, nid]));
}

/** Whether the state events follow each other without a fork, up to the current state. */
function leadsToPresent(head: RoomHead, first: StoredEvent, stateEvents: readonly StoredEvent[]): boolean {
  let group = first.stateBefore;
  for (const { stateBefore: before, stateGroup } of stateEvents) {
    if (before !== group) return false;
    group = stateGroup;
  }
  return group === head.chain.id;
}

async function storedState(engine: RoomEngine, first: StoredEvent): Promise<StateNids> {
  if (first.stateBefore === undefined) return new Map();
  const state = await engine.groups.load(first.stateBefore);
  const names = await engine.stateKeys.names([...state.keys()]);
  return new Map([...state.values()].map((nid, index) => [names[index] ?? '', nid]));
}

async function previousNid(
  engine: RoomEngine,
  stored: StoredEvent,
  key: string,
): Promise<number | undefined> {
  const keyNid = await engine.stateKeys.find(key);
  if (keyNid === undefined || stored.stateBefore === undefined) return undefined;
  return (await engine.groups.entries([stored.stateBefore], [keyNid])).get(stored.stateBefore)?.get(keyNid);
}

/**
 * What changed of a room's state in `(after, upTo]` and is not said by the timeline itself.
 * @returns nids of events
 */
export async function stateChangesOutside(
  engine: RoomEngine,
  head: RoomHead,
  timeline: Timeline,
  after: number,
  upTo: number,
): Promise<number[]> {
  const inTimeline = new Set(timeline.events.map(({ stored }) => stored.nid));
  if (!timeline.limited && timeline.stateEvents.every(({ nid }) => inTimeline.has(nid))) return [];
  const deltas = await engine.stateDeltas(head.roomNid, after, upTo);
  return deltas
    .map(({ eventNid }) => eventNid)
    .filter((nid) => nid !== undefined)
    .filter((nid) => !inTimeline.has(nid));
}
