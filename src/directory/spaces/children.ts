import { isRoomId, type JsonObject, splitStateKey } from '../../protocol/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../rooms/index.ts';
import { contentOf } from '../room-stats/room-description.ts';

/** A room that a space says to contain. */
export interface SpaceChild {
  readonly roomId: string;
  readonly suggested: boolean;
  /** The event, stripped, with its time. */
  readonly event: JsonObject;
  readonly order: string | undefined;
  readonly originServerTs: number;
}

/** Children of one space that count; nobody looks through more. */
const mostChildren = 1_000;

/**
 * The children of a space in the order in which they are shown.
 * Source: client-server API, "m.space.child relationship" and "Ordering of children within a space".
 */
export async function childrenOf(engine: RoomEngine, head: RoomHead): Promise<SpaceChild[]> {
  const nids: number[] = [];
  for (const [key, { nid }] of head.state) {
    if (splitStateKey(key)[0] === 'm.space.child') nids.push(nid);
  }
  const events = await engine.events.getMany(nids);
  return [...events.values()]
    .map(childOf)
    .filter((child) => child !== undefined)
    .sort(compare)
    .slice(0, mostChildren);
}

/** `undefined` when the event names no child, or not any more. */
function childOf(stored: StoredEvent): SpaceChild | undefined {
  const content = contentOf(stored) ?? {};
  const { stateKey, sender, originServerTs, type } = stored.event;
  const { via, order, suggested } = content;
  if (!isRoomId(stateKey) || !Array.isArray(via) || via.length === 0) return undefined;
  if (!via.every((server) => typeof server === 'string')) return undefined;
  return {
    roomId: stateKey,
    suggested: suggested === true,
    event: { type, state_key: stateKey, content, sender, origin_server_ts: originServerTs },
    order: typeof order === 'string' && /^[\x20-\x7E]{1,50}$/.test(order) ? order : undefined,
    originServerTs,
  };
}

function compare(a: SpaceChild, b: SpaceChild): number {
  return (
    Number(a.order === undefined) - Number(b.order === undefined) ||
    compareText(a.order ?? '', b.order ?? '') ||
    a.originServerTs - b.originServerTs ||
    compareText(a.roomId, b.roomId)
  );
}

const compareText = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
