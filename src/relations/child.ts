import { relationOf } from '../protocol/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** An event that relates to another, as far as it must be known without looking at it. */
export interface Child {
  readonly nid: number;
  readonly roomNid: number;
  readonly parentId: string;
  readonly relType: string;
  readonly type: string;
  readonly sender: string;
  /** What an annotation says. */
  readonly key: string | undefined;
  /** Milliseconds since the epoch. */
  readonly ts: number;
  /** Place in the room's history. */
  readonly depth: number;
  readonly stream: number;
}

/** What an event is to the one that it relates to; `undefined` when it relates to none, or is on no timeline. */
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

/** Orders children as they are in the room's history, oldest first. */
export const inHistory = (a: Child, b: Child) => a.depth - b.depth || a.stream - b.stream;
