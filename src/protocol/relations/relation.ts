import { isEventId } from '../identifiers/event-ids.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

/**
 * The form of a `rel_type`: wider than the common namespaced identifier grammar, which clients do not follow, but with
 * the same length limit.
 */
const REL_TYPE = /^[\x21-\x7e]{1,255}$/;

/** The relation of an event to another: its well-formed `m.relates_to`. */
export interface Relation {
  /** For instance `m.thread`, `m.replace`, `m.annotation`, `m.reference`, or any other. */
  readonly relType: string;
  /** The id of the parent, which counts only if it is in the same room; that is not checked here. */
  readonly eventId: string;
  /** The key of an annotation, for instance an emoji. `undefined` if it is absent or not a string. */
  readonly key: string | undefined;
  /** Of `m.thread`: whether `m.in_reply_to` is only a fallback for clients without threads. */
  readonly isFallingBack: boolean;
}

/**
 * Returns the relation in the content of an event; `undefined` if there is none or it is malformed. For
 * encrypted events only the cleartext counts.
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
