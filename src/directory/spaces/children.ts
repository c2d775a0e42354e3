import {
  isJsonObject,
  isRoomId,
  type JsonObject,
  type JsonValue,
  splitStateMapKey,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { contentOf } from '../room-stats/room-description.ts';

/** A child of a space. */
export interface SpaceChild {
  readonly roomId: string;
  /** Servers that are in the room, according to the event. */
  readonly via: readonly string[];
  readonly suggested: boolean;
  /** The `m.space.child` event as stripped state, with its time. */
  readonly event: JsonObject;
  /** The `order` of the event; absent when it is missing or not valid. */
  readonly order: string | undefined;
  readonly originServerTs: number;
}

/** Maximum number of children of a space; the rest is ignored. */
const maxChildren = 1_000;

/**
 * Returns the children of a space in their order.
 * Source: client-server API, "m.space.child relationship" and "Ordering of children within a space".
 */
export async function childrenOf(engine: RoomReader, head: RoomHead): Promise<SpaceChild[]> {
  const nids: number[] = [];
  for (const [key, { nid }] of head.state) {
    if (splitStateMapKey(key)[0] === 'm.space.child') nids.push(nid);
  }
  const events = await engine.events.getMany(nids);
  return inOrder([...events.values()].map(childOf));
}

/** Parses `children_state` of a remote server. Ignores malformed entries. */
export function childrenFromJson(events: readonly JsonValue[]): SpaceChild[] {
  return inOrder(
    events.filter(isJsonObject).map((event) => {
      const { type, state_key, content, sender, origin_server_ts } = event;
      if (type !== 'm.space.child' || typeof sender !== 'string' || !isJsonObject(content)) return undefined;
      if (typeof state_key !== 'string' || !Number.isSafeInteger(origin_server_ts)) return undefined;
      return child({ stateKey: state_key, sender, originServerTs: origin_server_ts as number, content });
    }),
  );
}

const inOrder = (children: readonly (SpaceChild | undefined)[]): SpaceChild[] =>
  children
    .filter((found) => found !== undefined)
    .sort(compare)
    .slice(0, maxChildren);

function childOf(stored: StoredEvent): SpaceChild | undefined {
  const { stateKey = '', sender, originServerTs } = stored.event;
  return child({ stateKey, sender, originServerTs, content: contentOf(stored) ?? {} });
}

interface ChildEvent {
  readonly stateKey: string;
  readonly sender: string;
  readonly originServerTs: number;
  readonly content: JsonObject;
}

/** Returns `undefined` when the event contains no valid child. */
function child({ stateKey, sender, originServerTs, content }: ChildEvent): SpaceChild | undefined {
  const { via, order, suggested } = content;
  if (!isRoomId(stateKey) || !Array.isArray(via) || via.length === 0) return undefined;
  const servers = via.filter((server) => typeof server === 'string');
  if (servers.length < via.length) return undefined;
  return {
    roomId: stateKey,
    via: servers,
    suggested: suggested === true,
    event: {
      type: 'm.space.child',
      state_key: stateKey,
      content,
      sender,
      origin_server_ts: originServerTs,
    },
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
