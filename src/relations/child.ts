import { relationOf } from '../protocol/index.ts';
import { isHidden, type StoredEvent } from '../room-engine/index.ts';

/** The indexed properties of an event that relates to a parent, without `key`, which may be as long as the event. */
export interface Child {
  readonly nid: number;
  readonly roomNid: number;
  readonly parentId: string;
  readonly relType: string;
  readonly type: string;
  readonly sender: string;
  /** Milliseconds since the epoch. */
  readonly ts: number;
  /** Depth of the event, for the order of the room's history. */
  readonly depth: number;
  /** Position of the event on the timeline; negative for backfilled events. */
  readonly stream: number;
}

/**
 * Returns the indexed properties of an event; `undefined` when it relates to no event, has no position on a timeline,
 * or is hidden from clients.
 */
export function childOf(stored: StoredEvent): Child | undefined {
  const { nid, roomNid, event, stream } = stored;
  const relation = relationOf(event.content);
  if (relation === undefined || stream === undefined || isHidden(stored)) return undefined;
  return {
    nid,
    roomNid,
    parentId: relation.eventId,
    relType: relation.relType,
    type: event.type,
    sender: event.sender,
    ts: event.originServerTs,
    depth: event.depth,
    stream,
  };
}

/** Relation types with aggregations. Annotations have none. */
export const aggregatedTypes: readonly string[] = ['m.thread', 'm.replace', 'm.reference'];

/** Whether a child has a relation type with aggregations. */
export const isAggregated = ({ relType }: Pick<Child, 'relType'>): boolean =>
  aggregatedTypes.includes(relType);

/** Returns the key of an annotation as it is stored. Databases reject U+0000, which events may contain. */
export const storableKey = (key: string): string => key.replaceAll('\0', '');

/** Compares children by their order in the room's history, oldest first. */
export const compareByHistory = (a: Child, b: Child) => a.depth - b.depth || a.stream - b.stream;
