import { relationOf } from '../protocol/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** The indexed properties of an event that relates to another. */
export interface Child {
  readonly nid: number;
  readonly roomNid: number;
  readonly parentId: string;
  readonly relType: string;
  readonly type: string;
  readonly sender: string;
  /** Key of an annotation. */
  readonly key: string | undefined;
  /** Milliseconds since the epoch. */
  readonly ts: number;
  /** Depth of the event, for the order of the room's history. */
  readonly depth: number;
  readonly stream: number;
}

/** Returns the relation of an event; `undefined` when it has none, or is not on a timeline. */
export function childOf({
  nid,
  roomNid,
  event,
  stream,
  rejected,
  softFailed,
}: StoredEvent): Child | undefined {
  const relation = relationOf(event.content);
  if (relation === undefined || stream === undefined || rejected || softFailed) return undefined;
  return {
    nid,
    roomNid,
    parentId: relation.eventId,
    relType: relation.relType,
    type: event.type,
    sender: event.sender,
    key: relation.key,
    ts: event.originServerTs,
    depth: event.depth,
    stream,
  };
}

/** Compares children by their order in the room's history, oldest first. */
export const compareByHistory = (a: Child, b: Child) => a.depth - b.depth || a.stream - b.stream;
