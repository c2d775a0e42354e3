import { isEventId } from '../identifiers/event-ids.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

/** Wider than the common namespaced identifier grammar, which clients do not keep to, but as short. */
const REL_TYPE = /^[\x21-\x7e]{1,255}$/;

/** How an event relates to another: its well-formed `m.relates_to`. */
export interface Relation {
  /** For instance `m.thread`, `m.replace`, `m.annotation`, `m.reference`, or any other. */
  readonly relType: string;
  /** The parent, which must be in the same room. */
  readonly eventId: string;
  /** What an annotation says, for instance an emoji. Undefined when it is absent or not a string. */
  readonly key: string | undefined;
  /** In a thread: whether the reply is there for clients without threads only. */
  readonly isFallingBack: boolean;
}

/**
 * The relation that the content of an event states, undefined when there is none or it is malformed, which counts
 * the same. Only the cleartext of an encrypted event counts.
 * Source: client-server API, "Forming relationships between events".
 */
export function relationOf(content: JsonObject): Relation | undefined {
  const relatesTo = relatesToOf(content);
  if (relatesTo === undefined) return undefined;
  const { rel_type: relType, event_id: eventId, key, is_falling_back } = relatesTo;
  if (typeof relType !== 'string' || !REL_TYPE.test(relType) || !isEventId(eventId)) return undefined;
  return {
    relType,
    eventId,
    key: typeof key === 'string' ? key : undefined,
    isFallingBack: is_falling_back === true,
  };
}

function relatesToOf(content: JsonObject): JsonObject | undefined {
  const relatesTo = content['m.relates_to'];
  return isJsonObject(relatesTo) ? relatesTo : undefined;
}
